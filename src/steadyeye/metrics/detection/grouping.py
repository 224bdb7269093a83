"""Rows of ground truth and detections in the orders that matching and average precision need."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = tuple[Ints, Ints]

MOST = 100
"""Detections that count: the best of each image and category."""


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


def grouped(truth: Keys, detections: Keys, score: Floats, images: int, classes: int) -> Groups:
    """Both tables in groups; `truth`, `detections`: image and category of each row, (n,) int64.

    `score`: (n,) float64 of the detections. Equal scores keep the order of the table.
    """
    # every sort is stable, so that the one before decides between equals
    wanted = _counted(_counted(np.arange(len(truth[0])), truth[1], classes), truth[0], images)
    falling = _falling(score, _counted(np.arange(len(score)), detections[0], images))
    ranked = _counted(falling, detections[1], classes)
    rows = _counted(ranked, detections[0], images)
    groups, begins, kept = _merged(
        (truth[0][wanted], truth[1][wanted]), (detections[0][rows], detections[1][rows])
    )
    row, members = _kept(ranked, rows, kept)
    image, label, ordered = detections[0][row], detections[1][row], score[row]
    same = (image[1:] == image[:-1]) & (ordered[1:] == ordered[:-1]) & (label[1:] == label[:-1])
    return Groups(
        images,
        classes,
        image=groups[0],
        label=groups[1],
        truth=wanted,
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
    return np.asarray(rows[_repaired(order, keys[order])])


@njit(nogil=True, cache=True)
def _repaired(order: Ints, keys: Floats) -> Ints:
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
def _counted(rows: Ints, key: Ints, end: int) -> Ints:
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
def _merged(truth: Keys, found: Keys) -> tuple[Keys, Keys, Mask]:
    """The groups of sorted keys, where each begins in both, and which of `found` are kept."""
    most = len(truth[0]) + len(found[0])
    image, label = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    truth_first, first = np.zeros(most + 1, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    kept = np.zeros(len(found[0]), dtype=np.bool_)
    g = t = d = 0
    while t < len(truth[0]) or d < len(found[0]):
        if t < len(truth[0]):
            image[g], label[g] = truth[0][t], truth[1][t]
        if d < len(found[0]) and (
            t == len(truth[0]) or (found[0][d], found[1][d]) < (image[g], label[g])
        ):
            image[g], label[g] = found[0][d], found[1][d]
        while t < len(truth[0]) and truth[0][t] == image[g] and truth[1][t] == label[g]:
            t += 1
        rank = 0
        while d < len(found[0]) and found[0][d] == image[g] and found[1][d] == label[g]:
            kept[d] = rank < MOST
            rank += 1
            d += 1
        g += 1
        truth_first[g], first[g] = t, first[g - 1] + min(rank, MOST)
    return (image[:g], label[:g]), (truth_first[: g + 1], first[: g + 1]), kept


@njit(nogil=True, cache=True)
def _kept(ranked: Ints, rows: Ints, kept: Mask) -> Keys:
    """Those of `ranked` that are kept, and the places there of those of `rows`, which say it."""
    place = np.full(len(rows), -1, dtype=np.int64)
    for i in range(len(rows)):
        if kept[i]:
            place[rows[i]] = 0
    row = np.empty(np.count_nonzero(kept), dtype=np.int64)
    count = 0
    for each in ranked:
        if place[each] == 0:
            row[count], place[each] = each, count
            count += 1
    return row, place[rows[kept]]
