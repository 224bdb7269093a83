"""Detections matched to ground truth once, at all ten IoU thresholds of COCO together.

Equal to COCOeval(bbox) of pycocotools 2.0, which holds boxes as x, y, w, h: only an IoU within
rounding of a threshold can fall on the other side, where x + w is not exact. Every number about
average precision and recall reads the flags kept here
(`steadyeye.metrics.detection.average_precision`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.disk_columns import DiskColumn, split_entries, split_spans
from steadyeye.metrics.detection.box_groups import (
    Floats,
    Groups,
    Ints,
    Mask,
    Rows,
    group_boxes,
)
from steadyeye.metrics.detection.iou_thresholds import IOUS

PIECE = 200_000
"""Detections that are matched together: their boxes take memory until the next piece."""
SPAN, SPANS = 1_000_000, 16
"""Detections whose flags are put in order together, and how many such spans there are about."""
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

BARS = np.minimum(IOUS, 1 - 1e-10)

EVERY = np.uint16((1 << len(IOUS)) - 1)


@dataclass(frozen=True, eq=False)
class Matched:
    """The verdict on each detection, in the order of `groups.row`.

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
    for part in split_entries(len(detections)):
        assert not np.isnan(detections.score[part]).any(), "NaN is no score"
    object_keys, detection_keys = (
        (_indices(table.image, images), _indices(table.label, classes))
        for table in (truth, detections)
    )
    groups = group_boxes(object_keys, detection_keys, detections.score, images, classes)
    return tuple(_match_groups(truth, detections, groups, area) for area in areas)


def _match_groups(truth: BoxTable, detections: BoxTable, groups: Groups, area: Range) -> Matched:
    """The detections of all groups matched, the groups in pieces."""
    flags = DiskColumn(np.uint16), DiskColumn(np.uint16)
    positives = DiskColumn(np.int32)
    least, most = area
    for begin, end in split_spans(groups.first, PIECE):
        first, truth_first = (
            ends[begin : end + 1] - ends[begin] for ends in (groups.first, groups.truth_first)
        )
        objects = groups.truth[groups.truth_first[begin] : groups.truth_first[end]]
        rows = groups.member_row[groups.first[begin] : groups.first[end]]
        crowd, extents = truth.crowd[objects], truth.area[objects]
        ranks = _ignored_last(crowd | (extents < least) | (extents > most), truth_first)
        hit, matched = np.zeros((2, len(rows)), dtype=np.uint16)
        corners = truth.boxes.take(objects, axis=0), crowd, truth_first
        boxes = detections.boxes.take(rows, axis=0), first
        _assign_objects(corners, boxes, ranks, (hit, matched))
        extents = detections.area[rows]
        ignored = np.where((extents < least) | (extents > most), EVERY ^ hit, matched ^ hit)
        flags[0].append(hit)
        flags[1].append(ignored)
        positives.append(ranks[1])
    hit, ignored = _rank_flags((flags[0].array(), flags[1].array()), groups.members)
    return Matched(groups, hit, ignored, positives.array())


def _rank_flags(by_group: tuple[Flags, Flags], members: Rows) -> tuple[Flags, Flags]:
    """Flags in the order of `groups.row`; `by_group`: in that of `members`."""
    ranked = DiskColumn(np.uint16), DiskColumn(np.uint16)
    # places are spread over all detections, and what is written to takes memory
    span = max(SPAN, len(members) // SPANS)
    for start in range(0, len(members), span):
        end = min(start + span, len(members))
        near = np.empty((2, end - start), dtype=np.uint16)
        for part in split_entries(len(members)):
            places = members[part]
            is_near = (places >= start) & (places < end)
            for own, flags in zip(near, by_group, strict=True):
                own[places[is_near] - start] = flags[part][is_near]
        for column, own in zip(ranked, near, strict=True):
            column.append(own)
    return ranked[0].array(), ranked[1].array()


def ignore_detections_on(matched: Matched, detections: BoxTable, outside: BoxTable) -> Matched:
    """The matches, with unmatched detections on objects `outside` ignored.

    At each threshold these are detections that overlap such an object by the threshold, for any
    labels; one object may cover several detections. `detections`: those that were matched.
    """
    groups = matched.groups
    order = np.argsort(outside.image, kind="stable")
    first = np.searchsorted(outside.image[order], np.arange(groups.images + 1))
    objects = (outside.boxes.take(order, axis=0), outside.crowd[order], first)
    covered = _flag_covered((detections.boxes, groups.row), groups.row_image, objects)
    return replace(matched, ignored=matched.ignored | (covered & ~matched.hit))


def _indices(column: Ints, end: int) -> Ints:
    """Indices as a kernel can trust them, which does not check bounds."""
    for part in split_entries(len(column)):
        assert column[part].min(initial=0) >= 0, "an index below 0"
        assert column[part].max(initial=-1) < end, f"an index beyond {end - 1}"
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


# one function and no tuples within its loops: numba counts references to every array in a tuple,
# which made this six times slower
@njit(nogil=True, cache=True)
def _assign_objects(objects: Any, detections: Any, ranks: Any, flags: Any) -> None:
    """Writes to `flags` the thresholds at which each detection takes a counted object, and any.

    `objects`, `detections`: boxes by group, and the first of each group; `ranks`: of
    `_ignored_last`.
    """
    (corners, crowd, truth_first), (boxes, first) = objects, detections
    (order, positives), (right, matched) = ranks, flags
    taken = np.zeros(len(crowd), dtype=np.int64)
    most = 0
    for g in range(len(positives)):
        most = max(most, truth_first[g + 1] - truth_first[g])
    rival, won = np.zeros((2, most), dtype=np.int64)
    overlap = np.empty(most)
    for g in range(len(positives)):
        middle = truth_first[g] + positives[g]
        for d in range(first[g], first[g + 1]):
            rivals = 0
            for k in range(truth_first[g], truth_first[g + 1]):
                t = order[k]
                iou = share_of(boxes, d, corners, t, crowd[t])
                if iou < BARS[0]:
                    continue
                free = 0
                for i in range(len(BARS)):
                    free |= (iou >= BARS[i]) << i
                if not crowd[t]:
                    free &= ~taken[t]
                for j in range(rivals):
                    # one that counts is not given up for one that does not; of equals the last wins
                    if overlap[j] > iou or rival[j] < middle <= k:
                        free &= ~won[j]
                    else:
                        won[j] &= ~free
                rival[rivals], overlap[rivals], won[rivals] = k, iou, free
                rivals += 1
            for j in range(rivals):
                taken[order[rival[j]]] |= won[j]
                matched[d] |= won[j]
                if rival[j] < middle:
                    right[d] |= won[j]


@njit(nogil=True, cache=True)
def _flag_covered(detections: Any, image: Rows, objects: Any) -> Flags:
    """The thresholds that each detection's overlap with an object of its image reaches.

    `detections`: boxes, and the rows of those that are looked at.
    """
    (boxes, rows), (corners, crowd, first) = detections, objects
    covered = np.zeros(len(rows), dtype=np.uint16)
    for d in range(len(rows)):
        best = 0.0
        for t in range(first[image[d]], first[image[d] + 1]):
            best = max(best, share_of(boxes, rows[d], corners, t, crowd[t]))
        for i in range(len(BARS)):
            if best >= BARS[i]:
                covered[d] |= np.uint16(1 << i)
    return covered


@njit(nogil=True, cache=True)
def share_of(boxes: Floats, d: int, corners: Floats, t: int, crowd: bool) -> float:
    """The IoU of box d and box t; of a crowd t, the share of d that is inside it. 0 if apart."""
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
