"""Colours made paler or stronger."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
SATURATION = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))
"""Factor and summand of the HSV saturation at each severity: as released for ImageNet-C."""


def saturate() -> Operator:
    """The HSV saturation × 0.3, × 0.1, × 2, × 5 + 0.1, × 20 + 0.2, at most 1; hue and value stay.

    As released, grey counts as a red without saturation, so that severities 4 and 5 redden it; an
    image of one channel has no hue and stays. Severities 1 … 5. Deterministic. One of the four
    extra corruptions. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(saturate(), level=3))
        100 % of pixels changed, mean 127 → 114

    """
    return severities("saturate", _scale_saturation)


def _scale_saturation(image: Image, severity: int, _: np.uint64) -> Image:
    if image.shape[2] == 1:
        return image.copy()
    factor, summand = SATURATION[severity - 1]
    return _scale_pixels(image.reshape(-1, 3), factor, summand).reshape(image.shape)


@njit(nogil=True, cache=True)
def _scale_pixels(pixels: Image, factor: float, summand: float) -> Image:
    out = np.empty_like(pixels)
    scale, add = np.float32(factor), np.float32(summand)
    for i in range(len(pixels)):
        red, green, blue = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        most, least = max(red, green, blue), min(red, green, blue)
        value, spread = np.float32(most), np.float32(most) - np.float32(least)
        if most == least:
            # hue 0: the first channel keeps the value
            lower = np.uint8(value * (1 - min(add, np.float32(1))) + np.float32(0.5))
            out[i, 0], out[i, 1], out[i, 2] = most, lower, lower
            continue
        # distances from the value are scaled as the saturation, spread ÷ value, is
        saturation = min(spread / value * scale + add, np.float32(1))
        ratio = saturation * value / spread
        for c in range(3):
            away = (value - np.float32(pixels[i, c])) * ratio
            out[i, c] = np.uint8(value - away + np.float32(0.5))
    return out
