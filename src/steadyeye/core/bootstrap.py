"""Resampling images by their video, for intervals of anything that is not a proportion."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from steadyeye.core.intervals import LEVEL, REPLICATES


def weights(videos: NDArray[np.str_], replicates: int = REPLICATES) -> NDArray[np.float32]:
    """(replicates, n) how often each sample counts in each resample of whole videos, seeded.

    `videos`: (n,) the video of each sample; each its own makes it the plain bootstrap.
    """
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        # nothing to resample but the images themselves; `method` says so
        names, video = videos, np.arange(len(videos))
    draws = np.random.default_rng(0).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=replicates
    )
    return np.asarray(draws[:, video], dtype=np.float32)


def means(values: NDArray[np.floating], weight: NDArray[np.float32]) -> NDArray[np.float64]:
    """(..., replicates) weighted means over the last axis of `values`, (..., n)."""
    return np.asarray(values @ weight.T / weight.sum(axis=1), dtype=np.float64)


def ends(replicates: NDArray[np.floating]) -> tuple[float, float]:
    """The percentile interval of (replicates,) values; `inf` may be among them."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def corrected(replicates: NDArray[np.floating], value: float) -> tuple[float, float]:
    """The bias-corrected percentile interval of (replicates,) values around a `value`.

    For statistics whose resamples lie to one side of it, as mAP's do: a resample that lacks a
    class leaves that class out of the mean. Efron, "The Jackknife, the Bootstrap and Other
    Resampling Plans", 1982, Section 10.7. `value` lies within the interval.
    """
    tail = norm.ppf((1 - LEVEL) / 2)
    shares = norm.cdf(2 * bias(replicates, value) + np.array([tail, -tail]))
    low, high = np.quantile(replicates, shares, method="inverted_cdf")
    return min(float(low), value), max(float(high), value)


def bias(replicates: NDArray[np.floating], value: float) -> float:
    """How far (replicates,) values lie below a `value` in the middle, in standard deviations."""
    below = np.mean(replicates < value) + np.mean(replicates == value) / 2
    least = 1 / (2 * len(replicates))
    return float(norm.ppf(np.clip(below, least, 1 - least)))


def method(videos: NDArray[np.str_]) -> str:
    """What the interval is called: a bootstrap over images or over videos."""
    several = len(np.unique(videos))
    if several == len(videos):
        return f"bootstrap over {several} images"
    if several == 1:
        return f"bootstrap over {len(videos)} images, within this one video only"
    return f"bootstrap over {several} videos"
