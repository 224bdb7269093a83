"""Small boxes replaced by their mean."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.degradation.boxes import box
from steadyeye.degradation.operators import Operator, incremental

SIDES = (2, 10)


def local_blur() -> Operator:
    """H + w boxes a level, sides uniform in 2…10 px, each replaced by its own mean per channel.

    One after the other, so that a box may blur what another has blurred; means are rounded. A
    side is never longer than the image. Swingler 2022.
    """
    return incremental("local_blur", _level)


@njit(nogil=True, cache=True)
def _level(image: NDArray[np.uint8], key: np.uint64) -> None:
    height, width, channels = image.shape
    total = np.empty(channels, dtype=np.int32)
    for i in range(height + width):
        y0, y1, x0, x1 = box(key, i, (height, width), SIDES)
        total[:] = 0
        for y in range(y0, y1):
            for x in range(x0, x1):
                for c in range(channels):
                    total[c] += np.int32(image[y, x, c])
        area = (y1 - y0) * (x1 - x0)
        for c in range(channels):
            total[c] = (2 * total[c] + area) // (2 * area)
        for y in range(y0, y1):
            for x in range(x0, x1):
                for c in range(channels):
                    image[y, x, c] = np.uint8(total[c])
