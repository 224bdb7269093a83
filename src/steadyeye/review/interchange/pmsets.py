"""Reviewed frames in the layout in which ImageNet-Vid-Robust is released.

::

    metadata/pmsets.json   anchor file → the accepted neighbours' files
    metadata/labels.json   file → indices of its classes
    metadata/classes.json  the classes, where they are not VID-30
    val/<video>/…JPEG      the frames, six digits each
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.results.verdicts import count_undecided, verdicts
from steadyeye.review.sampling.image_store import place


def export(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes the accepted frames; `--data "imagenet_vid_robust(root=…)"` reads them.

    The layout knows no seconds, rates or frame types, and one list of labels a file. Other
    readers of the release take indices as VID-30: where `classes.json` is written they must be
    told of it. Returns counts. Raises `UsageError` for frames that are not decided, unless
    `partial`, for a set without labels, and for a frame to which two anchors give other labels.
    """
    if folder.classes is None or folder.content.get("kind") == "boxes":
        raise UsageError(f"'{folder.root}' has no labelled frames; pmsets.json needs labels")
    if (out / "metadata").exists():
        raise UsageError(f"'{out}' holds a release already; choose another --out")
    found = verdicts(connection, folder, plan)
    left = count_undecided("frames", found, partial=partial)
    kept = [row for row in folder.frames.to_pylist() if found[row["id"]].accepted]
    anchors = {row["group"]: _file(row) for row in kept if row["offset"] == 0}
    sets: dict[str, list[str]] = {file: [] for file in anchors.values()}
    labels: dict[str, list[int]] = {}
    images: dict[str, str] = {}
    for row in kept:
        if row["group"] not in anchors:
            continue
        file = _file(row)
        here = sorted(folder.classes.names.index(name) for name in found[row["id"]].labels)
        if labels.setdefault(file, here) != here:
            raise UsageError(
                f"two anchors give the frame '{file}' other labels, and labels.json holds one "
                "list a frame; export the format set"
            )
        images[file] = row["image"]
        if row["offset"] != 0:
            sets[anchors[row["group"]]].append(file)
    for file, image in images.items():
        place(folder.root, image, out / file)
    written = _write(out / "metadata", {"pmsets": sets, "labels": labels, **_classes(folder)})
    write_sums(out, [*written, *(out / file for file in images)])
    return {"anchors": len(sets), "frames": len(labels), "undecided": left}


def _write(metadata: Path, files: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Writes JSON files by name; returns them."""
    metadata.mkdir(parents=True)
    for name, content in files.items():
        write_file(metadata / f"{name}.json", encode(content))
    return [metadata / f"{name}.json" for name in files]


def _classes(folder: SetFolder) -> Mapping[str, Mapping[str, str | None]]:
    assert folder.classes is not None
    names = folder.classes.names
    if names == shipped_classes("vid30").names:
        return {}
    wnids = folder.classes.wnids or ("",) * len(names)
    return {"classes": {n: w or None for n, w in zip(names, wnids, strict=True)}}


def _file(row: Mapping[str, Any]) -> str:
    video = PurePosixPath(row["video"])
    if video.is_absolute() or ".." in video.parts:
        raise UsageError(f"the video '{video}' is no path inside a folder; rename it")
    if video.parts[0] != "val":
        video = PurePosixPath("val") / video
    return f"{video.as_posix()}/{row['frame']:06d}.JPEG"
