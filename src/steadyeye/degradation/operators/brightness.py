"""Brightening that keeps hue and saturation."""

import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.operator import Operator

ADDED = (0.1, 0.2, 0.3, 0.4, 0.5)
"""To the HSV value, 0…1, at each severity: as released for ImageNet-C."""


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
    # the value is the largest channel; with hue and saturation kept, channels scale with it
    value = image.max(axis=2, keepdims=True).astype(np.float64)
    raised = np.minimum(value + 255 * ADDED[severity - 1], 255)
    return round_to_uint8(np.where(value > 0, image * (raised / np.maximum(value, 1)), raised))
