"""Blur by a normal window."""

import cv2
import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.operator import Operator

DEVIATION = (1, 2, 3, 4, 6)
"""Of the window at each severity, in pixels: as released for ImageNet-C."""
REACH = 4
"""Deviations after which the window ends."""


def gaussian_blur() -> Operator:
    """The mean over a normal window of deviation 1 … 6 pixels, rounded once; edges repeated.

    Severities 1 … 5. Deterministic. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(gaussian_blur(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("gaussian_blur", _blur_image)


def _blur_image(image: Image, severity: int, _: np.uint64) -> Image:
    deviation = DEVIATION[severity - 1]
    side = 2 * REACH * deviation + 1
    blurred = cv2.GaussianBlur(
        image.astype(np.float32), (side, side), deviation, borderType=cv2.BORDER_REPLICATE
    )
    return round_to_uint8(np.asarray(blurred, dtype=np.float32)).reshape(image.shape)
