"""Noise of counted photons."""

from functools import cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.stats import poisson

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.counter_rng import HIGH, LOW, draw
from steadyeye.degradation.operator import Operator

PHOTONS = (60, 25, 12, 5, 3)
"""That a value of 255 stands for at each severity: as released for ImageNet-C."""


def shot_noise() -> Operator:
    """Every value counted anew: Poisson of value × 60 … 3 photons, over as many, at most 255.

    Severities 1 … 5, at each the count at the same quantile. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(shot_noise(), level=3))
        100 % of pixels changed, mean 127 → 124

    """
    return severities("shot_noise", _count_photons)


def _count_photons(image: Image, severity: int, key: np.uint64) -> Image:
    photons = PHOTONS[severity - 1]
    grey = round_to_uint8(np.arange(len(_shares(photons)[0]) + 1) * (255 / photons))
    values = np.ascontiguousarray(image).reshape(-1)
    return _draw_counts(values, key, _shares(photons), grey).reshape(image.shape)


@cache
def _shares(photons: int) -> NDArray[np.uint64]:
    """(256, counts) the share of draws at most that count, of each value, of 2³²."""
    most = int(poisson.isf(2.0**-34, photons))
    counts, means = np.arange(most), np.arange(256)[:, None] * (photons / 255)
    return np.asarray(poisson.cdf(counts, means) * 2.0**32, dtype=np.uint64)


@njit(nogil=True, cache=True)
def _draw_counts(values: Image, key: np.uint64, shares: NDArray[np.uint64], grey: Image) -> Image:
    out = np.empty_like(values)
    for i in range(values.size):
        bits = draw(key, i // 2)
        half = bits >> HIGH if i % 2 else bits & LOW
        count, most = 0, shares.shape[1]
        while count < most:
            middle = (count + most) // 2
            if shares[values[i], middle] <= half:
                count = middle + 1
            else:
                most = middle
        out[i] = grey[count]
    return out
