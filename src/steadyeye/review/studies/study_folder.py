"""The folder of a label study, which is created once and continued after a stop.

::

    set.json       classes, the run, how many people label a set, gold questions
    study.json     the question, its premise and seed, and the order of the sets
    earlier-labels.csv  labels of earlier studies that serve this one, where there are some
    strips.jsonl   the pictures of each set that has them
    images/ab/…jpg the pictures, each named by the SHA-256 of its bytes
    review.sqlite  what people said
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import write_output
from steadyeye.data.annotations import review_set
from steadyeye.data.annotations.review_set import VERSION, SetFolder, write_manifest
from steadyeye.data.classes.synonyms import match_class
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.files import (
    STUDY,
    StudyRecord,
    plan_again,
    read_labels,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import Labels
from steadyeye.metrics.label_studies.judge_difference import plan_difference_again
from steadyeye.metrics.label_studies.study import LabelStudy
from steadyeye.review.protocol.objects import COMPLETE
from steadyeye.review.studies.study_items import STAGE


@dataclass(frozen=True)
class Labelling:
    """How people label: `votes` per set, and the known `gold` answers of `read_gold`.

    `earlier`: the labels of earlier studies, candidate → its classes; nobody is asked about these.
    """

    votes: int = 1
    gold: Mapping[str, tuple[str, ...]] | None = None
    earlier: Labels = field(default_factory=dict)


EARLIER = "earlier-labels.csv"
MINUTES = 5.0  # that a set waits for whoever was given it: the study waits for the first of all


def begin_study(
    root: Path,
    study: LabelStudy | DifferenceStudy,
    predictions: Predictions,
    how: Labelling,
    against: Predictions | None = None,
) -> None:
    """Writes the folder of a study.

    Raises `UsageError` for gold questions of other sets or of a mistyped class, and for a class
    that label files cannot hold. `against`: the predictions of the second model, of a study of two.
    """
    tables = [predictions, *([against] if against else [])]
    names = dict.fromkeys(n for table in tables for n in table.classes or table.model_classes)
    _check_classes(list(names), how)
    gold = _list_gold(study, how)
    if how.earlier:
        write_output(root / EARLIER, write_labels(how.earlier))
    write_output(root / STUDY, write_study(study))
    stages = {"stages": {STAGE: how.votes}, "minutes": MINUTES, "seed": study.seed}
    content = {
        "version": VERSION,
        "name": root.name,
        "kind": "labels",
        "classes": {"names": list(names)},
        "drawn": {"model": study.model, "data": study.data, "question": str(study.question)},
        "review": {**stages, **({"gold": {"answers": {STAGE: gold}}} if gold else {})},
        "provenance": provenance(),
    }
    write_manifest(root, content)


def _check_classes(names: Sequence[str], how: Labelling) -> None:
    """Raises `UsageError` for a class that label files cannot hold, or a mistyped gold class."""
    barred = [name for name in names if "|" in name]
    if barred:
        raise UsageError(
            f"the class '{barred[0]}' contains |, which separates classes in label files; rename "
            "it and run again"
        )
    for key, labels in (how.gold or {}).items():
        for label in labels:
            # people may name what is no class; one with its letters exchanged is mistyped
            near = next(iter(get_close_matches(label, names, 1, cutoff=0.7)), "")
            exchanged = sorted(near.casefold()) == sorted(label.casefold())
            if exchanged and match_class(label, names) not in names:
                raise UsageError(
                    f"the gold question '{key}' has the class '{label}', which is none of the "
                    f"run's; did you mean '{near}'? Correct it, or leave the set out"
                )


def _list_gold(study: LabelStudy | DifferenceStudy, how: Labelling) -> Mapping[str, Any]:
    strangers = sorted(set(how.gold or {}) - set(study.sets))
    if strangers:
        raise UsageError(
            f"gold questions of sets that {study.data} does not have: {list_texts(strangers)}; "
            "give ids of its sets"
        )
    whole = COMPLETE if study.question.of_images else "yes"
    return {
        name: {"labels": list(labels), "whole": whole} for name, labels in (how.gold or {}).items()
    }


def read_gold(path: Path, of_images: bool = False) -> dict[str, tuple[str, ...]]:
    """Set → its classes in a label file; an empty tuple means that it shows no object.

    `of_images`: for single images `UNKNOWN` ones are left out, otherwise sets without a class.
    Raises `UsageError` if no set remains.
    """
    if path.is_dir():
        raise UsageError(f"--gold '{path}' is a folder; give the file, such as labels.csv in it")
    gold = {
        name: labels
        for name, labels in read_labels(path).items()
        if (UNKNOWN not in labels if of_images else labels)
    }
    if not gold:
        lacks = "image whose classes are known" if of_images else "set with a class"
        raise UsageError(f"'{path}' has no {lacks}; write some, as in labels.csv")
    return gold


def check_labelling(root: Path, votes: int | None, gold: Path | None) -> dict[str, tuple[str, ...]]:
    """The gold questions of a file, as `read_gold`, for the study in a folder; {} without a file.

    `votes`: the votes of the command, None if it gives none. Raises `UsageError` if the study began
    with other votes or gold questions.
    """
    folder, record = read_folder(root)
    review = folder.content.get("review", {})
    before = review.get("stages", {}).get(STAGE)
    cure = "out to go on with it, or choose another --out"
    if votes not in (None, before):
        raise UsageError(
            f"'{root}' has each set labelled by {number_of(int(before), 'person', 'people')}, not "
            f"{votes}; leave --votes {cure}"
        )
    answers = review.get("gold", {}).get("answers", {}).get(STAGE, {})
    begun_with = {name: sorted(answer["labels"]) for name, answer in answers.items()}
    answers_now = read_gold(gold, record.question.of_images) if gold else {}
    if gold and {name: sorted(labels) for name, labels in answers_now.items()} != begun_with:
        raise UsageError(
            f"'{root}' was begun with other gold questions ({len(begun_with)} of them); leave "
            f"--gold {cure}"
        )
    return answers_now


def read_earlier_labels(root: Path) -> Labels:
    """The labels of earlier studies in the folder of a study; empty if it has none.

    Raises `UsageError` if they differ from those that the study began with.
    """
    names = read_study(root / STUDY).earlier
    labels = read_labels(root / EARLIER) if names else {}
    if set(labels) != set(names):
        raise UsageError(
            f"'{root / EARLIER}' is damaged: it has other sets than the study began with; "
            "start it again in another --out"
        )
    return labels


def is_begun(root: Path) -> bool:
    """Whether a folder holds a study."""
    return (root / "set.json").is_file() and (root / STUDY).is_file()


def read_folder(root: Path) -> tuple[SetFolder, StudyRecord]:
    """The set and the record of a study. Raises `UsageError` where there is none."""
    folder = review_set.read(root)
    if folder.content.get("kind") != "labels" or not (root / STUDY).is_file():
        raise UsageError(f"'{root}' holds a set, and no label study; choose another --out")
    return folder, read_study(root / STUDY)


def resume_study(
    root: Path,
    predictions: Predictions,
    planned: LabelStudy | None,
    earlier: Labels | None = None,
) -> LabelStudy:
    """The study of a folder, planned again; `planned`: that of the command, None if it gives none.

    `earlier`: the labels of earlier studies that the command gives. Raises `UsageError` if that is
    another study, or the predictions differ.
    """
    _, record = read_folder(root)
    study = plan_again(record, predictions)
    before = write_labels(read_earlier_labels(root))
    other_labels = planned is not None and write_labels(earlier or {}) != before
    _check_options(root, study, None if planned is None else write_study(planned), other_labels)
    return study


def resume_difference(
    root: Path, models: tuple[Predictions, Predictions], planned: DifferenceStudy | None
) -> DifferenceStudy:
    """The study of two models in a folder, planned again; `planned`: as for `resume_study`.

    Raises `UsageError` if that is another study, the folder holds one of a single model, or the
    predictions differ.
    """
    _, record = read_folder(root)
    study = plan_difference_again(record, *models) if record.against else None
    if study is None:
        about = f"{record.model} less {record.against}" if record.against else record.model
        raise UsageError(
            f"'{root}' holds a study of {about} on {record.data}, and not of {models[0].model} "
            f"less {models[1].model} as they are now; give the runs that it was planned for, or "
            "another --out"
        )
    _check_options(root, study, None if planned is None else write_study(planned))
    return study


def _check_options(
    root: Path,
    study: LabelStudy | DifferenceStudy,
    planned: bytes | None,
    other_labels: bool = False,
) -> None:
    """Raises `UsageError` if a command asks for another study than the folder holds.

    `planned`: study.json of the command's study, None if it gives none. `other_labels`: whether it
    gives other labels of earlier studies.
    """
    if other_labels or planned not in (None, write_study(study)):
        raise UsageError(
            f"'{root}' holds the study of '{study.question}', begun with other options; leave them "
            "out to go on with it, or choose another --out"
        )
