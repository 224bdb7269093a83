"""Pixels that exchange places with any other."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import uniform
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")


def random_swap() -> Operator:
    """Pairs of random pixels exchanged, w h / 20 per level, one after the other, at least one.

    No pixel is lost: the colours of the image stay the same multiset. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(random_swap(), level=10))
        64 % of pixels changed, mean 127 → 127

    """
    return incremental("random_swap", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, channels = image.shape
    values = out.reshape(-1)
    count = max(height * width // 20, 1)
    places = uniform(key, height * width, 2 * count)
    # with a constant number of channels the compiled loop is four times as fast
    if channels == 3:
        _exchange(values, places, count, 3)
    else:
        _exchange(values, places, count, channels)
    return out


@njit(nogil=True, cache=True, inline="always")
def _exchange(values: Image, places: NDArray[np.uint32], count: int, channels: int) -> None:
    for i in range(count):
        place = np.int64(places[i]) * channels
        other = np.int64(places[count + i]) * channels
        for c in range(channels):
            value = values[place + c]
            values[place + c] = values[other + c]
            values[other + c] = value
