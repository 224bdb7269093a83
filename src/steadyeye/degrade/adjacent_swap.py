"""Pixels that exchange places with a neighbour."""

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.operators import Operator, incremental
from steadyeye.degradation.random import draw, high, low


def adjacent_swap() -> Operator:
    """W h / 20 uniform pixels a level, each exchanged with one of its eight neighbours.

    At an edge the neighbour is uniform among those that exist; an image of one pixel stays. One
    exchange after the other, at least one. Swingler 2022.
    """
    return incremental("adjacent_swap", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, channels = image.shape
    if height * width == 1:
        return out
    places, others = _pairs(key, height, width)
    # with the number of channels known to the compiler the loop is four times as fast
    if channels == 3:
        _exchange(out.reshape(-1), places, others, 3)
    else:
        _exchange(out.reshape(-1), places, others, channels)
    return out


@njit(nogil=True, cache=True)
def _pairs(
    key: np.uint64, height: int, width: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The pixels to be exchanged, by their number in the image: (count,) and (count,)."""
    count = max(height * width // 20, 1)
    places, others = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
    edge = np.empty(count, dtype=np.uint8)
    for i in range(count):
        bits = draw(key, i)
        y, x = high(bits, height), low(bits, width)
        # the lowest bits of the upper half, of which y takes the highest
        down, across = _turn((bits >> uint64(32)) & uint64(7))
        places[i] = np.uint32(y * width + x)
        others[i] = np.uint32((y + down) * width + x + across)
        edge[i] = (y == 0) | (x == 0) | (y == height - 1) | (x == width - 1)
    for i in range(count):
        if edge[i]:
            others[i] = _existing(key, count, i, places[i], (height, width))
    return places, others


@njit(nogil=True, cache=True, inline="always")
def _turn(which: np.uint64) -> tuple[np.int64, np.int64]:
    """The rows and columns to go in direction `which`, 0…7."""
    place = np.int64(which) + (which > 3)  # in a 3 × 3 square without its middle, 4
    row = (place * 11) >> 5  # place // 3
    return row - 1, place - 3 * row - 1


@njit(nogil=True, cache=True)
def _existing(key: np.uint64, count: int, i: int, place: int, size: tuple[int, int]) -> int:
    """A neighbour inside the image: directions are drawn until one leads there."""
    height, width = size
    y, x = place // width, place % width
    tries = 1
    while True:
        down, across = _turn(draw(key, tries * count + i) >> uint64(61))
        v, u = y + down, x + across
        if 0 <= v < height and 0 <= u < width:
            return int(v * width + u)
        tries += 1


@njit(nogil=True, cache=True, inline="always")
def _exchange(
    values: Image, places: NDArray[np.uint32], others: NDArray[np.uint32], channels: int
) -> None:
    for i in range(places.size):
        one, other = np.int64(places[i]) * channels, np.int64(others[i]) * channels
        for c in range(channels):
            kept = values[one + c]
            values[one + c] = values[other + c]
            values[other + c] = kept
