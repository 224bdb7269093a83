"""Pixels that exchange places with a neighbour."""

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw, high, low
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")


def adjacent_swap() -> Operator:
    """Random pixels, w h / 20 per level, each exchanged with one of its eight neighbours.

    At an edge the neighbour is uniform among those that exist; an image of one pixel stays. One
    exchange after the other, at least one. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(adjacent_swap(), level=10))
        60 % of pixels changed, mean 127 → 127

    """
    return incremental("adjacent_swap", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, channels = image.shape
    if height * width == 1:
        return out
    places, others = _pairs(key, height, width)
    # with a constant number of channels the compiled loop is four times as fast
    if channels == 3:
        _exchange(out.reshape(-1), places, others, 3)
    else:
        _exchange(out.reshape(-1), places, others, channels)
    return out


@njit(nogil=True, cache=True)
def _pairs(
    key: np.uint64, height: int, width: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The pixels to exchange, by their index in the image: (count,) and (count,).

    All in 32 bits and in loops without branches, which run in vector registers.
    """
    count = max(height * width // 20, 1)
    rows, columns = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
    squares = np.empty(count, dtype=np.uint32)
    for i in range(count):
        bits = draw(key, i)
        rows[i], columns[i] = np.uint32(high(bits, height)), np.uint32(low(bits, width))
        # the lowest bits of the upper half, of which the row takes the highest
        square = np.uint32((bits >> uint64(32)) & uint64(7))
        squares[i] = square + (square >> np.uint32(2))  # in a 3 × 3 square without its middle, 4
    places, others = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
    wide = np.uint32(width)
    for i in range(count):
        down = np.uint32(squares[i] * np.uint32(11)) >> np.uint32(5)  # ⌊square / 3⌋
        across = np.uint32(squares[i] - np.uint32(3) * down)
        places[i] = rows[i] * wide + columns[i]
        others[i] = places[i] + down * wide + across - wide - np.uint32(1)
    # eight flags are one word, so that most pixels are skipped eight at a time
    edge = np.zeros((count + 7) // 8 * 8, dtype=np.uint8)
    bottom, right = np.uint32(height - 1), np.uint32(width - 1)
    for i in range(count):
        outer = (rows[i] == 0) | (columns[i] == 0) | (rows[i] == bottom) | (columns[i] == right)
        edge[i] = np.uint8(outer)
    words = edge.view(np.uint64)
    for word in range(words.size):
        if words[word]:
            for i in range(8 * word, 8 * word + 8):
                if edge[i]:
                    others[i] = _existing(key, count, i, (rows[i], columns[i]), (height, width))
    return places, others


@njit(nogil=True, cache=True)
def _existing(
    key: np.uint64, count: int, i: int, place: tuple[int, int], size: tuple[int, int]
) -> int:
    """A neighbour inside the image: directions are drawn until one is inside."""
    tries = 1
    while True:
        direction = np.int64(draw(key, tries * count + i) >> uint64(61))
        square = direction + (direction > 3)
        y, x = place[0] + square // 3 - 1, place[1] + square % 3 - 1
        if 0 <= y < size[0] and 0 <= x < size[1]:
            return int(y * size[1] + x)
        tries += 1


@njit(nogil=True, cache=True, inline="always")
def _exchange(
    values: Image, places: NDArray[np.uint32], others: NDArray[np.uint32], channels: int
) -> None:
    for i in range(places.size):
        place, other = np.int64(places[i]) * channels, np.int64(others[i]) * channels
        for c in range(channels):
            value = values[place + c]
            values[place + c] = values[other + c]
            values[other + c] = value
