"""Intervals for time series: whole videos are resampled, a single one in blocks of its frames."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.special import ndtr, stdtrit
from steadyeye.core.stats import bounded_means, intervals
from steadyeye.core.stats.intervals import LEVEL, REPLICATES, Interval, number_clusters

FEWEST = 4  # blocks in a video, below which their spread cannot be estimated
FEW = 5  # videos, below which their resamples are too few for an interval
FEW_OF_MEAN = 20  # for an unbounded mean: over 5 videos it covers 77 to 92 %, over 10 up to 92


def length(n: int, window: int = 0) -> int:
    """The length of a block of `n` consecutive values: window + 2√n, at most a quarter of n.

    `window`: number of values on which one of them depends, such as the 2k + 1 frames of a window.
    Künsch, "The jackknife and the bootstrap for general stationary observations", 1989: blocks grow
    with n, so that they are longer than the dependence; the constant is from simulated predictions
    (tests).
    """
    return max(1, min(window + 2 * ceil(sqrt(n)), n // FEWEST))


def bootstrap(
    statistic: Callable[[NDArray[np.intp]], float],
    videos: NDArray[np.str_],
    block: int,
    fewest: int = FEW,
) -> Interval:
    """A statistic of values in time order, with an expanded percentile interval, seeded.

    `statistic`: of (m,) positions in the values, with repeats; `inf` if it is not reached, which
    becomes None. `videos`: (n,) the video of each value. Several are resampled as wholes; one in
    circular blocks of `block` consecutive values, and the method says so. Fewer than `fewest`
    videos have no interval.
    """
    n = len(videos)
    if n == 0:
        return Interval(None, None, None, 0, "none: n = 0")
    value = _finite(statistic(np.arange(n)))
    names = len(np.unique(videos))
    if names == 1 and n < FEWEST * block:
        return Interval(
            value,
            None,
            None,
            n,
            f"none: {number_of(n, 'value of one video is', 'values of one video are')} too few",
        )
    if 1 < names < fewest:
        return Interval(value, None, None, n, f"none: {names} videos are too few")
    values = np.array([statistic(counts) for counts in resamples(videos, block)])
    low, high = map(_finite, _ends(values, names if names > 1 else n // block))
    return Interval(value, low, high, n, method(names, block))


def _ends(replicates: NDArray[np.float64], units: int) -> tuple[float, float]:
    """The percentile interval, widened for few units as Student's t is. Hesterberg 2015.

    `bootstrap.ends` is not widened, because its draws include one unseen video.
    """
    # the variance of resamples is (n − 1)/n of that of samples
    tail = sqrt(units / (units - 1)) * stdtrit(units - 1, (1 - LEVEL) / 2)
    low, high = np.quantile(replicates, ndtr([tail, -tail]), method="inverted_cdf")
    return float(low), float(high)


def mean(values: NDArray[Any], videos: NDArray[np.str_], block: int) -> Interval:
    """The mean of values in 0…1, or the share of successes, in time order.

    Several videos: as `intervals.mean`. One: Gaffke's bounds over blocks of `block` consecutive
    values, the last of which takes the remainder, and the method says so.
    """
    if block == 1 or len(np.unique(videos)) > 1:
        return intervals.mean(values, videos)
    interval = intervals.mean(values, number_clusters(videos, block))
    how = f"Gaffke's bounds over {number_of(len(values) // block, 'block')} of {block} in a row"
    return replace(interval, method=f"{how}, {WITHIN}")


def quantile(
    values: NDArray[np.floating], share: float, videos: NDArray[np.str_], block: int
) -> Interval:
    """A quantile of n > 0 values in 0…1, in time order.

    The interval has the values at which the share below them may be `share`, by the bounds of
    `mean`; its high end is 1 if there are too few videos or blocks to bound it. Woodruff,
    "Confidence intervals for medians and other position measures", JASA 47, 1952.
    """
    cluster, steps = number_clusters(videos, block), np.unique(values)
    weights = np.bincount(cluster).astype(np.float64)[None]

    def below(at: float) -> NDArray[np.float64]:
        return np.bincount(cluster, values <= at, weights.size).astype(np.float64)[None]

    def reaches_share(at: float) -> bool:
        """Whether the share up to a value may be at least that of the quantile."""
        rest, level = weights - below(at), np.array([1 - share])
        return bool(bounded_means.chances(rest, weights, level)[0] > bounded_means.TAIL)

    def passes_share(at: float) -> bool:
        """Whether the share up to a value is certainly at least that of the quantile."""
        level = np.array([share])
        return bool(bounded_means.chances(below(at), weights, level)[0] <= bounded_means.TAIL)

    value = float(np.quantile(values, share, method="inverted_cdf"))
    low = steps[min(bisect_left(steps, True, key=reaches_share), len(steps) - 1)]
    high = np.append(steps, 1.0)[bisect_left(steps, True, key=passes_share)]
    names = len(np.unique(videos))
    how = method(names, block).replace("bootstrap", "Woodruff's interval")
    return Interval(value, min(float(low), value), max(float(high), value), len(values), how)


def resamples(videos: NDArray[np.str_], block: int) -> Iterator[NDArray[np.intp]]:
    """The positions in each resample: whole videos, or circular blocks of a single video."""
    rng = np.random.default_rng(0)
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        n = len(videos)
        within = np.arange(block)
        for _ in range(REPLICATES):
            starts = rng.integers(0, n, size=max(round(n / block), 1))
            yield np.asarray((starts[:, None] + within) % n, dtype=np.intp).ravel()
        return
    members = [np.flatnonzero(video == number) for number in range(len(names))]
    for _ in range(REPLICATES):
        yield np.concatenate([members[i] for i in rng.integers(0, len(names), size=len(names))])


def method(videos: int, block: int) -> str:
    """The name of the interval's method."""
    if videos > 1:
        return f"bootstrap over {number_of(videos, 'video')}"
    return f"bootstrap over blocks of {block} in a row, {WITHIN}"


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
