"""Detections assigned to true boxes, one each, so that as many as can be are of an object."""

import numpy as np
from numpy.typing import NDArray

MATCH = 0.5
"""IoU of a detection with a true box from which it is of that object."""


def assign(overlap: NDArray[np.float64]) -> list[tuple[int, int]]:
    """As many pairs of a row and a column as there can be, each of `MATCH` or more.

    Of those with as many the pairs with the largest sum.
    """
    from scipy.optimize import linear_sum_assignment  # half a second, which few runs need

    # more than all overlaps together, so that two pairs that just match go before one that is exact
    worth = np.where(overlap >= MATCH, overlap.size + 1 + overlap, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [(int(r), int(c)) for r, c in zip(rows, columns, strict=True) if worth[r, c] > 0]
