"""Reviewed frames as folders to evaluate: a set again, and the layout of ImageNet-Vid-Robust.

The layout in which ImageNet-Vid-Robust is released::

    metadata/pmsets.json   anchor file → the accepted neighbours' files
    metadata/labels.json   file → indices of its classes
    metadata/classes.json  the classes, where they are not VID-30
    metadata/closed.json   [true], where these are all that can occur
    val/<video>/…JPEG      the frames, six digits each
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, make_folder, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.data.annotations.review_set import FRAMES, SetFolder, check_vacant, image_path, table
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.review.protocol.counts import read_item_counts
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.results.status import count_updated, record_status
from steadyeye.review.results.verdicts import FrameVerdict, count_undecided, judge_frames
from steadyeye.review.sampling.image_store import copy_image


def export_set(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of the reviewed set written to a folder: `--data "reviewed(root=…)"` evaluates it.

    Every frame is exported with its verdict, accepted or rejected, so that the impact of the review
    can be measured. Raises `UsageError` if frames are not decided, unless `partial`: they then
    count as not accepted, with that reason.
    """
    check_vacant(out)
    if folder.content.get("kind") == "boxes":
        raise UsageError(f"'{folder.root}' is a set of boxes; export the format coco")
    verdicts = judge_frames(connection, folder, plan)
    left = count_undecided("frames", verdicts, partial=partial)
    names = folder.class_names
    rows = [_apply_verdict(row, verdicts[row["id"]], names) for row in folder.frames.to_pylist()]
    images = sorted({row["image"] for row in rows})
    for image in images:
        copy_image(folder.root, image, image_path(out, image))
    counts = {
        "anchors": sum(row["offset"] == 0 for row in rows),
        "anchors_accepted": sum(row["accepted"] and row["offset"] == 0 for row in rows),
        "pairs": sum(row["offset"] != 0 for row in rows),
        "pairs_accepted": sum(row["accepted"] and row["offset"] != 0 for row in rows),
        "labels_updated": count_updated(read_item_counts(connection)),
        "undecided": left,
    }
    write_file(out / "frames.parquet", table(rows, FRAMES, names))
    manifest = {
        **folder.content,
        "reviewed": {"counts": counts, "status": record_status(connection, folder, plan)},
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
    return {**row, "labels": labels, "accepted": verdict.accepted, "reason": verdict.reason}


def export_pmsets(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of the accepted frames written; `--data "imagenet_vid_robust(root=…)"` reads them.

    The layout has no seconds, rates or frame types, and one list of labels per file. Other readers
    of the release take indices as VID-30: if `classes.json` is written, they must be given it.
    Raises `UsageError` for frames that are not decided, unless `partial`, for a set without labels,
    and for a frame to which two anchors give different labels.
    """
    if folder.classes is None or folder.content.get("kind") == "boxes":
        raise UsageError(f"'{folder.root}' has no labelled frames; pmsets.json needs labels")
    verdicts = judge_frames(connection, folder, plan)
    left = count_undecided("frames", verdicts, partial=partial)
    accepted = [row for row in folder.frames.to_pylist() if verdicts[row["id"]].accepted]
    anchors = {row["group"]: _name_file(row) for row in accepted if row["offset"] == 0}
    sets: dict[str, list[str]] = {file: [] for file in anchors.values()}
    labels: dict[str, list[int]] = {}
    images: dict[str, str] = {}
    for row in accepted:
        if row["group"] not in anchors:
            continue
        file = _name_file(row)
        indices = sorted(folder.classes.names.index(name) for name in verdicts[row["id"]].labels)
        if labels.setdefault(file, indices) != indices:
            raise UsageError(
                f"two anchors give the frame '{file}' different labels, and labels.json holds "
                "one list per frame; export the format set"
            )
        images[file] = row["image"]
        if row["offset"] != 0:
            sets[anchors[row["group"]]].append(file)
    for file, image in images.items():
        copy_image(folder.root, image, out / file)
    files = _write_metadata(out, {"pmsets": sets, "labels": labels, **_describe_classes(folder)})
    write_sums(out, [*files, *(out / file for file in images)])
    return {"anchors": len(sets), "frames": len(labels), "undecided": left}


def _write_metadata(out: Path, contents: Mapping[str, Any]) -> list[Path]:
    """The JSON files written, one for each name."""
    make_folder(out / "metadata")
    for name, content in contents.items():
        write_file(out / "metadata" / f"{name}.json", encode(content))
    return [out / "metadata" / f"{name}.json" for name in contents]


def _describe_classes(folder: SetFolder) -> Mapping[str, Any]:
    assert folder.classes is not None
    names = folder.classes.names
    if names == shipped_classes("vid30").names:
        return {}
    wnids = folder.classes.wnids or ("",) * len(names)
    classes = {n: w or None for n, w in zip(names, wnids, strict=True)}
    return {"classes": classes, **({"closed": [True]} if folder.classes.closed else {})}


def _name_file(row: Mapping[str, Any]) -> str:
    video = PurePosixPath(row["video"])
    if video.is_absolute() or ".." in video.parts:
        raise UsageError(f"the video '{video}' is no path inside a folder; rename it")
    if video.parts[0] != "val":
        video = PurePosixPath("val") / video
    return f"{video.as_posix()}/{row['frame']:06d}.JPEG"
