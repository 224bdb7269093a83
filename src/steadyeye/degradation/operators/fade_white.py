"""Brightening of the whole image."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.kernels import fixed_point, scale
from steadyeye.degradation.operator import Operator, of_original

KIND = ("deterministic", "global")
FACTOR = 1.1


def fade_white() -> Operator:
    """Every value × 1.1 per level, at most 255, kept as a float and rounded once, ⌊x + ½⌋.

    The float matters: rounded at every level, 0.9 × 4 would stay 4. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(fade_white(), level=10))
        100 % of pixels changed, mean 127 → 219

    """
    return of_original("fade_white", _level)


def _level(image: Image, level: int) -> Image:
    factor = FACTOR**level
    most = np.uint8(np.ceil(255 / factor))
    return scale(image, *fixed_point(factor), most)
