"""Scattered pixels that grow brighter."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.degradation.operators import Operator, incremental
from steadyeye.degradation.random import uniform

ADDED = 20


def white_fog() -> Operator:
    """W h / 5 pixels a level + 20 on each channel, saturating at 255.

    Pixels are drawn with repeats, at least one; a pixel drawn twice brightens twice. Swingler 2022.
    """
    return incremental("white_fog", _level)


@njit(nogil=True, cache=True)
def _level(image: NDArray[np.uint8], key: np.uint64) -> None:
    height, width, channels = image.shape
    pixels = height * width
    values = image.reshape(-1)
    # counted first: as saturation only cuts, adding 20 n times is adding 20 n once
    times = np.zeros(pixels, dtype=np.uint8)
    places = uniform(key, pixels, max(pixels // 5, 1))
    for i in range(places.size):
        times[places[i]] += np.uint8(1)
    for p in range(pixels):
        added = np.uint16(ADDED) * np.uint16(times[p])
        for c in range(channels):
            at = p * channels + c
            values[at] = np.uint8(min(np.uint16(values[at]) + added, np.uint16(255)))
