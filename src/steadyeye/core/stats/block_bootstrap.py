"""Intervals of what follows in time: videos as wholes, a single one in blocks of its frames."""

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

FEWEST = 4  # blocks in a video, below which their spread says nothing
FEW = 5  # videos, below which resamples of them are too few to say anything
FEW_OF_MEAN = 20  # of a mean that nothing bounds: over 5 it covers 77 to 92 %, over 10 up to 92


def length(n: int, window: int = 0) -> int:
    """How many of `n` consecutive values a block holds: window + 2√n, at most a quarter of them.

    `window`: over how many values one of them looks, as the 2k + 1 frames of a window. Künsch, "The
    jackknife and the bootstrap for general stationary observations", 1989, lets blocks grow with n
    so that they outlast the dependence; the constant is from simulated answers (tests).
    """
    return max(1, min(window + 2 * ceil(sqrt(n)), n // FEWEST))


def bootstrap(
    statistic: Callable[[NDArray[np.intp]], float],
    videos: NDArray[np.str_],
    block: int,
    fewest: int = FEW,
) -> Interval:
    """A statistic of values in the order of time, with an expanded percentile interval, seeded.

    `statistic`: of (m,) positions in the values, with repeats; `inf` where it is not reached, which
    makes a None. `videos`: (n,) the video of each value. Several are resampled as wholes; one in
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
    """The percentile interval, widened as Student's is for few units. Hesterberg 2015.

    `bootstrap.ends` does not widen: its draws weigh a further video that nobody has seen.
    """
    # resamples vary by (n − 1)/n of what samples do
    tail = sqrt(units / (units - 1)) * stdtrit(units - 1, (1 - LEVEL) / 2)
    low, high = np.quantile(replicates, ndtr([tail, -tail]), method="inverted_cdf")
    return float(low), float(high)


def mean(values: NDArray[Any], videos: NDArray[np.str_], block: int) -> Interval:
    """The mean of values in 0…1, or the share of successes, in the order of time.

    Several videos: as `intervals.mean`. One: Gaffke's bounds over blocks of `block` consecutive
    values, the last of which takes what is left over, and the method says so.
    """
    if block == 1 or len(np.unique(videos)) > 1:
        return intervals.mean(values, videos)
    interval = intervals.mean(values, number_clusters(videos, block))
    how = f"Gaffke's bounds over {number_of(len(values) // block, 'block')} of {block} in a row"
    return replace(interval, method=f"{how}, {WITHIN}")


def quantile(
    values: NDArray[np.floating], share: float, videos: NDArray[np.str_], block: int
) -> Interval:
    """A quantile of values in 0…1, in the order of time, n > 0 of them.

    The interval holds the values at which the share below them may be `share`, by the bounds of
    `mean`; its high end is 1 where the videos or blocks are too few to bound it. Woodruff,
    "Confidence intervals for medians and other position measures", JASA 47, 1952.
    """
    cluster, steps = number_clusters(videos, block), np.unique(values)
    weights = np.bincount(cluster).astype(np.float64)[None]

    def below(at: float) -> NDArray[np.float64]:
        return np.bincount(cluster, values <= at, weights.size).astype(np.float64)[None]

    def reaches_share(at: float) -> bool:
        """Whether the share up to a value may be as high as that of the quantile."""
        rest, level = weights - below(at), np.array([1 - share])
        return bool(bounded_means.chances(rest, weights, level)[0] > bounded_means.TAIL)

    def passes_share(at: float) -> bool:
        """Whether it cannot be lower."""
        level = np.array([share])
        return bool(bounded_means.chances(below(at), weights, level)[0] <= bounded_means.TAIL)

    value = float(np.quantile(values, share, method="inverted_cdf"))
    low = steps[min(bisect_left(steps, True, key=reaches_share), len(steps) - 1)]
    high = np.append(steps, 1.0)[bisect_left(steps, True, key=passes_share)]
    names = len(np.unique(videos))
    how = method(names, block).replace("bootstrap", "Woodruff's interval")
    return Interval(value, min(float(low), value), max(float(high), value), len(values), how)


def resamples(videos: NDArray[np.str_], block: int) -> Iterator[NDArray[np.intp]]:
    """The positions in each resample: whole videos, or circular blocks where there is but one."""
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
    """What the interval is called."""
    if videos > 1:
        return f"bootstrap over {number_of(videos, 'video')}"
    return f"bootstrap over blocks of {block} in a row, {WITHIN}"


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
