"""Multiplication of uint8 values by a factor, rounded once, in integers and so in vectors."""

import math

import numpy as np
from numba import njit

from steadyeye.core.types import Image


def fixed_point(factor: float) -> tuple[np.int32, np.int32]:
    """`factor` as multiplier ÷ 2 to the power `bits`, rounded up; the product with 255 fits int32.

    Up, because ties such as 0.9 × 5 = 4.5 must round up as ⌊x + ½⌋ does; the tests hold that all
    256 values of all levels come out as a float state rounds.
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
