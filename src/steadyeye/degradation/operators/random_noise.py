"""Pixels of random colour."""

import numpy as np
from numba import njit, uint64

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw, uniform
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")


def random_noise() -> Operator:
    """A fiftieth of the pixels, w h / 50 per level, get a uniform random colour.

    Pixels are drawn with repeats, at least one. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(random_noise(), level=10))
        18 % of pixels changed, mean 127 → 127

    """
    return incremental("random_noise", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, channels = image.shape
    values = out.reshape(-1)
    count = max(height * width // 50, 1)
    places = uniform(key, height * width, count)
    for i in range(count):
        # the places used the draws below this one
        colour = draw(key, count + i)
        for c in range(channels):
            values[np.int64(places[i]) * channels + c] = np.uint8(colour >> uint64(8 * c))
    return out
