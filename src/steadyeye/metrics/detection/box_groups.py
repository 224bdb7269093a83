"""True boxes and detections in groups of one image and one category, the detections ranked."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.disk_columns import release_pages

Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = tuple[Ints, Ints]
MOST = 100
"""Detections that count: the best of each image and category."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Two tables of boxes by image and category, by row number; the tables are not held.

    Of each of g groups, those of one image and one category that either table has, by image and
    then category: `image`, `label`: (g,) int32.
    `truth`: (t,) int32, rows of the ground truth, group by group, in the order of the table;
    group i has those from `truth_first[i]` to `truth_first[i + 1]`.

    Of each of m detections, the best `MOST` of each group, by category, then falling score, then
    image, then row: `row`, `row_image`: (m,) int32. `tied`: (m,) bool, whether the next one has the
    same category, score and image. Category i has those from `bounds[i]` to `bounds[i + 1]`.
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
    release_pages()
    groups, begins, is_best = _merge_groups((*truth, truth_order), (*detections, rows))
    release_pages()
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
