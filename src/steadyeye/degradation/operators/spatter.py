"""Drops of water or mud on the lens."""

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import (
    NORMAL,
    blur_normally,
    normals,
    round_to_uint8,
    severities,
)
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "local")
WATER = ((0.65, 0.3, 4, 0.69, 0.6), (0.65, 0.3, 3, 0.68, 0.6), (0.65, 0.3, 2, 0.68, 0.5))
"""Mean and deviation of the draws, blur in pixels, threshold, brightness at severities 1 … 3."""
MUD = ((0.65, 0.3, 1, 0.65, 1.5), (0.67, 0.4, 1, 0.65, 1.5))
"""The same at severities 4 and 5, the last being the softness of the rim in pixels."""
TURQUOISE = np.array((175, 238, 238), dtype=np.float32)
BROWN = np.array((63, 42, 20), dtype=np.float32)
OPAQUE = 0.8
"""Mud below this share is left out."""
FAR = 20
"""The distance in pixels from a drop's edge at which its brightness becomes constant."""
RELIEF = np.array(((-2, -1, 0), (-1, 1, 1), (0, 1, 2)), dtype=np.float32)
"""A filter for light from one side; it, the colours and the constants above are the release's."""


def spatter() -> Operator:
    """Drops of pale water that brighten the image (severities 1 … 3), or brown mud that covers it.

    Drops are normal draws, blurred, above a threshold; water is lit from one side. Severities
    1 … 5: the same draws. One of the four extra corruptions. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(spatter(), level=3))
        21 % of pixels changed, mean 127 → 135

    """
    return severities("spatter", _spatter_image)


def _spatter_image(image: Image, severity: int, key: np.uint64) -> Image:
    drops = WATER + MUD
    mean, deviation, blur, threshold, last = drops[severity - 1]
    height, width, channels = image.shape
    draws = normals(key, height * width, NORMAL).reshape(height, width)
    liquid = blur_normally(draws * np.float32(deviation) + np.float32(mean), blur)
    color = TURQUOISE if severity <= len(WATER) else BROWN
    if channels == 1:
        color = np.array([color @ (0.2989, 0.587, 0.114)], dtype=np.float32)
    if severity <= len(WATER):
        shine = _light(np.where(liquid < threshold, np.float32(0), liquid)) * np.float32(last)
        return round_to_uint8(image + shine[..., None] * color)
    mud = blur_normally((liquid > threshold).astype(np.float32), last)
    cover = np.where(mud < OPAQUE, np.float32(0), mud)[..., None]
    return round_to_uint8(image * (1 - cover) + cover * color)


def _light(liquid: NDArray[np.float32]) -> NDArray[np.float32]:
    """(h, w) 0 … 1 the reflection of each pixel; all 0 without liquid."""
    drops = (liquid * 255).clip(0, 255).astype(np.uint8)
    away = cv2.distanceTransform(255 - cv2.Canny(drops, 50, 150), cv2.DIST_L2, 5)
    near = cv2.blur(np.minimum(away, FAR), (3, 3)).astype(np.uint8)
    relief = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, RELIEF)
    shine = drops * cv2.blur(relief, (3, 3)).astype(np.float32)
    return np.asarray(shine / max(float(shine.max()), 1.0), dtype=np.float32)
