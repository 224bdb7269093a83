"""Brightening that keeps hue and saturation."""

from functools import cache

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
ADDED = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Added to the HSV value, 0…1, at each severity: as released for ImageNet-C."""


def brightness() -> Operator:
    """The HSV value of every pixel raised by 0.1 … 0.5, at most 1; hue and saturation stay.

    Severities 1 … 5. Deterministic. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(brightness(), level=3))
        100 % of pixels changed, mean 127 → 184

    """
    return severities("brightness", _raise_value)


def _raise_value(image: Image, severity: int, _: np.uint64) -> Image:
    return _look_up(image, _scaled_values(severity))


@cache
def _scaled_values(severity: int) -> Image:
    """(256, 256) the new value, by the largest channel of its pixel."""
    # with hue and saturation kept, channels scale with the largest of them
    largest, value = np.arange(256.0)[:, None], np.arange(256.0)
    raised = np.minimum(largest + 255 * ADDED[severity - 1], 255)
    return round_to_uint8(np.where(largest > 0, value * (raised / np.maximum(largest, 1)), raised))


@njit(nogil=True, cache=True)
def _look_up(image: Image, table: Image) -> Image:
    height, width, channels = image.shape
    out = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            largest = image[y, x, 0]
            for c in range(1, channels):
                largest = max(largest, image[y, x, c])
            for c in range(channels):
                out[y, x, c] = table[largest, image[y, x, c]]
    return out
