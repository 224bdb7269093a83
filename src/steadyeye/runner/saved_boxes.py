"""What the boxes of saved detections say of the file that holds them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.types import Sample

Entry: TypeAlias = Mapping[str, Any]
Matches: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Category id of each detection that lies on a true box, and the data's class of that box."""

ENOUGH, IOU = 5, 0.5  # detections on true boxes from which something can be told


def text(value: object) -> str:
    """An id as text; 7.0, as tables write it, is 7."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole and isinstance(value, float) else str(value)


def on_true_boxes(entries_of: Mapping[str, Sequence[Entry]], samples: Iterable[Sample]) -> Matches:
    """Which detections lie on a true box, by their category id and that box's class."""
    numbers: list[int] = []
    labels: list[int] = []
    for sample in samples:
        entries, truth = entries_of.get(sample.id, ()), sample.boxes
        if truth is None or not entries:
            continue
        real = ~truth.crowd & (truth.labels != OOD)
        best, share = _overlaps(corners(entries), truth.boxes[real])
        for entry, place, iou in zip(entries, best, share, strict=True):
            if iou > IOU:
                numbers.append(entry["category_id"])
                labels.append(int(truth.labels[real][place]))
    return np.array(numbers, dtype=np.int64), np.array(labels, dtype=np.int64)


def corners(entries: Sequence[Entry]) -> NDArray[np.float64]:
    """(n, 4) x0 y0 x1 y1 of the entries' x y width height."""
    sides = np.array([entry["bbox"] for entry in entries], dtype=np.float64).reshape(-1, 4)
    return np.concatenate([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1)


def _overlaps(
    detected: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Of each box the place of the one it overlaps most, and their IoU; 0 where there is none."""
    if not len(truth):
        return np.zeros(len(detected), dtype=np.intp), np.zeros(len(detected))
    low = np.maximum(detected[:, None, :2], truth[None, :, :2])
    high = np.minimum(detected[:, None, 2:], truth[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    own, other = ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (detected, truth))
    union = own[:, None] + other[None] - common
    share = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    best = share.argmax(axis=1)
    return best, share[np.arange(len(detected)), best]


def check_sides(
    entries_of: Mapping[str, Sequence[Entry]], samples: Iterable[Sample], name: str
) -> None:
    """Raises `UsageError` where boxes are shares of the image or x0 y0 x1 y1.

    Shares: all lie within one pixel. Corners: of ten or more a tenth reaches out of its image as x,
    y, width, height, and none does as corners, which are all in order.
    """
    total = out = 0
    largest = 0.0
    as_corners = True
    for sample in samples:
        entries = entries_of.get(sample.id, ())
        if not entries:
            continue
        read = corners(entries)
        raw = np.array([entry["bbox"] for entry in entries], dtype=np.float64)
        largest = max(largest, float(read.max()))
        if sample.size:
            ends = np.array([sample.size[1], sample.size[0]]) + 1
            total += len(read)
            out += int((read[:, 2:] > ends).any(axis=1).sum())
            as_corners &= bool(((raw[:, 2:] <= ends) & (raw[:, 2:] >= raw[:, :2])).all())
    if 0 < largest <= 1:
        raise UsageError(
            f"'{name}': all boxes are within 1 × 1 pixel, as if they were shares of the image's "
            "sides; give pixels"
        )
    if total >= 2 * ENOUGH and out >= total / 10 and as_corners:
        raise UsageError(
            f"'{name}': {out:,} of {number_of(total, 'box')} extend beyond their image as x, y, "
            "width, height and none as x0, y0, x1, y1; write width and height"
        )


def doubles(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The note of detections that stand in a file twice; none where none does."""
    times = Counter(
        (text(e["image_id"]), e["category_id"], *map(float, e["bbox"]), e["score"]) for e in entries
    )
    more = len(entries) - len(times)
    if not more:
        return ()
    return (
        f"{more:,} of {number_of(len(entries), 'detection')} are in the file twice; each counts, "
        "as a false positive if the other one found the object",
    )
