"""Corruptions of five severities, and the draws they share.

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", ICLR 2019; the constants are those of the release that made ImageNet-C.
"""

from collections.abc import Callable

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from steadyeye.core.special import ndtri
from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import draw
from steadyeye.degradation.operator import Context, Operator, Trail

SEVERITIES = 5
PART = uint64(0xFFFF)
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
    whole = np.floor(np.clip(values, 0, 255) + values.dtype.type(0.5))
    return np.ascontiguousarray(whole.astype(np.uint8))


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
