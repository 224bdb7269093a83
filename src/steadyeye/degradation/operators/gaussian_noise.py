"""Normal noise on every value."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import NORMAL, normals, round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "local")
DEVIATION = (0.08, 0.12, 0.18, 0.26, 0.38)
"""The standard deviation at each severity, of values in 0…1: as released for ImageNet-C."""


def gaussian_noise() -> Operator:
    """Independent normal noise on every value, of standard deviation 0.08 … 0.38 of the range.

    Severities 1 … 5: the same draws, scaled up. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(gaussian_noise(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("gaussian_noise", _noisy)


def _noisy(image: Image, severity: int, key: np.uint64) -> Image:
    noise = normals(key, image.size, NORMAL).reshape(image.shape)
    return round_to_uint8(image + noise * np.float32(255 * DEVIATION[severity - 1]))
