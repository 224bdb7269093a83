"""Regions cut out of images as a network sees them: a square around a box."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image

ENLARGE = 0.2
GREY = 127
THUMB = 64


@dataclass(frozen=True)
class CropRule:
    """How a box is cut out: `enlarge`, the share of its longer side that is added, both ends.

    Raises `UsageError` for a share below 0 or above 4.
    """

    enlarge: float = ENLARGE

    def __post_init__(self) -> None:
        if not 0 <= self.enlarge <= 4:
            raise UsageError(f"enlarge={self.enlarge:g}: give a share from 0 to 4")

    def __str__(self) -> str:
        return f"the square around the box, {self.enlarge:.0%} longer than its longer side"


def crop_image(image: Image, box: NDArray[np.float64], crop: CropRule) -> Image:
    """The square around a box, (s, s, 3) uint8, whole pixels, s at least 1.

    `box`: (4,) x0 y0 x1 y1 in pixels. The square has the box in its middle and (1 + `enlarge`)
    times its longer side; where it leaves the image it is moved back in, and where it is larger
    than the image the rest is grey. Squaring keeps the shape of the object, which resizing to a
    network's input would change.
    """
    height, width = image.shape[:2]
    x0, y0, x1, y1 = box.tolist()
    side = max(round(max(x1 - x0, y1 - y0) * (1 + crop.enlarge)), 1)
    left = _start((x0 + x1) / 2, side, width)
    top = _start((y0 + y1) / 2, side, height)
    inside = image[max(top, 0) : top + side, max(left, 0) : left + side]
    if inside.shape[:2] == (side, side):
        return np.ascontiguousarray(inside)
    out = np.full((side, side, 3), GREY, dtype=np.uint8)
    above, beside = max(-top, 0), max(-left, 0)
    out[above : above + inside.shape[0], beside : beside + inside.shape[1]] = inside
    return out


def small(image: Image, side: int = THUMB) -> Image:
    """A picture of at most `side` pixels, for a thumbnail; never enlarged."""
    scale = side / max(image.shape[:2])
    if scale >= 1:
        return image
    size = (max(round(image.shape[1] * scale), 1), max(round(image.shape[0] * scale), 1))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _start(middle: float, side: int, length: int) -> int:
    """Where a window of `side` pixels begins: within the image, or around it if it is larger."""
    if side >= length:
        return (length - side) // 2
    return min(max(round(middle - side / 2), 0), length - side)
