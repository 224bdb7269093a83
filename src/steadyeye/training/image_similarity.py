"""Which images show nearly the same, by a hash that recoding and resizing hardly change.

The signs of the 255 lowest frequencies of a grey 64 × 64 view, but the mean, against their median
(Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions", 2010, with 16 × 16
frequencies for his 8 × 8). Measured on ten DAVIS sequences, bikes.mp4, a second video and forty
photos: of copies recoded at JPEG quality 10 to 50 and resized to as little as 15 %, at most 32 bits
differ; of frames of different videos, at least 86. Copies that are cropped or mirrored are not
found.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image

SIDE = 64
LOWEST = 16
BITS = LOWEST * LOWEST - 1
NEAR = 48
"""Bits of `BITS` in which two images may differ and still be nearly the same."""
FLAT = 4.0
"""Grey levels: a view whose standard deviation is below it shows too little to be told apart."""

BLOCK = 2048  # images compared at a time


def bits(image: Image) -> NDArray[np.bool_] | None:
    """(`BITS`,) the hash of an image, (h, w, 3) uint8; None for one that shows hardly anything."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    view = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    if float(view.std()) < FLAT:
        return None
    low = np.asarray(cv2.dct(view))[:LOWEST, :LOWEST].ravel()[1:]
    return np.asarray(low > np.median(low), dtype=np.bool_)


def near(one: Sequence[NDArray[np.bool_]], other: Sequence[NDArray[np.bool_]]) -> NDArray[np.int64]:
    """(m, 2) positions in `one` and `other` whose hashes differ in at most `NEAR` bits."""
    if not len(one) or not len(other):
        return np.zeros((0, 2), dtype=np.int64)
    # of ±1, the product is the bits that agree less those that differ
    right = np.stack(other).T * np.float32(2) - np.float32(1)
    pairs = []
    for start in range(0, len(one), BLOCK):
        left = np.stack(one[start : start + BLOCK]) * np.float32(2) - np.float32(1)
        rows, columns = np.nonzero(BITS - left @ right <= 2 * NEAR)
        pairs.append(np.stack([rows + start, columns], axis=1))
    return np.concatenate(pairs).astype(np.int64)
