"""The labels of a study as files: what people said, and what was fixed before."""

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import write_file
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN
from steadyeye.metrics.label_studies.files import LABELS, STUDY, read_study, write_labels
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.studies.live_study import read_labels
from steadyeye.review.studies.missing_pictures import list_missing_labels, read_missing
from steadyeye.review.studies.study_folder import read_earlier_labels


def export_labels(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of the labels written to a folder, as labels.csv beside study.json.

    Those of earlier studies that serve are written too, and sets without pictures as sets that
    nobody could label. The same labels are the same bytes. A study
    that goes on is exported as it stands, `partial` or not. Raises `UsageError` for a set that is
    no study.
    """
    if folder.content.get("kind") != "labels":
        raise UsageError(f"'{folder.root}' is no label study; export another format")
    of_images = read_study(folder.root / STUDY).question.of_images
    labels = {
        **list_missing_labels(read_missing(folder.root), of_images),
        **read_earlier_labels(folder.root),
        **read_labels(connection, of_images),
    }
    unknown = (UNKNOWN,) if of_images else ()
    write_file(out / LABELS, write_labels(labels))
    write_file(out / STUDY, (folder.root / STUDY).read_bytes())
    return {
        "labels": len(labels),
        "without_class": sum(tuple(own) == unknown for own in labels.values()),
    }
