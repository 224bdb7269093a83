"""Detections assigned to true boxes, one each, so that as many as can be are of an object."""

import numpy as np
from numpy.typing import NDArray

MATCH = 0.5
"""IoU of a detection with a true box from which it is of that object."""


def assign(overlap: NDArray[np.float64]) -> list[tuple[int, int]]:
    """As many pairs of a row and a column as there can be, each of `MATCH` or more.

    Of those with as many the pairs with the largest sum.
    """
    # more than all overlaps together, so that two pairs that just match go before one that is exact
    rows, columns = pair_best(np.where(overlap >= MATCH, overlap.size + 1 + overlap, 0.0))
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def pair_best(worth: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(pairs,) rows and columns, each at most once, whose sum of worth is largest.

    `worth`: (n, m), 0 or more; pairs worth 0 are left out.
    """
    from scipy.optimize import linear_sum_assignment  # half a second, which few runs need

    rows, columns = linear_sum_assignment(worth, maximize=True)
    is_worth = worth[rows, columns] > 0
    return rows[is_worth], columns[is_worth]
