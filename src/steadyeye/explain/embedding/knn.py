"""The nearest groups of points, exactly: every distance is computed, block by block."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]

CELLS = 2**25
"""Distances held at once: 128 MB as float32."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The k nearest groups of each of n points, the point's own left out, rising by distance.

    `group`: (n, k) int64 indices of groups; `distance`: (n, k) float32, to the nearest point of
    each.
    """

    group: NDArray[np.int64]
    distance: NDArray[np.float32]


def nearest_groups(
    points: Vectors, group: NDArray[np.int64], k: int, among: NDArray[np.bool_] | None = None
) -> Nearest:
    """The k nearest groups of every point, each by its nearest member.

    `points`: (n, d) float32. `group`: (n,) 0 … g − 1, all of them there. `among`: (g,) bool, the
    groups that can be neighbours, all if left out; more than k. Boxes of one video show the same
    things again and again; a group counts once, so they are one witness. Groups at equal distances
    go by their index. Every point a group of its own: the k nearest neighbours.
    """
    counts = np.ones(int(group.max()) + 1, dtype=np.bool_) if among is None else among
    names = np.flatnonzero(counts)
    assert 0 < k < len(names), "fewer groups than neighbours"
    column = np.where(counts, np.cumsum(counts) - 1, -1)[group]
    order = np.argsort(column, kind="stable")[int((column < 0).sum()) :]
    others, starts = points[order], np.searchsorted(column[order], np.arange(len(names)))
    squares = np.einsum("ij,ij->i", others, others)
    nearest = Nearest(
        np.empty((len(points), k), dtype=np.int64), np.empty((len(points), k), dtype=np.float32)
    )
    size = max(CELLS // len(others), 1)
    for first in range(0, len(points), size):
        block = slice(first, first + size)
        apart = _apart(points[block], others, squares)
        if len(names) < len(others):
            apart = np.minimum.reduceat(apart, starts, axis=1)
        own = np.flatnonzero(column[block] >= 0)
        apart[own, column[block][own]] = np.inf
        columns = _smallest(apart, k)
        nearest.group[block] = names[columns]
        nearest.distance[block] = np.sqrt(np.take_along_axis(apart, columns, axis=1))
    return nearest


def _apart(block: Vectors, others: Vectors, squares: NDArray[np.float32]) -> NDArray[np.float32]:
    """(b, n) squared distances; never below 0, which rounding could make them."""
    apart = np.asarray(block @ others.T, dtype=np.float32)
    apart *= -2
    apart += squares
    apart += np.einsum("ij,ij->i", block, block)[:, None]
    np.maximum(apart, 0, out=apart)
    return apart


def _smallest(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """(b, k) the columns of the k smallest values of each row, rising; ties by column."""
    bar = np.partition(values, k - 1, axis=1)[:, k - 1]
    rows, columns = np.nonzero(values <= bar[:, None])
    order = np.lexsort((columns, values[rows, columns], rows))
    first = np.searchsorted(rows, np.arange(len(values)))
    picked: NDArray[np.int64] = columns[order][first[:, None] + np.arange(k)]
    return picked
