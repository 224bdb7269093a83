"""Conclusions about a file of saved detections from its boxes."""

from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, check_pixels, iou
from steadyeye.core.disk_columns import release_pages
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.json_lists import list_pieces
from steadyeye.core.types import Source
from steadyeye.runner.saved_entries import Grouping, SavedEntries

Matches: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Category id of each detection that lies on a true box, and the data's class of that box."""

FACTORS = np.arange(7, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C16) + np.uint64(1)
"""Odd numbers, so that detections of one mark are mostly the same."""

ENOUGH, IOU = 5, 0.5  # detections on true boxes from which something can be told


def on_true_boxes(entries: SavedEntries, of_sample: Grouping, source: Source) -> Matches:
    """Which detections lie on a true box, by their category id and that box's class."""
    numbers: list[NDArray[np.int64]] = []
    labels: list[NDArray[np.int64]] = []
    for sample in of_sample.samples.tolist():
        places, truth = of_sample.of(sample), source[sample].boxes
        if truth is None:
            continue
        real = ~truth.crowd & (truth.labels != OOD)
        if not real.any():
            continue
        overlaps = iou(entries.corners(places), truth.boxes[real])
        on_one = overlaps.max(axis=1) > IOU
        numbers.append(entries.category[places[on_one]])
        labels.append(truth.labels[real][overlaps[on_one].argmax(axis=1)].astype(np.int64))
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *numbers]), np.concatenate([none, *labels])


def check_sides(entries: SavedEntries, of_sample: Grouping, source: Source, name: str) -> None:
    """Raises `UsageError` where boxes are shares of the image or x0 y0 x1 y1.

    Shares: all lie within one pixel. Corners: of ten or more a tenth reaches out of its image as x,
    y, width, height, and none does as corners, which are all in order.
    """
    if not len(entries):
        return
    pieces = list_pieces(len(entries))
    check_pixels(max(map(partial(_find_farthest, entries), pieces)), f"'{name}'")
    total = out = 0
    for samples in of_sample.split():
        limit = _limits(of_sample, samples, source)
        known = ~np.isnan(limit[:, 0])
        limit, places = limit[known], of_sample.places(samples)[known]
        raw = entries.sides[places]
        if not ((raw[:, 2:] <= limit) & (raw[:, 2:] >= raw[:, :2])).all():
            return  # one that is none as x0 y0 x1 y1 settles most files
        total += len(places)
        out += int((_ends(raw) > limit).any(axis=1).sum())
    if total >= 2 * ENOUGH and out >= total / 10:
        raise UsageError(
            f"'{name}': {out:,} of {number_of(total, 'box')} extend beyond their image as x, y, "
            "width, height and none as x0, y0, x1, y1; write width and height"
        )


def _find_farthest(entries: SavedEntries, part: slice) -> float:
    """The largest x1 or y1 of some entries."""
    farthest = float(_ends(entries.sides[part]).max())
    release_pages()
    return farthest


def _ends(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) x1 y1 of boxes given as x y width height."""
    return sides[:, :2] + sides[:, 2:]


def _limits(of_sample: Grouping, samples: slice, source: Source) -> NDArray[np.float64]:
    """(n, 2) how far boxes of consecutive samples may reach, x and y; NaN where it is not known."""
    ends = np.full((samples.stop - samples.start, 2), np.nan)
    counts = of_sample.counts(samples)
    for row in np.flatnonzero(counts).tolist():
        size = source[samples.start + row].size
        if size:
            ends[row] = size[1] + 1, size[0] + 1
    return np.repeat(ends, counts, axis=0)


def doubles(entries: SavedEntries, of_sample: Grouping) -> tuple[str, ...]:
    """A note on detections that are in a file twice; none without any."""
    more = sum(_count_doubles(entries, of_sample.places(part)) for part in of_sample.split())
    if not more:
        return ()
    return (
        f"{more:,} of {number_of(len(entries), 'detection')} in the file twice; each counts, "
        "as a false positive if the other one found the object",
    )


def _count_doubles(entries: SavedEntries, places: NDArray[np.int32]) -> int:
    """How many of the entries of some samples stand there once more."""
    # 0 and −0 are one number
    numbers = [entries.image[places].astype(np.int64), entries.category[places]]
    sides = np.ascontiguousarray((entries.sides[places] + 0.0).T)
    columns = [column.view(np.uint64) for column in (*numbers, *sides, entries.score[places] + 0.0)]
    marks = np.zeros(len(places), dtype=np.uint64)
    for column, factor in zip(columns, FACTORS, strict=True):
        marks += (column ^ (column >> np.uint64(32))) * factor
    ordered = np.sort(marks)
    # all but those of these marks are different
    alike = np.flatnonzero(np.isin(marks, ordered[1:][ordered[1:] == ordered[:-1]]))
    return len(alike) - len(np.unique(np.stack([column[alike] for column in columns]), axis=1).T)
