"""How unlike what is known already a candidate looks, and the order that goes by it.

A descriptor is any vector a picture; the distance of two is Euclid's.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image

SIDE = 8
ALIKE = 3 / 255
"""Three grey levels on average: nearer than that, two pictures of a class show the same, as in the
sampling of a review."""


def thumbnails(crops: Sequence[Image]) -> NDArray[np.float64]:
    """(n, 192) the default descriptor: the crop as 8 × 8 RGB pixels.

    Scaled so that the distance of two is the root mean square difference of their pixels, 0…1. It
    knows colour and coarse layout and nothing of meaning: two bears of other colours are far apart.
    """
    small = [cv2.resize(crop, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for crop in crops]
    flat = np.array(small, dtype=np.float64).reshape(len(small), SIDE * SIDE * 3)
    return np.asarray(flat / 255 / np.sqrt(SIDE * SIDE * 3), dtype=np.float64)


def novelty(vectors: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the distance of each to the nearest of `known` and of those before it.

    `vectors`: (n, d), in the order of the ranking; `known`: (m, d). NaN where there is nothing to
    be unlike.
    """
    nearest = _nearest(vectors, known)
    for i in range(len(vectors)):
        if i:
            nearest[i] = min(nearest[i], _distances(vectors[i], vectors[:i]).min())
    return np.where(np.isfinite(nearest), nearest, np.nan)


def farthest_first(
    vectors: NDArray[np.float64],
    known: NDArray[np.float64],
    kinds: NDArray[np.int64],
    most: int,
) -> NDArray[np.intp]:
    """The order in which each next one is the farthest from `known` and from all before it.

    `kinds`: (n,) of each kind at most `most` are taken. Ties go to the earlier, and so does the
    first where nothing is known. Gonzalez, "Clustering to minimize the maximum intercluster
    distance", 1985.
    """
    nearest = _nearest(vectors, known)
    left = np.full(int(kinds.max(initial=-1)) + 1, most)
    rows, order = np.arange(len(vectors)), []
    held, lengths = vectors, np.einsum("ij,ij->i", vectors, vectors)
    while len(rows):
        at = int(nearest.argmax())
        best, length, vector = int(rows[at]), lengths[at], held[at]
        order.append(best)
        left[kinds[best]] -= 1
        # a product of a matrix and a vector: the differences themselves take ten times as long
        square = lengths + length - 2 * (held @ vector)
        nearest = np.minimum(nearest, np.sqrt(np.maximum(square, 0)))
        nearest[at] = -1.0
        if left[kinds[best]] == 0 or not (nearest >= 0).any():
            open_ = (nearest >= 0) & (left[kinds[rows]] > 0)
            rows, nearest, held, lengths = (x[open_] for x in (rows, nearest, held, lengths))
    return np.array(order, dtype=np.intp)


def alike(vectors: NDArray[np.float64], kinds: NDArray[np.int64]) -> NDArray[np.intp]:
    """(n,) the first of those of its kind that look the same, itself where none before it does."""
    first = np.arange(len(vectors))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        for i, row in enumerate(rows):
            firsts = rows[:i][first[rows[:i]] == rows[:i]]
            near = np.flatnonzero(_distances(vectors[row], vectors[firsts]) < ALIKE)
            if len(near):
                first[row] = firsts[near[0]]
    return first


def _nearest(vectors: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the distance to the nearest of `known`; infinite where there are none."""
    nearest = np.full(len(vectors), np.inf)
    for each in known:
        nearest = np.minimum(nearest, _distances(each, vectors))
    return nearest


def _distances(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", many - one, many - one)), dtype=np.float64)
