"""Pixels that exchange places with a neighbour."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.degradation.operators import Operator, incremental
from steadyeye.degradation.random import draw, high, low


def adjacent_swap() -> Operator:
    """W h / 20 uniform pixels a level, each exchanged with one of its eight neighbours.

    At an edge the neighbour is uniform among those that exist; an image of one pixel stays. One
    exchange after the other, at least one. Swingler 2022.
    """
    return incremental("adjacent_swap", _level)


@njit(nogil=True, cache=True)
def _level(image: NDArray[np.uint8], key: np.uint64) -> None:
    height, width, channels = image.shape
    if height * width == 1:
        return
    for i in range(max(height * width // 20, 1)):
        bits = draw(key, i)
        place = high(bits, height * width)
        y, x = place // width, place % width
        v, u = _neighbour(bits, y, x, (height, width))
        for c in range(channels):
            image[y, x, c], image[v, u, c] = image[v, u, c], image[y, x, c]


@njit(nogil=True, cache=True, inline="always")
def _neighbour(bits: np.uint64, y: int, x: int, size: tuple[int, int]) -> tuple[int, int]:
    top, left = max(y - 1, 0), max(x - 1, 0)
    rows, columns = min(y + 1, size[0] - 1) - top + 1, min(x + 1, size[1] - 1) - left + 1
    own = (y - top) * columns + x - left
    which = low(bits, rows * columns - 1)
    if which >= own:
        which += 1
    return top + which // columns, left + which % columns
