"""Small boxes replaced by their mean."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.kernels import box
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")
SIDES = (2, 10)


def local_blur() -> Operator:
    """Boxes with sides of 2…10 px, h + w per level, each replaced by its own mean per channel.

    One after the other, so that a box may blur what another has blurred; means are rounded. A
    side is never longer than the image. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(local_blur(), level=10))
        99 % of pixels changed, mean 127 → 127

    """
    return incremental("local_blur", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    # with a constant number of channels the compiled loops are three times as fast
    if image.shape[2] == 3:
        _boxes(out, key, 3)
    else:
        _boxes(out, key, image.shape[2])
    return out


@njit(nogil=True, cache=True, inline="always")
def _boxes(image: Image, key: np.uint64, channels: int) -> None:
    height, width, _ = image.shape
    for i in range(height + width):
        y0, y1, x0, x1 = box(key, i, (height, width), SIDES)
        area = (y1 - y0) * (x1 - x0)
        for c in range(channels):
            total = np.int32(0)
            for y in range(y0, y1):
                for x in range(x0, x1):
                    total += np.int32(image[y, x, c])
            mean = np.uint8((2 * total + area) // (2 * area))
            for y in range(y0, y1):
                for x in range(x0, x1):
                    image[y, x, c] = mean
