"""Scattered pixels that grow brighter."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import uniform
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")
ADDED = 20


def white_fog() -> Operator:
    """A fifth of the pixels, w h / 5 per level, + 20 on each channel, saturating at 255.

    Pixels are drawn with repeats, at least one; a pixel drawn twice brightens twice. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(white_fog(), level=10))
        86 % of pixels changed, mean 127 → 164

    """
    return incremental("white_fog", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, channels = image.shape
    # counted first: n additions of 20 with saturation equal one of 20 n
    times = np.zeros(height * width, dtype=np.uint8)
    places = uniform(key, height * width, max(height * width // 5, 1))
    for i in range(places.size):
        times[places[i]] += np.uint8(1)
    # with a constant number of channels the compiled loop runs in vector registers
    if channels == 3:
        _brighten(out.reshape(-1), times, 3)
    else:
        _brighten(out.reshape(-1), times, channels)
    return out


@njit(nogil=True, cache=True, inline="always")
def _brighten(values: Image, times: NDArray[np.uint8], channels: int) -> None:
    for p in range(times.size):
        added = np.uint16(ADDED) * np.uint16(times[p])
        for c in range(channels):
            at = p * channels + c
            values[at] = np.uint8(min(np.uint16(values[at]) + added, np.uint16(255)))
