"""How far an image is from another, in pixels."""

import cv2
import numpy as np
from numba import njit

from steadyeye.core.types import Image


def changed(image: Image, original: Image) -> float:
    """The share of pixels, 0…1, with any channel different; the shapes are equal."""
    flat = image.reshape(-1, 1) if image.ndim == 2 else image.reshape(-1, image.shape[-1])
    pixels = len(flat)
    return int(_differing(flat, original.reshape(flat.shape))) / pixels


def brightness(image: Image) -> float:
    """The mean of all values, 0…255."""
    return sum(cv2.sumElems(image)) / image.size


@njit(nogil=True, cache=True)
def _differing(one: Image, other: Image) -> np.int64:
    pixels, channels = one.shape
    first, second = one.reshape(-1), other.reshape(-1)
    # the differences first, on their own, because that loop runs in vector registers
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
