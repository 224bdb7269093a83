"""Blur of frosted glass: pixels take the colours of neighbours."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import blur_normally, round_to_uint8, severities
from steadyeye.degradation.counter_rng import draw, high, low
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
"""Blur in pixels, largest step in pixels, and passes at each severity: as released."""


def glass_blur() -> Operator:
    """Blurred, then every pixel gets the colour of one at most 1 … 4 pixels away, then blurred.

    As released for ImageNet-C, where the exchange of two pixels is a copy: the other keeps its
    own colour, and steps go one pixel further up and left than down and right. Rows and columns
    nearer to an edge than the largest step are not visited. Severities 1 … 5. Hendrycks and
    Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(glass_blur(), level=3))
        100 % of pixels changed, mean 127 → 119

    """
    return severities("glass_blur", _scatter)


def _scatter(image: Image, severity: int, key: np.uint64) -> Image:
    deviation, step, passes = GLASS[severity - 1]
    # truncated as released, except that 199.99998 counts as 200
    blurred = (blur_normally(image.astype(np.float32), deviation) + 1e-3).astype(np.uint8)
    _copy_neighbours(blurred, key, step, passes)
    return round_to_uint8(blur_normally(blurred.astype(np.float32), deviation))


@njit(nogil=True, cache=True)
def _copy_neighbours(image: Image, key: np.uint64, step: int, passes: int) -> None:
    height, width, channels = image.shape
    i = 0
    for _ in range(passes):
        # from the lower right, so that a colour can travel with the visits
        for y in range(height - step, step, -1):
            for x in range(width - step, step, -1):
                bits = draw(key, i)
                i += 1
                from_y = y + high(bits, 2 * step) - step
                from_x = x + low(bits, 2 * step) - step
                for c in range(channels):
                    image[y, x, c] = image[from_y, from_x, c]
