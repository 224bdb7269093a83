"""Repeated box blur of the whole image."""

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.degradation.operators import Operator, incremental


def global_blur() -> Operator:
    """The 5 × 5 mean of the level before, rounded; the image is mirrored at its edges.

    The mirror does not repeat the edge pixel itself. Swingler 2022.
    """
    return incremental("global_blur", _level)


def _level(image: NDArray[np.uint8], _: np.uint64) -> None:
    blurred = cv2.blur(image, (5, 5), borderType=cv2.BORDER_REFLECT_101)
    image[:] = blurred.reshape(image.shape)
