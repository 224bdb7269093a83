"""Blur of a camera that moves towards the scene."""

from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import find_zoom, severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
FACTORS = tuple(
    np.arange(1, last, step)
    for last, step in ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
)
"""The factors of the enlarged images at each severity: as released for ImageNet-C."""


def zoom_blur() -> Operator:
    """The mean of the image and a dozen of its enlargements, up to 11 … 31 % larger.

    Each is the middle of the image, enlarged by linear interpolation so that the corners stay, and
    cut at the right and at the bottom to the size of the image. Deterministic. Severities 1 … 5.
    Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(zoom_blur(), level=3))
        100 % of pixels changed, mean 127 → 125

    """
    return severities("zoom_blur", _average_zooms)


def _average_zooms(image: Image, severity: int, _: np.uint64) -> Image:
    height, width, channels = image.shape
    rows = _interpolate(height, 1, severity)
    columns = _interpolate(width, channels, severity)
    averaged = _add_zooms(image.reshape(height, -1), rows, columns, channels)
    return averaged.reshape(image.shape)


@lru_cache(maxsize=32)
def _interpolate(
    side: int, channels: int, severity: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """For each of n enlargements and each place: the pixel before it, the share of the next, runs.

    (n, side), (n, side × channels) and (n, side + 1): the places at which a new run begins, padded
    with `side`.
    """
    firsts, shares, runs = [], [], []
    for factor in FACTORS[severity - 1][1:]:
        zoom = find_zoom(side, factor)
        places = zoom.start + zoom.scale * np.arange(side)
        # the last place may be the last pixel itself, without a next one
        before = np.minimum(np.floor(places).astype(np.int64), max(side - 2, 0))
        breaks = np.concatenate(([0], np.flatnonzero(np.diff(before) != 1) + 1))
        firsts.append(before)
        shares.append(np.repeat((places - before).astype(np.float32), channels))
        runs.append(np.pad(breaks, (0, side + 1 - len(breaks)), constant_values=side))
    return np.array(firsts), np.array(shares), np.array(runs)


@njit(nogil=True, cache=True)
def _add_zooms(
    pixels: Image,
    rows: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
    columns: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
    channels: int,
) -> Image:
    """The mean; values are read in runs of neighbours, which fit vector registers."""
    before, below, _ = rows
    first, beside, runs = columns
    height, width = pixels.shape
    values = pixels.astype(np.float32)
    line = np.zeros(width + channels, dtype=np.float32)
    total = np.empty(width, dtype=np.float32)
    out = np.empty_like(pixels)
    scale = np.float32(1 / (len(before) + 2))
    for y in range(height):
        total[:] = 2 * values[y]  # the image itself, and the factor 1
        for layer in range(len(before)):
            top, share = before[layer, y], below[layer, y]
            upper, lower = values[top], values[min(top + 1, height - 1)]
            for x in range(width):
                line[x] = upper[x] + share * (lower[x] - upper[x])
            parts, starts, run = beside[layer], runs[layer], 0
            while starts[run] * channels < width:
                begin, end = starts[run] * channels, starts[run + 1] * channels
                before_x = line[first[layer, starts[run]] * channels :]
                after, target, part = before_x[channels:], total[begin:end], parts[begin:end]
                for x in range(target.size):
                    target[x] += before_x[x] + part[x] * (after[x] - before_x[x])
                run += 1
        for x in range(width):
            out[y, x] = np.uint8(total[x] * scale + np.float32(0.5))
    return out
