"""Small black boxes."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.kernels import box
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")
SIDES = (2, 5)


def random_boxes() -> Operator:
    """(h + w) / 10 black boxes per level, sides uniform in 2…5 px, wholly inside the image.

    At least one box, and a side is never longer than the image. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(random_boxes(), level=10))
        35 % of pixels changed, mean 127 → 86

    """
    return incremental("random_boxes", _level)


@njit(nogil=True, cache=True)
def _level(image: Image, key: np.uint64) -> Image:
    out = image.copy()
    height, width, _ = image.shape
    for i in range(max((height + width) // 10, 1)):
        y0, y1, x0, x1 = box(key, i, (height, width), SIDES)
        out[y0:y1, x0:x1] = 0
    return out
