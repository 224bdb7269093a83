"""What the boxes of saved detections say of the file that holds them."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.types import Source
from steadyeye.runner.saved_entries import Grouping, SavedEntries

Matches: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Category id of each detection that lies on a true box, and the data's class of that box."""

FACTORS = np.arange(7, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C16) + np.uint64(1)
"""Odd numbers, so that detections of one mark are mostly the same."""

ENOUGH, IOU = 5, 0.5  # detections on true boxes from which something can be told


def on_true_boxes(entries: SavedEntries, of_sample: Grouping, source: Source) -> Matches:
    """Which detections lie on a true box, by their category id and that box's class."""
    corners = entries.corners
    numbers: list[NDArray[np.int64]] = []
    labels: list[NDArray[np.int64]] = []
    for sample in of_sample.samples.tolist():
        places, truth = of_sample.of(sample), source[sample].boxes
        if truth is None:
            continue
        real = ~truth.crowd & (truth.labels != OOD)
        best, share = _overlaps(corners[places], truth.boxes[real])
        on_one = share > IOU
        numbers.append(entries.category[places[on_one]])
        labels.append(truth.labels[real][best[on_one]].astype(np.int64))
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *numbers]), np.concatenate([none, *labels])


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


def check_sides(entries: SavedEntries, of_sample: Grouping, source: Source, name: str) -> None:
    """Raises `UsageError` where boxes are shares of the image or x0 y0 x1 y1.

    Shares: all lie within one pixel. Corners: of ten or more a tenth reaches out of its image as x,
    y, width, height, and none does as corners, which are all in order.
    """
    if not len(entries):
        return
    raw = entries.sides
    if 0 < (raw[:, :2] + raw[:, 2:]).max() <= 1:
        raise UsageError(
            f"'{name}': all boxes are within 1 × 1 pixel, as if they were shares of the image's "
            "sides; give pixels"
        )
    if _has_no_corners(raw, of_sample, source):
        return
    corners = entries.corners
    ends = np.full((len(of_sample.bounds) - 1, 2), np.nan)
    for sample in of_sample.samples.tolist():
        size = source[sample].size
        if size:
            ends[sample] = size[1] + 1, size[0] + 1
    limit = np.repeat(ends, np.diff(of_sample.bounds), axis=0)
    known = ~np.isnan(limit[:, 0])
    limit, places = limit[known], of_sample.order[known]
    total, out = len(places), int((corners[places, 2:] > limit).any(axis=1).sum())
    last = raw[places, 2:]
    as_corners = ((last <= limit) & (last >= raw[places, :2])).all()
    if total >= 2 * ENOUGH and out >= total / 10 and as_corners:
        raise UsageError(
            f"'{name}': {out:,} of {number_of(total, 'box')} extend beyond their image as x, y, "
            "width, height and none as x0, y0, x1, y1; write width and height"
        )


def _has_no_corners(raw: NDArray[np.float64], of_sample: Grouping, source: Source) -> bool:
    """Whether a box of an image of known size is none as x0 y0 x1 y1: that settles most files."""
    sample = np.empty(len(raw), dtype=np.int64)
    sample[of_sample.order] = np.repeat(
        np.arange(len(of_sample.bounds) - 1), np.diff(of_sample.bounds)
    )
    images = np.unique(sample[(raw[:, 2:] < raw[:, :2]).any(axis=1)])
    return any(source[image].size for image in images.tolist())


def doubles(entries: SavedEntries) -> tuple[str, ...]:
    """The note of detections that stand in a file twice; none where none does."""
    # 0 and −0 are one number
    numbers = [entries.image.astype(np.int64), entries.category]
    sides = np.ascontiguousarray((entries.sides + 0.0).T)
    columns = [column.view(np.uint64) for column in (*numbers, *sides, entries.score + 0.0)]
    marks = np.zeros(len(entries), dtype=np.uint64)
    for column, factor in zip(columns, FACTORS, strict=True):
        marks += (column ^ (column >> np.uint64(32))) * factor
    ordered = np.sort(marks)
    # all but those of these marks are different
    alike = np.flatnonzero(np.isin(marks, ordered[1:][ordered[1:] == ordered[:-1]]))
    more = len(alike) - len(np.unique(np.stack([column[alike] for column in columns]), axis=1).T)
    if not more:
        return ()
    return (
        f"{more:,} of {number_of(len(entries), 'detection')} are in the file twice; each counts, "
        "as a false positive if the other one found the object",
    )
