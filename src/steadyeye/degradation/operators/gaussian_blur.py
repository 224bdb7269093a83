"""Blur by a normal window."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import blur_normally, round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
DEVIATION = (1, 2, 3, 4, 6)
"""The standard deviation of the window at each severity, in pixels: as released for ImageNet-C."""


def gaussian_blur() -> Operator:
    """A Gaussian filter of standard deviation 1 … 6 pixels, rounded once; edges repeated.

    Severities 1 … 5. Deterministic. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(gaussian_blur(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("gaussian_blur", _blur_image)


def _blur_image(image: Image, severity: int, _: np.uint64) -> Image:
    return round_to_uint8(blur_normally(image.astype(np.float32), DEVIATION[severity - 1]))
