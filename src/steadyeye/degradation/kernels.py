"""Compiled loops that operators and sweeps share.

Random boxes, lines, scaling by a factor, and the difference between images.
"""

import math

import cv2
import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw, high, low

UNIT = 1 << 16  # positions across the line, in fixed point: the same pixels on every machine


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


def fixed_point(factor: float) -> tuple[np.int32, np.int32]:
    """`factor` as multiplier ÷ 2 to the power `bits`, rounded up; the product with 255 fits int32.

    Up, because ties such as 0.9 × 5 = 4.5 must round up as ⌊x + ½⌋ does; the tests check that all
    256 values of all levels equal the rounded floats.
    """
    bits = 22 + max(math.floor(-math.log2(factor)), 0)
    return np.int32(math.ceil(factor * (1 << bits))), np.int32(bits)


@njit(nogil=True, cache=True)
def scale(image: Image, factor: np.int32, bits: np.int32, most: np.uint8) -> Image:
    """A copy of the image × `factor` ÷ 2 to the power `bits`, at most 255.

    `most`: the value from which on all saturate; it keeps the products within 32 bits.
    """
    out = np.empty_like(image)
    values, scaled = image.reshape(-1), out.reshape(-1)
    half = np.int32(1) << (bits - np.int32(1))
    for i in range(values.size):
        product = np.int32(min(values[i], most)) * factor + half
        scaled[i] = np.uint8(min(product >> bits, np.int32(255)))
    return out


def measure_changed_share(image: Image, original: Image) -> float:
    """The share of pixels, 0…1, with any channel different; the shapes are equal."""
    flat = image.reshape(-1, 1) if image.ndim == 2 else image.reshape(-1, image.shape[-1])
    pixels = len(flat)
    return int(_differing(flat, original.reshape(flat.shape))) / pixels


def measure_brightness(image: Image) -> float:
    """The mean of all values, 0…255."""
    return sum(cv2.sumElems(image)) / image.size


@njit(nogil=True, cache=True)
def _differing(image: Image, other: Image) -> np.int64:
    pixels, channels = image.shape
    first, second = image.reshape(-1), other.reshape(-1)
    # the differences in a separate loop, because that loop runs in vector registers
    difference = np.empty(first.size, dtype=np.uint8)
    for i in range(first.size):
        difference[i] = first[i] ^ second[i]
    count = np.int64(0)
    if channels == 3:
        for p in range(pixels):
            if difference[3 * p] | difference[3 * p + 1] | difference[3 * p + 2]:
                count += 1
        return count
    for p in range(pixels):
        if difference[p * channels : (p + 1) * channels].any():
            count += 1
    return count
