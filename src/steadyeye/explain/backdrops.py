"""Pictures to stand behind an object: made up, blurred, or a user's own, in any size."""

from typing import TypeAlias

import cv2
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Image: TypeAlias = NDArray[np.uint8]
Size: TypeAlias = tuple[int, int]

BLUR = 12
"""The blur of own frames: the standard deviation is a 12th of the longer side."""


def gradient(size: Size, rng: Generator) -> Image:
    """(h, w, 3) uint8: two colours, one running into the other in a direction; all three drawn."""
    height, width = size
    angle = rng.uniform(0, 2 * np.pi)
    one, other = rng.uniform(30, 225, (2, 3))
    y, x = np.mgrid[:height, :width]
    along = np.cos(angle) * x / max(width - 1, 1) + np.sin(angle) * y / max(height - 1, 1)
    share = (along - along.min()) / max(float(np.ptp(along)), 1e-9)
    return np.asarray(np.rint(one + share[..., None] * (other - one)), dtype=np.uint8)


def natural_noise(size: Size, rng: Generator) -> Image:
    """(h, w, 3) uint8: noise whose amplitude falls as 1/f, as that of natural images does.

    Field 1987, "Relations between the statistics of natural images and the response properties of
    cortical cells". Grey with a tint of a third as much contrast; mean 128, deviation 40.
    """
    height, width = size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = np.inf
    parts = [np.fft.rfft2(rng.standard_normal(size)) / frequency for _ in range(4)]
    grey, *tints = (np.fft.irfft2(part, size) for part in parts)
    grey, *tints = (each / max(float(each.std()), 1e-9) for each in (grey, *tints))
    colour = np.stack([grey + tint / 3 for tint in tints], axis=-1)
    return np.asarray(np.clip(np.rint(128 + 40 * colour), 0, 255), dtype=np.uint8)


def blur_image(image: Image, size: Size) -> Image:
    """(h, w, 3) uint8: the image fitted to the size, blurred until no object is left in it."""
    fitted = covering(image, size)
    return np.asarray(cv2.GaussianBlur(fitted, (0, 0), max(size) / BLUR), dtype=np.uint8)


def covering(image: Image, size: Size) -> Image:
    """(h, w, 3) uint8: the middle of the image, scaled so that it just fills the size."""
    height, width = image.shape[:2]
    scale = max(size[0] / height, size[1] / width)
    fitted = (max(round(height * scale), size[0]), max(round(width * scale), size[1]))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    resized = cv2.resize(image, fitted[::-1], interpolation=how)
    top, left = (fitted[0] - size[0]) // 2, (fitted[1] - size[1]) // 2
    return np.ascontiguousarray(resized[top : top + size[0], left : left + size[1]])
