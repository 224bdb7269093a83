"""Corruptions of five severities: their builder, and shared random draws and blurs.

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", ICLR 2019; the constants are those of the release that made ImageNet-C.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from steadyeye.core.special import ndtri
from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw
from steadyeye.degradation.operator import Context, Operator, Trail

SEVERITIES = 5
PART = uint64(0xFFFF)
REACH = 4
"""Number of standard deviations at which a normal window ends."""
NORMAL = ndtri((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)
"""The normal quantile in the middle of each of 65,536 equal shares; none lies beyond 4.33."""


def severities(name: str, make: Callable[[Image, int, np.uint64], Image]) -> Operator:
    """An operator of severities 1 … 5, each `make(image, severity, key)` of the image itself.

    The draws of an image are the same at all severities, so that only the severity differs.

    Example:
        >>> darker = severities("darker", lambda image, severity, key: image // np.uint8(severity))
        >>> trail = darker.start(np.full((1, 1), 200, dtype=np.uint8), Context(np.uint64(0)))
        >>> trail(4).item(), darker.last
        (50, 5)

    """

    def begin(image: Image, context: Context) -> Trail:
        return lambda level: make(image, level, context.key)

    return Operator(name, begin, last=SEVERITIES)


def round_to_uint8(values: NDArray[np.floating]) -> Image:
    """Values brought into 0…255 and rounded, ⌊x + ½⌋: a uint8 array of the same shape.

    Example:
        >>> round_to_uint8(np.array([-3.0, 1.5, 254.4, 300.0])).tolist()
        [0, 2, 254, 255]

    """
    return _round(values.reshape(-1), values.dtype.type(0.5)).reshape(values.shape)


@njit(nogil=True, cache=True)
def _round(values: NDArray[np.floating], half: np.floating) -> Image:
    out = np.empty(values.size, dtype=np.uint8)
    for i in range(values.size):
        out[i] = np.uint8(min(max(values[i], half * 0), half * 510) + half)
    return out


@njit(nogil=True, cache=True)
def normals(key: np.uint64, count: int, quantiles: NDArray[np.float32]) -> NDArray[np.float32]:
    """(count,) independent standard normal values, each one of `quantiles`."""
    quarter = (count + 3) // 4
    out = np.empty(4 * quarter, dtype=np.float32)
    for i in range(quarter):
        bits = draw(key, i)
        for part in range(4):
            index = np.int64((bits >> uint64(16 * part)) & PART)
            out[4 * i + part] = quantiles[index]
    return out[:count]


def draw_share(key: np.uint64) -> float:
    """The first draw of the stream as a uniform number in [0, 1).

    Example:
        >>> 0 <= draw_share(np.uint64(1)) < 1
        True

    """
    return int(draw(key, 0)) / 2**64


def blur_normally(values: NDArray[np.float32], deviation: float) -> NDArray[np.float32]:
    """(h, w) or (h, w, c) float32 values averaged over a normal window; edges repeated.

    `deviation`: of the window, in pixels; it ends at four deviations, as in scipy and skimage.
    """
    side = 2 * math.floor(REACH * deviation + 0.5) + 1
    window = cv2.GaussianBlur(values, (side, side), deviation, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(window, dtype=np.float32).reshape(values.shape)


def blur_along(
    values: NDArray[np.float32], radius: int, deviation: float, angle: float
) -> NDArray[np.float32]:
    """(h, w, c) float32 values smeared from each pixel in one direction; edges repeated.

    The mean over the 2 × `radius` + 1 nearest pixels on a ray, each weighed by a normal density of
    `deviation` pixels at its distance. `angle`: of the ray, in degrees, clockwise from the right.
    """
    taps = np.arange(2 * radius + 1)
    weights = np.exp(-(taps**2) / (2 * deviation**2))
    turned = math.radians(angle)
    down = np.ceil(taps * math.sin(turned) - 0.5).astype(np.int64)
    right = np.ceil(taps * math.cos(turned) - 0.5).astype(np.int64)
    top, left = max(int(-down.min()), 0), max(int(-right.min()), 0)
    bottom, beside = max(int(down.max()), 0), max(int(right.max()), 0)
    framed = cv2.copyMakeBorder(values, top, bottom, left, beside, cv2.BORDER_REPLICATE)
    rows = np.ascontiguousarray(framed, dtype=np.float32).reshape(len(framed), -1)
    starts = (right + left) * values.shape[2]
    shares = (weights / weights.sum()).astype(np.float32)
    return _add_shifted(rows, down + top, starts, shares, values.shape)


@njit(nogil=True, cache=True)
def _add_shifted(
    rows: NDArray[np.float32],
    down: NDArray[np.int64],
    starts: NDArray[np.int64],
    shares: NDArray[np.float32],
    shape: tuple[int, int, int],
) -> NDArray[np.float32]:
    height, width = shape[0], shape[1] * shape[2]
    out = np.zeros((height, width), dtype=np.float32)
    for y in range(height):
        line = out[y]
        for tap in range(shares.size):
            share = shares[tap]
            source = rows[y + down[tap], starts[tap] : starts[tap] + width]
            for x in range(width):
                line[x] += share * source[x]
    return out.reshape(shape)


@dataclass(frozen=True)
class Zoom:
    """The enlargement of one side of an image: pixel i shows `start` + i × `scale` of the image.

    `source`: number of its pixels that are enlarged, from `start` on.
    """

    source: int
    start: int
    scale: float


def find_zoom(side: int, factor: float) -> Zoom:
    """The middle of a side of pixels, so many that `factor` times as many are `side` or more.

    The first and the last pixel stay the first and the last of the enlarged ones, of which those
    beyond `side` are cut: as scipy's `zoom`, and as released for ImageNet-C.

    Example:
        >>> find_zoom(224, 2.0)
        Zoom(source=112, start=56, scale=0.4977578475336323)

    """
    source = math.ceil(side / factor)
    enlarged = round(source * factor)
    scale = (source - 1) / (enlarged - 1) if enlarged > 1 else 0.0
    return Zoom(source, (side - source) // 2, scale)
