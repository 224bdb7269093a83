"""Random boxes that lie wholly inside an image."""

import numpy as np
from numba import njit

from steadyeye.degradation.counter_rng import draw, high, low


@njit(nogil=True, cache=True)
def box(
    key: np.uint64, i: int, size: tuple[int, int], sides: tuple[int, int]
) -> tuple[int, int, int, int]:
    """y0, y1, x0, x1 of box `i`, half open, uniform among the places inside an image.

    `size`: height and width of the image. `sides`: the shortest and the longest side, uniform; a
    side longer than the image is cut to it.
    """
    least, most = sides
    shape, place = draw(key, 2 * i), draw(key, 2 * i + 1)
    height = min(least + high(shape, most - least + 1), size[0])
    width = min(least + low(shape, most - least + 1), size[1])
    y0 = high(place, size[0] - height + 1)
    x0 = low(place, size[1] - width + 1)
    return y0, y0 + height, x0, x0 + width
