"""What people accepted, as a set again: what is evaluated, and what the papers release."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.data.annotations.review_set import FRAMES, SetFolder, check_vacant, image_path, table
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.results import status
from steadyeye.review.results.counting import count_settled, count_updated
from steadyeye.review.results.verdicts import FrameVerdict, count_undecided, verdicts
from steadyeye.review.sampling.image_store import place


def export(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes the reviewed set to a folder: `--data "reviewed(root=…)"` evaluates it.

    Every frame is kept with its verdict, so that the review's impact can be told; the images are
    those of accepted and rejected frames alike. Returns counts. Raises `UsageError` where frames
    are not decided, unless `partial`: they then count as not accepted, and are named so.
    """
    check_vacant(out)
    if folder.content.get("kind") == "boxes":
        raise UsageError(f"'{folder.root}' is a set of boxes; export the format coco")
    found = verdicts(connection, folder, plan)
    left = count_undecided("frames", found, partial=partial)
    names = folder.classes.names if folder.classes else ()
    rows = [_apply_verdict(row, found[row["id"]], names) for row in folder.frames.to_pylist()]
    images = sorted({row["image"] for row in rows})
    for image in images:
        place(folder.root, image, image_path(out, image))
    counts = {
        "anchors": sum(row["offset"] == 0 for row in rows),
        "anchors_accepted": sum(row["accepted"] and row["offset"] == 0 for row in rows),
        "pairs": sum(row["offset"] != 0 for row in rows),
        "pairs_accepted": sum(row["accepted"] and row["offset"] != 0 for row in rows),
        "labels_updated": count_updated(folder, count_settled(connection, plan).get("anchors", {})),
        "undecided": left,
    }
    names = folder.classes.names if folder.classes else ()
    write_file(out / "frames.parquet", table(rows, FRAMES, names))
    manifest = {
        **folder.content,
        "reviewed": {"counts": counts, "status": status.status(connection, folder, plan)},
        "provenance": provenance(),
    }
    content = encode(manifest)
    files = [out / "frames.parquet", *(image_path(out, image) for image in images)]
    write_sums(out, files, {"set.json": content})
    write_file(out / "set.json", content)
    return counts


def _apply_verdict(
    row: Mapping[str, Any], verdict: FrameVerdict, names: Sequence[str]
) -> dict[str, Any]:
    labels = [names.index(label) for label in verdict.labels]
    told = {"labels": labels, "accepted": verdict.accepted, "reason": verdict.reason}
    return {**row, **told}
