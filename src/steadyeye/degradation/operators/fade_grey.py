"""Colours that fade to grey."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.kernels import fixed_point
from steadyeye.degradation.operator import Operator, of_original

KIND = ("deterministic", "global")
FACTOR = 0.9


def fade_grey() -> Operator:
    """HSV saturation × 0.9 per level, hue and value unchanged; a float, rounded once, ⌊x + ½⌋.

    With V the largest channel, a channel c of an HSV colour is V − S V k, k given by the hue: so
    c becomes V − 0.9 (V − c). Grey pixels and grey images stay. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(fade_grey(), level=10))
        100 % of pixels changed, mean 127 → 136

    """
    return of_original("fade_grey", _level)


def _level(image: Image, level: int) -> Image:
    if image.shape[2] == 1:
        return image.copy()
    factor, bits = fixed_point(FACTOR**level)
    # rounded down, not up, because it is subtracted: ties must round up here too
    return _fade_values(image, factor - np.int32(1), bits)


@njit(nogil=True, cache=True)
def _fade_values(image: Image, factor: np.int32, bits: np.int32) -> Image:
    out = np.empty_like(image)
    values, faded = image.reshape(-1), out.reshape(-1)
    # V − ⌈x − ½⌉ is ⌊V − x + ½⌋, and ⌈y⌉ of a fixed-point y is ⌊y + 1 − one step⌋
    half = (np.int32(1) << (bits - np.int32(1))) - np.int32(1)
    for p in range(values.size // 3):
        red, green = np.int32(values[3 * p]), np.int32(values[3 * p + 1])
        blue = np.int32(values[3 * p + 2])
        value = max(red, green, blue)
        faded[3 * p] = np.uint8(value - ((value - red) * factor + half >> bits))
        faded[3 * p + 1] = np.uint8(value - ((value - green) * factor + half >> bits))
        faded[3 * p + 2] = np.uint8(value - ((value - blue) * factor + half >> bits))
    return out
