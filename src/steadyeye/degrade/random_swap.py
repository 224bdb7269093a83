"""Pixels that exchange places with any other."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.degradation.operators import Operator, incremental
from steadyeye.degradation.random import uniform


def random_swap() -> Operator:
    """W h / 20 pairs of uniform pixels exchanged a level, one pair after the other, at least one.

    No pixel is lost: the colours of the image stay the same multiset. Swingler 2022.
    """
    return incremental("random_swap", _level)


@njit(nogil=True, cache=True)
def _level(image: NDArray[np.uint8], key: np.uint64) -> None:
    height, width, channels = image.shape
    values = image.reshape(-1)
    count = max(height * width // 20, 1)
    places = uniform(key, height * width, 2 * count)
    for i in range(count):
        one = np.int64(places[i]) * channels
        other = np.int64(places[count + i]) * channels
        for c in range(channels):
            values[one + c], values[other + c] = values[other + c], values[one + c]
