"""A set to review, sampled: anchors and their neighbours, stored once each, and marked.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2.1: one anchor a video,
drawn uniformly, and the frames within ±k.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.core.types import Classes, Sample, Source, Tag
from steadyeye.data.annotations.review_set import FRAMES, SCENE_CUT, VERSION, check_vacant, table
from steadyeye.review.sampling.image_store import keep
from steadyeye.review.sampling.near_duplicates import NEAR, view

JUMP = 30.0  # grey levels between consecutive thumbnails: a scene cut


@dataclass(frozen=True)
class Sampling:
    """What a set is called, and what its manifest says of how it was drawn."""

    name: str
    drawn: Mapping[str, Any]
    classes: Classes | None


@dataclass(frozen=True, eq=False)
class Stored:
    """A frame that was stored: its row of the table, and a small grey view to compare it by."""

    row: Mapping[str, Any]
    view: NDArray[np.float32]


def store(source: Source, out: Path) -> Iterator[Stored]:
    """Stores the frames of all pm-sets of a source under a folder, one after the other.

    They are JPEG files named by their content, those that are JPEG files as they are; one that is
    there already is not written again. Raises `UsageError` for a source without pm-sets.
    """
    if not {"group", "offset"} <= set(source.columns):
        raise UsageError(f"{source.name} has no anchors and neighbours; sample videos")
    for number in range(len(source)):
        one = source[number]
        name, image = keep(out, one.image)
        seen = one.measure(image) if one.measure else {}
        yield Stored(_row(one, name, {**one.tags, **seen}), view(image))


def sample(stored: Iterable[Stored], out: Path, how: Sampling) -> int:
    """Writes the set of the frames stored in its folder and returns how many there are.

    The manifest is written last, so that a stopped sampling is no set and can be begun again.
    Raises `UsageError` where the folder holds a set already.
    """
    check_vacant(out)
    rows: list[dict[str, Any]] = []
    views: dict[str, NDArray[np.float32]] = {}
    for each in stored:
        rows.append(dict(each.row))
        views[each.row["id"]] = each.view
    if not rows:
        raise UsageError("there are no frames to review; give videos")
    marked = [_beyond(row) for row in _duplicates(_cuts(rows, views), views)]
    names = how.classes.names if how.classes else ()
    write_file(out / "frames.parquet", table(marked, FRAMES, names))
    content = encode(_manifest(how))
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "frames.parquet"])
    write_file(out / "set.json", content)
    return len(rows)


def _row(one: Sample, image: str, tags: Mapping[str, Tag]) -> dict[str, Any]:
    return {
        "id": one.id,
        "group": one.group,
        "video": str(tags.get("video", one.group)),
        "frame": int(tags.get("frame", tags["offset"])),
        "offset": int(tags["offset"]),
        "seconds": float(tags.get("seconds", 0.0)),
        "fps": float(tags.get("fps", 0.0)),
        "frame_type": str(tags.get("frame_type", "")),
        "labels": list(one.truth),
        "image": image,
        "across_cut": False,
        "duplicate_of": "",
        "accepted": True,
        "reason": "",
    }


def _beyond(row: dict[str, Any]) -> dict[str, Any]:
    """The row, not accepted where a scene cut lies between it and its anchor."""
    return {**row, "accepted": False, "reason": SCENE_CUT} if row["across_cut"] else row


def _cuts(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows, marked where a scene cut lies between a frame and its anchor."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    marked = []
    for group in groups.values():
        ordered = sorted(group, key=lambda row: row["offset"])
        jumps = [
            later["offset"]
            for sooner, later in pairwise(ordered)
            if np.abs(views[sooner["id"]] - views[later["id"]]).mean() > JUMP
        ]
        for row in ordered:
            low, high = sorted((0, row["offset"]))
            marked.append({**row, "across_cut": any(low < jump <= high for jump in jumps)})
    return marked


def _duplicates(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows, with the earlier anchor that an anchor nearly equals."""
    anchors = [row for row in rows if row["offset"] == 0]
    seen = np.stack([views[row["id"]] for row in anchors])
    same: dict[str, str] = {}
    for number, row in enumerate(anchors):
        near = np.flatnonzero(np.abs(seen[:number] - seen[number]).mean(axis=1) < NEAR)
        if len(near):
            same[row["group"]] = anchors[int(near[0])]["group"]
    return [{**row, "duplicate_of": same.get(row["group"], "")} for row in rows]


def _manifest(how: Sampling) -> dict[str, Any]:
    classes = how.classes
    return {
        "version": VERSION,
        "name": how.name,
        "kind": "frames",
        "classes": _record_classes(classes) if classes else None,
        "drawn": dict(how.drawn),
        "provenance": provenance(),
    }


def _record_classes(classes: Classes) -> dict[str, Any]:
    return {"names": classes.names, "wnids": classes.wnids, "closed": classes.closed}
