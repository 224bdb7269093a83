"""Repeated box blur of the whole image."""

import cv2
import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.operator import Operator, incremental

KIND = ("deterministic", "global")


def global_blur() -> Operator:
    """The 5 × 5 mean of the previous level, rounded; the image is mirrored at its edges.

    The mirror does not repeat the edge pixel itself. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(global_blur(), level=10))
        100 % of pixels changed, mean 127 → 127

    """
    return incremental("global_blur", _level)


def _level(image: Image, _: np.uint64) -> Image:
    blurred = cv2.blur(image, (5, 5), borderType=cv2.BORDER_REFLECT_101)
    return np.asarray(blurred, dtype=np.uint8).reshape(image.shape)
