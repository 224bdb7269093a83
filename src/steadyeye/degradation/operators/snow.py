"""Falling snow over a whitened image."""

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import (
    NORMAL,
    blur_along,
    draw_share,
    find_zoom,
    normals,
    severities,
)
from steadyeye.degradation.counter_rng import level_key
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
SNOW = (
    (0.1, 0.3, 3.0, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2.0, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4.0, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
"""Mean and deviation of the draws, enlargement, threshold, radius and deviation of the trace, and
the share of the image at each severity: as released for ImageNet-C."""


def snow() -> Operator:
    """Random flakes in one direction and its opposite, over a whitened image.

    Flakes are normal draws above a threshold, enlarged and smeared along a ray within 45° of the
    vertical. Below them 20 … 45 % of the image is replaced by its grey value × 1.5 + 0.5, where
    that is brighter. Severities 1 … 5. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(snow(), level=3))
        100 % of pixels changed, mean 127 → 194

    """
    return severities("snow", _let_snow)


def _let_snow(image: Image, severity: int, key: np.uint64) -> Image:
    share = np.float32(SNOW[severity - 1][-1])
    flakes = _draw_flakes(image.shape[:2], severity, key)
    grey = image if image.shape[2] == 1 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    plane = np.asarray(grey, dtype=np.uint8).reshape(flakes.shape)
    return _cover(image, plane, flakes, share)


def _draw_flakes(size: tuple[int, int], severity: int, key: np.uint64) -> NDArray[np.float32]:
    """(h, w) whole numbers 0 … 255: the brightness of the snow."""
    mean, deviation, factor, threshold, radius, trace, _ = SNOW[severity - 1]
    tall, wide = (find_zoom(side, factor) for side in size)
    count = tall.source * wide.source
    draws = normals(level_key(key, 1), count, NORMAL).reshape(tall.source, wide.source)
    field = np.asarray(draws * np.float32(deviation) + np.float32(mean), dtype=np.float32)
    place = np.array([[wide.scale, 0, 0], [0, tall.scale, 0]])
    large = cv2.warpAffine(
        field,
        place,
        size[::-1],
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    flakes = np.where(large < threshold, np.float32(0), np.clip(large, 0, 1))
    angle = -135 + 90 * draw_share(key)
    return np.rint(blur_along(flakes[..., None], int(radius), trace, angle)[..., 0] * 255)


@njit(nogil=True, cache=True)
def _cover(image: Image, grey: Image, flakes: NDArray[np.float32], share: np.float32) -> Image:
    out = np.empty_like(image)
    height, width, channels = image.shape
    half = np.float32(0.5)
    for y in range(height):
        for x in range(width):
            white = np.float32(grey[y, x]) * np.float32(1.5) + np.float32(127.5)
            fallen = flakes[y, x] + flakes[height - 1 - y, width - 1 - x]
            for c in range(channels):
                value = np.float32(image[y, x, c])
                covered = share * value + (1 - share) * max(value, white) + fallen
                out[y, x, c] = np.uint8(min(covered, np.float32(255)) + half)
    return out
