"""Values turned to black or white."""

import numpy as np
from numba import njit, uint64

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import severities
from steadyeye.degradation.counter_rng import HIGH, draw
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "local")
SHARE = (0.03, 0.06, 0.09, 0.17, 0.27)
"""The share of changed values at each severity: as released for ImageNet-C."""


def impulse_noise() -> Operator:
    """A share of all values, 3 … 27 %, each set to 0 or to 255; each channel on its own.

    Severities 1 … 5: what a severity turns stays turned at the next. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(impulse_noise(), level=3))
        25 % of pixels changed, mean 127 → 127

    """
    return severities("impulse_noise", _turn_values)


def _turn_values(image: Image, severity: int, key: np.uint64) -> Image:
    limit = np.uint64(SHARE[severity - 1] * 2**32)
    return _draw_values(image.reshape(-1), key, limit).reshape(image.shape)


@njit(nogil=True, cache=True)
def _draw_values(values: Image, key: np.uint64, limit: np.uint64) -> Image:
    out = values.copy()
    for i in range(values.size):
        bits = draw(key, i)
        if (bits >> HIGH) < uint64(limit):
            out[i] = np.uint8(255) if bits & uint64(1) else np.uint8(0)
    return out
