"""Loss of contrast."""

import cv2
import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
KEPT = (0.4, 0.3, 0.2, 0.1, 0.05)
"""The share of the distance from the mean at each severity: as released for ImageNet-C."""


def contrast() -> Operator:
    """Every value moved towards the mean of its channel; 40 … 5 % of the distance remain.

    Severities 1 … 5. Deterministic. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(contrast(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("contrast", _reduce_contrast)


def _reduce_contrast(image: Image, severity: int, _: np.uint64) -> Image:
    means = image.mean(axis=(0, 1))
    # the new values of each of the 256 values of each channel
    values = np.arange(256)[:, None]
    table = round_to_uint8((values - means) * KEPT[severity - 1] + means)
    return np.asarray(cv2.LUT(image, table[None]), dtype=np.uint8).reshape(image.shape)
