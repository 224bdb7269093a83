"""Antialiased lines from the left or top edge to the right or bottom edge."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw, high, low

UNIT = 1 << 16  # positions across the line, in fixed point: the same pixels on every machine


@njit(nogil=True, cache=True)
def ends(key: np.uint64, height: int, width: int) -> tuple[int, int, int, int]:
    """x0, y0, x1, y1: a uniform pixel of the left or top edge, one of the right or bottom edge."""
    bits = draw(key, 0)
    first, last = high(bits, height + width), low(bits, height + width)
    x0, y0 = (0, first) if first < height else (first - height, 0)
    x1, y1 = (width - 1, last) if last < height else (last - height, height - 1)
    return x0, y0, x1, y1


@njit(nogil=True, cache=True)
def line(image: Image, key: np.uint64, ink: int) -> Image:
    """A copy with one line of `ink`, 0…255, one pixel wide, antialiased (Wu, SIGGRAPH 1991)."""
    out = image.copy()
    height, width, _ = image.shape
    x0, y0, x1, y1 = ends(key, height, width)
    steps = max(abs(x1 - x0), abs(y1 - y0))
    steep = abs(y1 - y0) == steps
    along, across = (y0, x0) if steep else (x0, y0)
    way = (y1 - y0) if steep else (x1 - x0)
    slope = ((x1 - x0) if steep else (y1 - y0)) * UNIT // max(steps, 1)
    for i in range(steps + 1):
        position = across * UNIT + i * slope
        near, part = position // UNIT, (position % UNIT) >> 8
        at = along + (i if way > 0 else -i)
        _blend(out, at, near, 256 - part, ink, steep)
        _blend(out, at, near + 1, part, ink, steep)
    return out


@njit(nogil=True, cache=True, inline="always")
def _blend(image: Image, along: int, across: int, share: int, ink: int, steep: bool) -> None:
    y, x = (along, across) if steep else (across, along)
    if y < image.shape[0] and x < image.shape[1]:
        for c in range(image.shape[2]):
            image[y, x, c] = (image[y, x, c] * (256 - share) + ink * share + 128) >> 8
