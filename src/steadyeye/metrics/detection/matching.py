"""Detections matched to ground truth once, at all ten IoU thresholds of COCO together.

Equal to COCOeval(bbox) of pycocotools 2.0, which holds boxes as x, y, w, h: only an IoU within
rounding of a threshold can fall on the other side, where x + w is not exact. Every number about
average precision and recall reads the flags kept here
(`steadyeye.metrics.detection.average_precision`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.disk_columns import release_pages
from steadyeye.metrics.detection.box_groups import Floats, Groups, Ints, Mask, Rows, group_boxes

PIECE = 200_000
"""Detections that are matched together: their boxes take memory until the next piece."""
Flags: TypeAlias = NDArray[np.uint16]
Range: TypeAlias = tuple[float, float]
ALL: Range = (0.0, 1e5**2)
AREAS: Mapping[str, Range] = {
    "all": ALL,
    "small": (0.0, 32.0**2),
    "medium": (32.0**2, 96.0**2),
    "large": (96.0**2, 1e5**2),
}
"""COCO's ranges of the area of an object, in square pixels, both ends belonging to the range."""

IOUS = tuple(float(iou) for iou in np.linspace(0.5, 0.95, 10))
"""The IoU thresholds 0.5, 0.55 … 0.95; bit i of a flag speaks of `IOUS[i]`."""

BARS = np.minimum(IOUS, 1 - 1e-10)

EVERY = np.uint16((1 << len(IOUS)) - 1)


@dataclass(frozen=True, eq=False)
class Matched:
    """What became of each detection, in the order of `groups.row`.

    `hit`: (m,) uint16, bit i set where it is a true positive at `IOUS[i]`.
    `ignored`: (m,) uint16, bit i set where it is neither true nor false: matched to a crowd or to
    an object outside the area range, or itself outside and unmatched, or excused. Neither: a false
    positive.
    `positives`: (g,) int32, objects of each group to be found: no crowds, all within the range.
    """

    groups: Groups
    hit: Flags
    ignored: Flags
    positives: Rows


def match(
    truth: BoxTable, detections: BoxTable, images: int, classes: int, area: Range = ALL
) -> Matched:
    """The detections matched to the ground truth of their image and category.

    `images`, `classes`: how many there are; indices lie below, and scores are not NaN. All labels 0
    make it localization. `area`: the range of areas that count, in square pixels, both ends
    included. By falling score, each detection takes the object of highest IoU that is still free,
    at each threshold on its own; crowds and objects outside the range only where no other will do.
    The IoU with a crowd is the share of the detection inside it, and any number can take it.
    """
    return by_area(truth, detections, images, classes, (area,))[0]


def by_area(
    truth: BoxTable,
    detections: BoxTable,
    images: int,
    classes: int,
    areas: Sequence[Range] = tuple(AREAS.values()),
) -> tuple[Matched, ...]:
    """`match` for each of `areas`, by default all, small, medium and large; sorted only once."""
    assert not np.isnan(detections.score).any(), "NaN is no score"
    object_keys, detection_keys = (
        (_indices(table.image, images), _indices(table.label, classes))
        for table in (truth, detections)
    )
    groups = group_boxes(object_keys, detection_keys, detections.score, images, classes)
    crowd, extents = truth.crowd[groups.truth], truth.area[groups.truth]
    release_pages()
    objects = (truth.boxes.take(groups.truth, axis=0), crowd, groups.truth_first)
    rows = groups.row[groups.members]
    boxes = (detections.boxes, rows, groups.members, groups.first)
    matches = []
    for least, most in areas:
        beside = crowd | (extents < least) | (extents > most)
        order, positives = _ignored_last(beside, groups.truth_first)
        hit, matched = np.zeros((2, len(rows)), dtype=np.uint16)
        for piece in _split(groups.first):
            _assign_objects(objects, boxes, (order, positives), piece, (hit, matched))
            release_pages()
        outside = ((detections.area < least) | (detections.area > most))[groups.row]
        release_pages()
        ignored = np.where(outside, EVERY ^ hit, matched ^ hit)
        matches.append(Matched(groups, hit, ignored, positives))
    return tuple(matches)


def ignore_detections_on(matched: Matched, detections: BoxTable, outside: BoxTable) -> Matched:
    """The same with detections ignored that were matched to nothing and lie on objects `outside`.

    At each threshold, those that overlap one of them by as much, whatever the labels; one object
    excuses any number of detections. `detections`: those that were matched.
    """
    groups = matched.groups
    order = np.argsort(outside.image, kind="stable")
    first = np.searchsorted(outside.image[order], np.arange(groups.images + 1))
    objects = (outside.boxes.take(order, axis=0), outside.crowd[order], first)
    covered = _flag_covered((detections.boxes, groups.row), groups.row_image, objects)
    return replace(matched, ignored=matched.ignored | (covered & ~matched.hit))


def _indices(column: Ints, end: int) -> Ints:
    """Indices as a kernel can trust them, which does not check bounds."""
    assert column.min(initial=0) >= 0, "an index below 0"
    assert column.max(initial=-1) < end, f"an index beyond {end - 1}"
    return np.ascontiguousarray(column, dtype=np.int64)


@njit(nogil=True, cache=True)
def _ignored_last(ignored: Mask, first: Rows) -> tuple[Rows, Rows]:
    """Places of objects, in each group the ignored after the others, and how many others."""
    order = np.empty(len(ignored), dtype=np.int32)
    positives = np.zeros(len(first) - 1, dtype=np.int32)
    for g in range(len(positives)):
        place = first[g]
        for t in range(first[g], first[g + 1]):
            if not ignored[t]:
                order[place] = t
                place += 1
        positives[g] = place - first[g]
        for t in range(first[g], first[g + 1]):
            if ignored[t]:
                order[place] = t
                place += 1
    return order, positives


def _split(first: Rows) -> Iterator[tuple[int, int]]:
    """Consecutive groups in pieces of about `PIECE` detections; `first`: where groups begin."""
    starts = np.arange(0, first[-1], PIECE)
    ends = [*np.searchsorted(first, starts).tolist(), len(first) - 1]
    return pairwise(ends)


# one function and no tuples within its loops: numba counts references to every array in a tuple,
# which made this six times slower
@njit(nogil=True, cache=True)
def _assign_objects(objects: Any, detections: Any, ranks: Any, groups: Any, flags: Any) -> None:
    """Notes at which thresholds each detection takes an object that counts, and any, in `flags`.

    `ranks`: what `_ignored_last` returned; `groups`: the first of those that are looked at, and the
    first that is not.
    """
    (corners, crowd, truth_first), (boxes, rows, members, first) = objects, detections
    (order, positives), (right, matched) = ranks, flags
    begin, end = groups
    taken = np.zeros(truth_first[end] - truth_first[begin], dtype=np.int64)
    most = 0
    for g in range(begin, end):
        most = max(most, truth_first[g + 1] - truth_first[g])
    rival, won = np.zeros((2, most), dtype=np.int64)
    overlap = np.empty(most)
    for g in range(begin, end):
        middle = truth_first[g] + positives[g]
        for d in range(first[g], first[g + 1]):
            rivals = 0
            for k in range(truth_first[g], truth_first[g + 1]):
                t = order[k]
                iou = _iou(boxes, rows[d], corners, t, crowd[t])
                if iou < BARS[0]:
                    continue
                free = 0
                for i in range(len(BARS)):
                    free |= (iou >= BARS[i]) << i
                if not crowd[t]:
                    free &= ~taken[t - truth_first[begin]]
                for j in range(rivals):
                    # one that counts is not given up for one that does not; of equals the last wins
                    if overlap[j] > iou or rival[j] < middle <= k:
                        free &= ~won[j]
                    else:
                        won[j] &= ~free
                rival[rivals], overlap[rivals], won[rivals] = k, iou, free
                rivals += 1
            for j in range(rivals):
                taken[order[rival[j]] - truth_first[begin]] |= won[j]
                matched[members[d]] |= won[j]
                if rival[j] < middle:
                    right[members[d]] |= won[j]


@njit(nogil=True, cache=True)
def _flag_covered(detections: Any, image: Rows, objects: Any) -> Flags:
    """Thresholds at which each detection overlaps an object of its image by as much.

    `detections`: boxes, and the rows of those that are looked at.
    """
    (boxes, rows), (corners, crowd, first) = detections, objects
    covered = np.zeros(len(rows), dtype=np.uint16)
    for d in range(len(rows)):
        best = 0.0
        for t in range(first[image[d]], first[image[d] + 1]):
            best = max(best, _iou(boxes, rows[d], corners, t, crowd[t]))
        for i in range(len(BARS)):
            if best >= BARS[i]:
                covered[d] |= np.uint16(1 << i)
    return covered


@njit(nogil=True, cache=True)
def _iou(boxes: Floats, d: int, corners: Floats, t: int, crowd: bool) -> float:
    """Intersection over union; with a crowd, over the area of the detection."""
    left, right = max(boxes[d, 0], corners[t, 0]), min(boxes[d, 2], corners[t, 2])
    top, bottom = max(boxes[d, 1], corners[t, 1]), min(boxes[d, 3], corners[t, 3])
    if right <= left or bottom <= top:
        return 0.0
    inside = (right - left) * (bottom - top)
    area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
    if crowd:
        return float(inside / area)
    other = (corners[t, 2] - corners[t, 0]) * (corners[t, 3] - corners[t, 1])
    return float(inside / (area + other - inside))
