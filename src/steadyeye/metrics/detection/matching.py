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
Rows: TypeAlias = NDArray[np.int32]
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
    then category: `image`, `label`: (g,) int32.
    `truth`: (t,) int32, rows of the ground truth, group by group, in the order of the table;
    group i has those from `truth_first[i]` to `truth_first[i + 1]`.

    Of each of m detections, the best `MOST` of each group, by category, then falling score, then
    image, then row: `row`, `row_image`: (m,) int32. `row_score`: (m,) float64. `tied`: (m,) bool,
    whether the next one has the same category, score and image. Category i has those from
    `bounds[i]` to `bounds[i + 1]`.
    `members`: (m,) int32, their places in `row`, group by group, best first; group i has those
    from `first[i]` to `first[i + 1]`.
    """

    images: int
    classes: int
    image: Rows
    label: Rows
    truth: Rows
    truth_first: Rows
    row: Rows
    row_image: Rows
    row_score: Floats
    tied: Mask
    bounds: Ints
    members: Rows
    first: Rows


def group_boxes(truth: Keys, detections: Keys, score: Floats, images: int, classes: int) -> Groups:
    """Both tables in groups; `truth`, `detections`: image and category of each row, (n,) int64.

    `score`: (n,) float64 of the detections. Equal scores keep the order of the table.
    """
    assert max(len(truth[0]), len(score)) < 2**31, "rows are counted in 32 bits"
    # every sort is stable, so that the one before decides between equals
    truth_order = _sort_by_counting(
        _sort_by_counting(np.arange(len(truth[0]), dtype=np.int32), truth[1], classes),
        truth[0],
        images,
    )
    by_image = _sort_by_counting(np.arange(len(score), dtype=np.int32), detections[0], images)
    ranked = _sort_by_counting(_falling(score, by_image), detections[1], classes)
    del by_image
    rows = _sort_by_counting(ranked, detections[0], images)
    groups, begins, is_best = _merge_groups((*truth, truth_order), (*detections, rows))
    row, members = _order_best(ranked, rows, is_best)
    del ranked, rows, is_best
    image, bounds = _gather_images(detections, row, classes)
    ordered = score[row]
    tied = np.zeros(len(row), dtype=np.bool_)
    tied[:-1] = (image[1:] == image[:-1]) & (ordered[1:] == ordered[:-1])
    tied[bounds[1:][bounds[1:] > 0] - 1] = False  # the next one has another category
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
        tied=tied,
        bounds=bounds,
        members=members,
        first=begins[1],
    )


def _falling(score: Floats, rows: Rows) -> Rows:
    """`rows` by falling score, stable."""
    keys = -score[rows]
    # repairing the ties of an unstable sort takes a fifth of the time of a stable one
    order = np.argsort(keys)
    _sort_ties(order, keys)
    return np.asarray(rows[order])


@njit(nogil=True, cache=True)
def _sort_ties(order: Ints, keys: Floats) -> None:
    """Sorts the places of equal keys in `order`."""
    begin = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[order[i]] != keys[order[begin]]:
            if i > begin + 1:
                order[begin:i] = np.sort(order[begin:i])
            begin = i


@njit(nogil=True, cache=True)
def _sort_by_counting(rows: Rows, key: Ints, end: int) -> Rows:
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
def _merge_groups(truth: Any, detections: Any) -> tuple[Any, Any, Mask]:
    """The groups of two tables, where each begins in both, and which detections are its best.

    `truth`, `detections`: image and category of each row, and the rows by both.
    """
    (truth_image, truth_label, truth_rows), (row_image, row_label, rows) = truth, detections
    most = len(truth_rows) + len(rows)
    image, label = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    truth_first = np.zeros(most + 1, dtype=np.int32)
    first = np.zeros(most + 1, dtype=np.int32)
    is_best = np.zeros(len(rows), dtype=np.bool_)
    g = t = d = 0
    while t < len(truth_rows) or d < len(rows):
        of = own = 0
        if t < len(truth_rows):
            of, own = truth_image[truth_rows[t]], truth_label[truth_rows[t]]
        if d < len(rows) and (
            t == len(truth_rows) or (row_image[rows[d]], row_label[rows[d]]) < (of, own)
        ):
            of, own = row_image[rows[d]], row_label[rows[d]]
        image[g], label[g] = of, own
        while (
            t < len(truth_rows)
            and truth_image[truth_rows[t]] == of
            and truth_label[truth_rows[t]] == own
        ):
            t += 1
        rank = 0
        while d < len(rows) and row_image[rows[d]] == of and row_label[rows[d]] == own:
            is_best[d] = rank < MOST
            rank += 1
            d += 1
        g += 1
        truth_first[g], first[g] = t, first[g - 1] + min(rank, MOST)
    return (image[:g], label[:g]), (truth_first[: g + 1], first[: g + 1]), is_best


@njit(nogil=True, cache=True)
def _order_best(ranked: Rows, rows: Rows, is_best: Mask) -> tuple[Rows, Rows]:
    """Those of `ranked` that are kept, and the places there of those of `rows`, which say it."""
    place = np.full(len(rows), -1, dtype=np.int32)
    for i in range(len(rows)):
        if is_best[i]:
            place[rows[i]] = 0
    row = np.empty(np.count_nonzero(is_best), dtype=np.int32)
    count = 0
    for ranked_row in ranked:
        if place[ranked_row] == 0:
            row[count], place[ranked_row] = ranked_row, count
            count += 1
    return row, place[rows[is_best]]


@njit(nogil=True, cache=True)
def _gather_images(detections: Keys, row: Rows, classes: int) -> tuple[Rows, Ints]:
    """The image of each row, and where those of each category begin, by which they are sorted."""
    image, bounds = np.empty(len(row), dtype=np.int32), np.zeros(classes + 1, dtype=np.int64)
    for i in range(len(row)):
        image[i] = detections[0][row[i]]
        bounds[detections[1][row[i]] + 1] += 1
    for i in range(classes):
        bounds[i + 1] += bounds[i]
    return image, bounds


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
    objects = (truth.boxes.take(groups.truth, axis=0), crowd, groups.truth_first)
    rows = groups.row[groups.members]
    boxes = (detections.boxes, rows, groups.members, groups.first)
    matches = []
    for least, most in areas:
        beside = crowd | (extents < least) | (extents > most)
        order, positives = _ignored_last(beside, groups.truth_first)
        hit, matched = _assign_objects(objects, boxes, order, positives)
        outside = ((detections.area < least) | (detections.area > most))[groups.row]
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


# one function and no tuples within its loops: numba counts references to every array in a tuple,
# which made this six times slower
@njit(nogil=True, cache=True)
def _assign_objects(
    objects: Any, detections: Any, order: Rows, positives: Rows
) -> tuple[Flags, Flags]:
    """Thresholds at which each detection takes an object that counts, and any."""
    (corners, crowd, truth_first), (boxes, rows, members, first) = objects, detections
    right = np.zeros(len(members), dtype=np.uint16)
    matched = np.zeros(len(members), dtype=np.uint16)
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
                iou = _iou(boxes, rows[d], corners, t, crowd[t])
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
