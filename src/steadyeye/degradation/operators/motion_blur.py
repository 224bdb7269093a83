"""Blur of a moving camera."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import blur_along, draw_share, round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
TRACE = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
"""Radius and deviation in pixels at each severity: as released for ImageNet-C."""
WIDEST = 45
"""The largest angle to the horizontal, in degrees."""


def motion_blur() -> Operator:
    """Every pixel smeared along a ray of 21 … 41 pixels, within 45° of the horizontal.

    The weights fall as a normal density of deviation 3 … 15 pixels; edges are repeated. The ray of
    an image is the same at all severities. Severities 1 … 5. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(motion_blur(), level=3))
        100 % of pixels changed, mean 127 → 146

    """
    return severities("motion_blur", _smear)


def _smear(image: Image, severity: int, key: np.uint64) -> Image:
    radius, deviation = TRACE[severity - 1]
    angle = (2 * draw_share(key) - 1) * WIDEST
    return round_to_uint8(blur_along(image.astype(np.float32), radius, deviation, angle))
