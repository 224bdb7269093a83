"""Normal noise that grows with the value."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import NORMAL, normals, round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "local")
DEVIATION = (0.15, 0.2, 0.35, 0.45, 0.6)
"""The standard deviation at each severity, as a share of the value: as released for ImageNet-C."""


def speckle_noise() -> Operator:
    """Independent normal noise on every value, of standard deviation 15 … 60 % of the value.

    Severities 1 … 5: the same draws, scaled up. One of the four extra corruptions. Hendrycks and
    Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(speckle_noise(), level=3))
        100 % of pixels changed, mean 127 → 124

    """
    return severities("speckle_noise", _multiply_noise)


def _multiply_noise(image: Image, severity: int, key: np.uint64) -> Image:
    noise = normals(key, image.size, NORMAL).reshape(image.shape)
    return round_to_uint8(image * (1 + noise * np.float32(DEVIATION[severity - 1])))
