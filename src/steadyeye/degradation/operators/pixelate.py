"""Fewer, larger pixels."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
SIDES = (0.6, 0.5, 0.4, 0.3, 0.25)
"""The sides of the smaller image, as shares, at each severity: as released for ImageNet-C."""


def pixelate() -> Operator:
    """The mean of each block of pixels: the image at 60 … 25 % of its sides, enlarged again.

    Boxes of whole pixels: a pixel counts where its centre lies. Deterministic. Severities 1 … 5.
    Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(pixelate(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("pixelate", _enlarge_pixels)


def _enlarge_pixels(image: Image, severity: int, _: np.uint64) -> Image:
    height, width, _channels = image.shape
    rows, columns = (_boxes(side, SIDES[severity - 1]) for side in (height, width))
    return _average_boxes(image, rows, columns)


def _boxes(side: int, share: float) -> NDArray[np.int64]:
    """(n + 1,) the starts of the n boxes of a side of pixels, and the end of the last."""
    count = max(int(side * share), 1)
    edges = np.floor(np.arange(count + 1) * (side / count) + 0.5)
    return np.asarray(edges, dtype=np.int64)


@njit(nogil=True, cache=True)
def _average_boxes(image: Image, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Image:
    channels = image.shape[2]
    out = np.empty_like(image)
    for i in range(rows.size - 1):
        for j in range(columns.size - 1):
            area = (rows[i + 1] - rows[i]) * (columns[j + 1] - columns[j])
            for c in range(channels):
                total = np.int64(0)
                for y in range(rows[i], rows[i + 1]):
                    for x in range(columns[j], columns[j + 1]):
                        total += np.int64(image[y, x, c])
                mean = np.uint8((2 * total + area) // (2 * area))
                for y in range(rows[i], rows[i + 1]):
                    for x in range(columns[j], columns[j + 1]):
                        out[y, x, c] = mean
    return out
