"""Blur of a lens out of focus."""

from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
DISKS = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))
"""Radius and softness in pixels at each severity: as released for ImageNet-C."""
SMALL = 8


def defocus_blur() -> Operator:
    """The mean over a disk of radius 3 … 10 pixels with a soft rim, rounded once; edges mirrored.

    The rim is softened by a normal window of 3 × 3 pixels, 5 × 5 for the largest. As released, the
    weights of severity 4 sum to 1.013. Severities 1 … 5. Deterministic. Hendrycks and Dietterich
    2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(defocus_blur(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("defocus_blur", _blur_image)


def _blur_image(image: Image, severity: int, _: np.uint64) -> Image:
    kernel = _disk(*DISKS[severity - 1])
    blurred = cv2.filter2D(image.astype(np.float32), -1, kernel, borderType=cv2.BORDER_REFLECT_101)
    return round_to_uint8(np.asarray(blurred, dtype=np.float32)).reshape(image.shape)


@cache
def _disk(radius: int, softness: float) -> NDArray[np.float32]:
    """(side, side) the weights of a disk on a grid of 17 pixels, or as wide as the disk."""
    half_width = max(radius, SMALL)
    away = np.arange(-half_width, half_width + 1)
    disk = (away[:, None] ** 2 + away**2 <= radius**2).astype(np.float32)
    window = (3, 3) if radius <= SMALL else (5, 5)
    return np.asarray(cv2.GaussianBlur(disk / disk.sum(), window, softness), dtype=np.float32)
