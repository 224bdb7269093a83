"""Noise of counted photons."""

from functools import cache

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray
from scipy.stats import poisson

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.counter_rng import HIGH, LOW, draw
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "local")
PHOTONS = (60, 25, 12, 5, 3)
"""The photons of a value of 255 at each severity: as released for ImageNet-C."""
PART = uint64(24)


def shot_noise() -> Operator:
    """Every value replaced by a Poisson count at 60 … 3 photons for the full range, at most 255.

    Severities 1 … 5, at each the count at the same quantile. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(shot_noise(), level=3))
        100 % of pixels changed, mean 127 → 124

    """
    return severities("shot_noise", _count_photons)


def _count_photons(image: Image, severity: int, key: np.uint64) -> Image:
    photons = PHOTONS[severity - 1]
    shares, firsts = _shares(photons)
    grey = round_to_uint8(np.arange(shares.shape[1] + 1) * (255 / photons))
    return _draw_counts(image.reshape(-1), key, (shares, firsts), grey).reshape(image.shape)


@cache
def _shares(photons: int) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """(256, counts) the share of draws up to each count, for each value, of 2³²; first counts.

    First counts: (256, 256) the count of the least draw with those highest eight bits.
    """
    most = int(poisson.isf(2.0**-34, photons))
    counts, means = np.arange(most), np.arange(256)[:, None] * (photons / 255)
    shares = np.asarray(poisson.cdf(counts, means) * 2.0**32, dtype=np.uint64)
    least = np.arange(256, dtype=np.uint64) << 24
    firsts = np.array([np.searchsorted(row, least, side="right") for row in shares])
    return shares, firsts.astype(np.uint16)


@njit(nogil=True, cache=True)
def _draw_counts(
    values: Image,
    key: np.uint64,
    tables: tuple[NDArray[np.uint64], NDArray[np.uint16]],
    grey: Image,
) -> Image:
    shares, firsts = tables
    out = np.empty_like(values)
    for i in range(values.size):
        bits = draw(key, i // 2)
        half = bits >> HIGH if i % 2 else bits & LOW
        count = np.int64(firsts[values[i], half >> PART])
        while count < shares.shape[1] and shares[values[i], count] <= half:
            count += 1
        out[i] = grey[count]
    return out
