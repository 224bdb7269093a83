"""Answers with drawn boxes: checks the boxes, and drops those that were rejected before."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.data.annotations.coco_geometry import inside

TENTH = 0.1001  # pixels; the page rounds corners to tenths


def read_boxes(boxes: Any, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Boxes as they are stored: each {box: [x0, y0, x1, y1] in pixels, label}, a label of `names`.

    Boxes of a video may have a `track`, a number from 1 that is the same object's on every frame.
    Raises `UsageError` for the first that is none.
    """
    if not isinstance(boxes, list):
        raise UsageError("boxes must be a list")
    tidy = [_read_box(number, box, names) for number, box in enumerate(boxes, start=1)]
    tracks = [box["track"] for box in tidy if "track" in box]
    twice = next((track for track in tracks if tracks.count(track) > 1), None)
    if twice is not None:
        raise UsageError(f"two boxes are of track {twice}; give one of them another")
    return tidy


def _read_box(number: int, box: Any, classes: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(box, dict) or set(box) - {"track"} != {"box", "label"}:
        raise UsageError(f"box {number} must have a box and a label")
    corners = box["box"]
    if (
        not isinstance(corners, list)
        or len(corners) != 4
        or not all(isinstance(c, int | float) and not isinstance(c, bool) for c in corners)
        or not (0 <= corners[0] < corners[2] < 1e6 and 0 <= corners[1] < corners[3] < 1e6)
    ):
        raise UsageError(f"box {number} is {corners}; give 0 ≤ x0 < x1 and 0 ≤ y0 < y1 in pixels")
    if box["label"] not in classes:
        raise unknown("class", str(box["label"]), classes)
    tidy = {"box": [round(float(c), 2) for c in corners], "label": box["label"]}
    return {**tidy, **_read_track(number, box)}


def _read_track(number: int, box: Mapping[str, Any]) -> Mapping[str, int]:
    track = box.get("track")
    if track is None:
        return {}
    if not isinstance(track, int) or isinstance(track, bool) or not 0 < track < 2**31:
        raise UsageError(f"box {number} is of track {track!r}; give a whole number from 1")
    return {"track": track}


def cut_boxes(boxes: Sequence[Mapping[str, Any]], size: tuple[int, int]) -> list[Mapping[str, Any]]:
    """Boxes clipped to their image, beyond which they may reach by one pixel.

    `size`: (width, height) in pixels. Raises `UsageError` for the first that reaches farther.
    """
    cut = [inside(box["box"], *size) for box in boxes]
    for number, (box, corners) in enumerate(zip(boxes, cut, strict=True), start=1):
        if corners is None:
            raise UsageError(
                f"box {number} is {box['box']}, and the image has {size[0]} × {size[1]} pixels; "
                "draw it inside"
            )
    pairs = zip(boxes, cut, strict=True)
    return [{**box, "box": list(corners)} for box, corners in pairs if corners is not None]


def drop_rejected(
    boxes: Sequence[Mapping[str, Any]], rejected: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Boxes without those that equal a rejected suggestion to a tenth of a pixel.

    A box that a person draws again does not match its corners that closely.
    """
    return [box for box in boxes if not any(_is_same(box, other) for other in rejected)]


def _is_same(box: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    ends = zip(box["box"], other["box"], strict=True)
    return all(abs(a - b) <= TENTH for a, b in ends)
