"""Darkening of the whole image."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.kernels import fixed_point, scale
from steadyeye.degradation.operator import Operator, of_original

KIND = ("deterministic", "global")
FACTOR = 0.9


def fade_black() -> Operator:
    """Every value × 0.9 per level, at most 255, kept as a float and rounded once, ⌊x + ½⌋.

    The float matters: rounded at every level, 0.9 × 4 would stay 4. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(fade_black(), level=10))
        100 % of pixels changed, mean 127 → 44

    """
    return of_original("fade_black", _level)


def _level(image: Image, level: int) -> Image:
    return scale(image, *fixed_point(FACTOR**level), np.uint8(255))
