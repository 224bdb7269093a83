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

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = tuple[Ints, Ints]
MOST = 100
"""Detections that count: the best of each image and category."""
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


@dataclass(frozen=True, eq=False)
class Groups:
    """Two tables of boxes by image and category, by row number; the tables are not held.

    Of each of g groups, those of one image and one category that either table has, by image and
    then category: `image`, `label`: (g,) int64.
    `truth`: (t,) int64, rows of the ground truth, group by group, in the order of the table;
    group i has those from `truth_first[i]` to `truth_first[i + 1]`.

    Of each of m detections, the best `MOST` of each group, by category, then falling score, then
    image, then row: `row`, `row_image`: (m,) int64. `row_score`: (m,) float64. `tied`: (m,) bool,
    whether the next one has the same category, score and image. Category i has those from
    `bounds[i]` to `bounds[i + 1]`.
    `members`: (m,) int64, their places in `row`, group by group, best first; group i has those
    from `first[i]` to `first[i + 1]`.
    """

    images: int
    classes: int
    image: Ints
    label: Ints
    truth: Ints
    truth_first: Ints
    row: Ints
    row_image: Ints
    row_score: Floats
    tied: Mask
    bounds: Ints
    members: Ints
    first: Ints


def group_boxes(truth: Keys, detections: Keys, score: Floats, images: int, classes: int) -> Groups:
    """Both tables in groups; `truth`, `detections`: image and category of each row, (n,) int64.

    `score`: (n,) float64 of the detections. Equal scores keep the order of the table.
    """
    # every sort is stable, so that the one before decides between equals
    truth_order = _sort_by_counting(
        _sort_by_counting(np.arange(len(truth[0])), truth[1], classes), truth[0], images
    )
    falling = _falling(score, _sort_by_counting(np.arange(len(score)), detections[0], images))
    ranked = _sort_by_counting(falling, detections[1], classes)
    rows = _sort_by_counting(ranked, detections[0], images)
    groups, begins, is_best = _merge_groups(
        (truth[0][truth_order], truth[1][truth_order]), (detections[0][rows], detections[1][rows])
    )
    row, members = _order_best(ranked, rows, is_best)
    image, label, ordered = detections[0][row], detections[1][row], score[row]
    same = (image[1:] == image[:-1]) & (ordered[1:] == ordered[:-1]) & (label[1:] == label[:-1])
    return Groups(
        images,
        classes,
        image=groups[0],
        label=groups[1],
        truth=truth_order,
        truth_first=begins[0],
        row=row,
        row_image=image,
        row_score=ordered,
        tied=np.append(same, np.zeros(len(row) - len(same), dtype=np.bool_)),
        bounds=np.searchsorted(label, np.arange(classes + 1)),
        members=members,
        first=begins[1],
    )


def _falling(score: Floats, rows: Ints) -> Ints:
    """`rows` by falling score, stable."""
    keys = -score[rows]
    # repairing the ties of an unstable sort takes a fifth of the time of a stable one
    order = np.argsort(keys)
    return np.asarray(rows[_sort_ties(order, keys[order])])


@njit(nogil=True, cache=True)
def _sort_ties(order: Ints, keys: Floats) -> Ints:
    """`order` with the places of equal keys rising."""
    out = order.copy()
    begin = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[i] != keys[begin]:
            if i > begin + 1:
                out[begin:i] = np.sort(out[begin:i])
            begin = i
    return out


@njit(nogil=True, cache=True)
def _sort_by_counting(rows: Ints, key: Ints, end: int) -> Ints:
    """`rows` by `key[row]`, all below `end`, stable: a counting sort."""
    at = np.zeros(end + 1, dtype=np.int64)
    for row in rows:
        at[key[row] + 1] += 1
    for i in range(end):
        at[i + 1] += at[i]
    out = np.empty_like(rows)
    for row in rows:
        out[at[key[row]]] = row
        at[key[row]] += 1
    return out


@njit(nogil=True, cache=True)
def _merge_groups(truth: Keys, detections: Keys) -> tuple[Keys, Keys, Mask]:
    """The groups of sorted keys, where each begins in both, and which detections are its best."""
    most = len(truth[0]) + len(detections[0])
    image, label = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    truth_first, first = np.zeros(most + 1, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    is_best = np.zeros(len(detections[0]), dtype=np.bool_)
    g = t = d = 0
    while t < len(truth[0]) or d < len(detections[0]):
        if t < len(truth[0]):
            image[g], label[g] = truth[0][t], truth[1][t]
        if d < len(detections[0]) and (
            t == len(truth[0]) or (detections[0][d], detections[1][d]) < (image[g], label[g])
        ):
            image[g], label[g] = detections[0][d], detections[1][d]
        while t < len(truth[0]) and truth[0][t] == image[g] and truth[1][t] == label[g]:
            t += 1
        rank = 0
        while (
            d < len(detections[0]) and detections[0][d] == image[g] and detections[1][d] == label[g]
        ):
            is_best[d] = rank < MOST
            rank += 1
            d += 1
        g += 1
        truth_first[g], first[g] = t, first[g - 1] + min(rank, MOST)
    return (image[:g], label[:g]), (truth_first[: g + 1], first[: g + 1]), is_best


@njit(nogil=True, cache=True)
def _order_best(ranked: Ints, rows: Ints, is_best: Mask) -> Keys:
    """Those of `ranked` that are kept, and the places there of those of `rows`, which say it."""
    place = np.full(len(rows), -1, dtype=np.int64)
    for i in range(len(rows)):
        if is_best[i]:
            place[rows[i]] = 0
    row = np.empty(np.count_nonzero(is_best), dtype=np.int64)
    count = 0
    for ranked_row in ranked:
        if place[ranked_row] == 0:
            row[count], place[ranked_row] = ranked_row, count
            count += 1
    return row, place[rows[is_best]]


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
    `positives`: (g,) int64, objects of each group to be found: no crowds, all within the range.
    """

    groups: Groups
    hit: Flags
    ignored: Flags
    positives: Ints


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
    objects = (truth.boxes.take(groups.truth, axis=0), crowd, groups.truth_first)
    rows = groups.row[groups.members]
    boxes = (detections.boxes.take(rows, axis=0), groups.members, groups.first)
    sizes = detections.area[groups.row]
    matches = []
    for least, most in areas:
        beside = crowd | (extents < least) | (extents > most)
        order, positives = _ignored_last(beside, groups.truth_first)
        hit, matched = _assign_objects(objects, boxes, order, positives)
        outside = (sizes < least) | (sizes > most)
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
    covered = _flag_covered(detections.boxes.take(groups.row, axis=0), groups.row_image, objects)
    return replace(matched, ignored=matched.ignored | (covered & ~matched.hit))


def _indices(column: Ints, end: int) -> Ints:
    """Indices as a kernel can trust them, which does not check bounds."""
    assert column.min(initial=0) >= 0, "an index below 0"
    assert column.max(initial=-1) < end, f"an index beyond {end - 1}"
    return np.ascontiguousarray(column, dtype=np.int64)


@njit(nogil=True, cache=True)
def _ignored_last(ignored: Mask, first: Ints) -> tuple[Ints, Ints]:
    """Places of objects, in each group the ignored after the others, and how many others."""
    order = np.empty(len(ignored), dtype=np.int64)
    positives = np.zeros(len(first) - 1, dtype=np.int64)
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
def _assign_objects(
    objects: Any, detections: Any, order: Ints, positives: Ints
) -> tuple[Flags, Flags]:
    """Thresholds at which each detection takes an object that counts, and any."""
    (corners, crowd, truth_first), (boxes, members, first) = objects, detections
    right = np.zeros(len(members), dtype=np.uint16)
    matched = np.zeros(len(members), dtype=np.uint16)
    taken, rival, won = np.zeros((3, len(crowd)), dtype=np.int64)
    overlap = np.empty(len(crowd))
    for g in range(len(positives)):
        middle = truth_first[g] + positives[g]
        for d in range(first[g], first[g + 1]):
            rivals = 0
            for k in range(truth_first[g], truth_first[g + 1]):
                t = order[k]
                iou = _iou(boxes, d, corners, t, crowd[t])
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
                matched[members[d]] |= won[j]
                if rival[j] < middle:
                    right[members[d]] |= won[j]
    return right, matched


@njit(nogil=True, cache=True)
def _flag_covered(boxes: Floats, image: Ints, objects: Any) -> Flags:
    """Thresholds at which each detection overlaps an object of its image by as much."""
    corners, crowd, first = objects
    covered = np.zeros(len(boxes), dtype=np.uint16)
    for d in range(len(boxes)):
        best = 0.0
        for t in range(first[image[d]], first[image[d] + 1]):
            best = max(best, _iou(boxes, d, corners, t, crowd[t]))
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
