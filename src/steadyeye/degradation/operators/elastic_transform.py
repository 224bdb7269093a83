"""Small regions stretched and shrunk."""

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import severities
from steadyeye.degradation.counter_rng import HIGH, LOW, draw
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
STRENGTH = tuple(250 * share for share in (0.05, 0.065, 0.085, 0.1, 0.12))
"""The factor of the smoothed draws at each severity: as in imagecorruptions."""
SMOOTH = 0.01
"""The deviation of the normal window over the draws, as a share of each side."""
STEP = 0.005
"""The largest draw, as a share of the height."""
WINDOW = 3


def elastic_transform() -> Operator:
    """Pixels displaced by a smooth random field, scaled by 12.5 … 30.

    Uniform draws of up to 0.5 % of the height, averaged over a normal window of 1 % of each side,
    are multiplied and added to the pixel's place; values are interpolated linearly, edges
    mirrored. The constants are those of imagecorruptions (Michaelis et al. 2019), which apply to
    any size; the release for ImageNet-C has others for 224 pixels. Severities 1 … 5: the same
    draws, scaled up. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(elastic_transform(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("elastic_transform", _move_pixels)


def _move_pixels(image: Image, severity: int, key: np.uint64) -> Image:
    height, width, _ = image.shape
    draws = _draw_steps(key, height * width).reshape(2, height, width)
    factor = np.float32(2 * STEP * height * STRENGTH[severity - 1])
    y, x = (_smooth(field) * factor for field in draws)
    x += np.arange(width, dtype=np.float32)
    y += np.arange(height, dtype=np.float32)[:, None]
    moved = cv2.remap(image, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.asarray(moved, dtype=np.uint8).reshape(image.shape)


def _smooth(field: NDArray[np.float32]) -> NDArray[np.float32]:
    deviations = [SMOOTH * side for side in field.shape]
    tall, wide = (2 * int(WINDOW * deviation + 0.5) + 1 for deviation in deviations)
    mean = cv2.GaussianBlur(
        field, (wide, tall), deviations[1], sigmaY=deviations[0], borderType=cv2.BORDER_REFLECT
    )
    return np.asarray(mean, dtype=np.float32)


@njit(nogil=True, cache=True)
def _draw_steps(key: np.uint64, count: int) -> NDArray[np.float32]:
    """(2 × count,) uniform in −½ … ½."""
    out = np.empty(2 * count, dtype=np.float32)
    for i in range(count):
        bits = draw(key, i)
        out[i] = np.float32(bits >> HIGH) * np.float32(2.0**-32) - np.float32(0.5)
        out[count + i] = np.float32(bits & LOW) * np.float32(2.0**-32) - np.float32(0.5)
    return out
