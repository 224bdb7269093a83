"""Antialiased resampling, equal to Pillow's to the bit and fused with the crop and the scaling.

Pillow is the reference of nearly every published recipe. It filters rows, rounds to uint8, filters
columns, rounds again, with coefficients in 22-bit fixed point (its `Resample.c`). This module runs
the same arithmetic on the crop only, vectorised and without the GIL.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BITS = 22
HALF = np.int32(1 << (BITS - 1))
BLOCK = 16  # rows filtered together, so that the innermost loop runs over contiguous values
LANES = 3 * BLOCK
TOGETHER = 4  # taps added in one go, so that sums go to memory and back a fourth as often


def _box(x: float) -> float:
    return 1.0 if -0.5 < x <= 0.5 else 0.0


def _bilinear(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _hamming(x: float) -> float:
    x = abs(x)
    if x == 0:
        return 1.0
    if x >= 1:
        return 0.0
    return math.sin(math.pi * x) / (math.pi * x) * (0.54 + 0.46 * math.cos(math.pi * x))


def _bicubic(x: float, a: float = -0.5) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    if x < 2:
        return (((x - 5) * x + 8) * x - 4) * a
    return 0.0


def _lanczos(x: float) -> float:
    if not -3 <= x < 3:
        return 0.0
    return _sinc(x) * _sinc(x / 3)


def _sinc(x: float) -> float:
    return 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x)


FILTERS: dict[str, tuple[Callable[[float], float], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_bilinear, 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}
"""Name → (filter, support in source pixels at scale 1)."""

Taps = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


@lru_cache(maxsize=256)
def taps(source: int, target: int, first: int, count: int, interpolation: str) -> Taps:
    """Window starts and ends, (count,) each, and fixed-point weights, (count, taps), of an axis.

    The axis goes from `source` to `target` pixels; only outputs `first` … `first + count` count.
    Taps are padded with weights of 0 to a multiple of `TOGETHER`.
    """
    kernel, support = FILTERS[interpolation]
    ratio = source / target
    scale = max(ratio, 1.0)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    most = math.ceil(support * scale) * 2 + 1
    weights = np.zeros((count, -(-most // TOGETHER) * TOGETHER), dtype=np.int32)
    for row in range(count):
        centre = (first + row + 0.5) * ratio
        low = max(int(centre - support * scale + 0.5), 0)
        high = min(int(centre + support * scale + 0.5), source)
        raw = [kernel((x - centre + 0.5) / scale) for x in range(low, high)]
        fixed = [weight / sum(raw) * (1 << BITS) for weight in raw]
        starts[row], ends[row] = low, high
        weights[row, : len(raw)] = [int(w + (0.5 if w >= 0 else -0.5)) for w in fixed]
    return starts, ends, weights


@njit(nogil=True, cache=True, boundscheck=False)
def _clip(value: int) -> np.uint8:
    return np.uint8(min(max(value >> BITS, 0), 255))


@njit(nogil=True, cache=True, boundscheck=False)
def _zip(evens: Any, odds: Any, out: Any, count: int) -> None:
    for i in range(count):
        out[2 * i] = evens[i]
        out[2 * i + 1] = odds[i]


@njit(nogil=True, cache=True, boundscheck=False)
def _unzip(mixed: Any, evens: Any, odds: Any, count: int) -> None:
    for i in range(count):
        evens[i] = mixed[2 * i]
        odds[i] = mixed[2 * i + 1]


@njit(nogil=True, cache=True, boundscheck=False)
def _turn(image: Any, top: int, left: int, n: int, buffers: Any) -> None:
    """Writes bytes `left` … `left + n` of 16 rows from `top` to the first buffer as (n, 16).

    In four rounds of interleaving halves, which vector registers do 64 bytes at a time: transposing
    byte by byte takes longer than filtering. Rows below the image repeat its last row.
    """
    a, b = buffers
    last = image.shape[0] - 1
    for i in range(8):
        upper, lower = image[min(top + i, last)], image[min(top + i + 8, last)]
        _zip(upper[left : left + n], lower[left : left + n], b[2 * i * n :], n)
    for i in range(4):
        _zip(b[2 * i * n :], b[2 * (i + 4) * n :], a[4 * i * n :], 2 * n)
    for i in range(2):
        _zip(a[4 * i * n :], a[4 * (i + 2) * n :], b[8 * i * n :], 4 * n)
    _zip(b, b[8 * n :], a, 8 * n)


@njit(nogil=True, cache=True, boundscheck=False)
def _turn_back(turned: Any, n: int, buffers: Any, out: Any) -> None:
    """The reverse: (n, 16) bytes, flat, into the up to 16 rows of `out`, (rows, n)."""
    a, b = buffers
    _unzip(turned, a, a[8 * n :], 8 * n)
    for i in range(2):
        _unzip(a[8 * i * n :], b[4 * i * n :], b[4 * (i + 2) * n :], 4 * n)
    for i in range(4):
        _unzip(b[4 * i * n :], a[2 * i * n :], a[2 * (i + 4) * n :], 2 * n)
    for i in range(min(len(out), 8)):
        _unzip(a[2 * i * n :], out[i], out[i + 8] if i + 8 < len(out) else b, n)


@njit(inline="always")
def _weigh(rows: Any, n: int, weights: Any, count: int, total: Any) -> None:
    """Adds to `total`, (n,) int32, `count` weighted rows of n bytes, which follow one another.

    Up to three rows after them are read too, with weight 0.
    """
    for t in range(0, count, TOGETHER):
        w0, w1, w2, w3 = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
        r0, r1 = rows[t * n :], rows[(t + 1) * n :]
        r2, r3 = rows[(t + 2) * n :], rows[(t + 3) * n :]
        for i in range(n):
            total[i] += (
                np.int32(r0[i]) * w0
                + np.int32(r1[i]) * w1
                + np.int32(r2[i]) * w2
                + np.int32(r3[i]) * w3
            )


@njit(nogil=True, cache=True, boundscheck=False)
def _filter_rows(image: NDArray[np.uint8], columns: Taps, top: int, bottom: int) -> Any:
    """Rows `top` … `bottom` filtered along x: (rows, 3 × width) uint8, and four arbitrary bytes."""
    x0, x1, weights = columns
    width = len(x0)
    left, n = 3 * x0[0], 3 * (x1[width - 1] - x0[0])
    lines = image.reshape(image.shape[0], 3 * image.shape[1])
    filtered = np.empty((bottom - top + TOGETHER, 3 * width), dtype=np.uint8)
    size = BLOCK * max(n, 3 * width) + TOGETHER * LANES
    buffers = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)
    total = np.empty(LANES, dtype=np.int32)
    clipped = np.empty(width * LANES, dtype=np.uint8)
    for block in range(top, bottom, BLOCK):
        _turn(lines, block, left, n, buffers)
        for x in range(width):
            total[:] = HALF
            window = buffers[0][(x0[x] - x0[0]) * LANES :]
            _weigh(window, LANES, weights[x], x1[x] - x0[x], total)
            for lane in range(LANES):
                clipped[x * LANES + lane] = _clip(total[lane])
        after = min(block + BLOCK, bottom)
        _turn_back(clipped, 3 * width, buffers, filtered[block - top : after - top])
    return filtered


@njit(nogil=True, cache=True, boundscheck=False)
def normalise(
    image: NDArray[np.uint8],
    scale: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Writes `image × scale + bias` to `out`, (3, h, w) float32.

    `image`: (h, w, 3) uint8, contiguous. `scale`, `bias`: (3,).
    """
    for y in range(out.shape[1]):
        values = image[y].reshape(-1)
        red, green, blue = out[0, y], out[1, y], out[2, y]
        # the three at once, for vector registers: nine times as fast as a loop a channel
        for x in range(out.shape[2]):
            red[x] = np.float32(values[3 * x]) * scale[0] + bias[0]
            green[x] = np.float32(values[3 * x + 1]) * scale[1] + bias[1]
            blue[x] = np.float32(values[3 * x + 2]) * scale[2] + bias[2]


@njit(nogil=True, cache=True, boundscheck=False)
def resample(image: NDArray[np.uint8], columns: Taps, rows: Taps, out: NDArray[np.uint8]) -> None:
    """Writes the resized crop to `out`, (height, width, 3) uint8, contiguous.

    `image`: (h, w, 3) uint8, contiguous. `columns`, `rows`: the taps of the two axes.
    """
    y0, y1, weights = rows
    height, width = out.shape[0], out.shape[1]
    filtered = _filter_rows(image, columns, y0[0], y1[height - 1]).reshape(-1)
    line = np.empty(3 * width, dtype=np.int32)
    for y in range(height):
        line[:] = HALF
        _weigh(filtered[(y0[y] - y0[0]) * 3 * width :], 3 * width, weights[y], y1[y] - y0[y], line)
        clipped = out[y].reshape(-1)
        for i in range(3 * width):
            clipped[i] = _clip(line[i])
