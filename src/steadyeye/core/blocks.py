"""Resampling what follows in time: several videos as wholes, one video in blocks of its frames."""

from collections.abc import Callable, Iterator
from math import ceil, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.bootstrap import ends
from steadyeye.core.intervals import REPLICATES, Interval, clopper_pearson, proportion

FEWEST = 4  # blocks in a video, below which their spread says nothing


def length(n: int, reach: int = 0) -> int:
    """How many of `n` consecutive values a block holds: reach + 2√n, at most a quarter of them.

    `reach`: over how many values one of them looks, as the 2k + 1 frames of a window. Künsch, "The
    jackknife and the bootstrap for general stationary observations", 1989, lets blocks grow with n
    so that they outlast the dependence; the constant is from simulated answers (tests).
    """
    return max(1, min(reach + 2 * ceil(sqrt(n)), n // FEWEST))


def bootstrap(
    statistic: Callable[[NDArray[np.intp]], float], videos: NDArray[np.str_], block: int
) -> Interval:
    """A statistic of values in the order of time, with its percentile interval, seeded.

    `statistic`: of (m,) positions in the values, with repeats; `inf` where it is not reached, which
    makes a None. `videos`: (n,) the video of each value. Several are resampled as wholes; one in
    circular blocks of `block` consecutive values, and the method says so.
    """
    n = len(videos)
    if n == 0:
        return Interval(None, None, None, 0, "none: there is nothing to count")
    value = _finite(statistic(np.arange(n)))
    names = len(np.unique(videos))
    if names == 1 and n < FEWEST * block:
        return Interval(value, None, None, n, f"none: {n} in one video are too few")
    found = np.array([statistic(drawn) for drawn in resamples(videos, block)])
    low, high = map(_finite, ends(found))
    return Interval(value, low, high, n, method(names, block))


def share(success: NDArray[np.bool_], videos: NDArray[np.str_], block: int) -> Interval:
    """The share of successes in the order of time, as `proportion`, but in blocks of one video.

    Where all or none succeed, the blocks are the trials of a Clopper–Pearson interval.
    """
    n, hits = len(success), int(success.sum())
    if n < FEWEST * block or len(np.unique(videos)) > 1:
        return proportion(success, videos)
    if hits in (0, n):
        low, high = clopper_pearson(n // block if hits else 0, n // block)
        how = f"Clopper–Pearson over {n // block} blocks of {block}, within this one video only"
        return Interval(hits / n, low, high, n, how)
    return bootstrap(lambda rows: float(success[rows].mean()), videos, block)


def resamples(
    videos: NDArray[np.str_], block: int, replicates: int = REPLICATES
) -> Iterator[NDArray[np.intp]]:
    """The positions in each resample: whole videos, or circular blocks where there is but one."""
    rng = np.random.default_rng(0)
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        n = len(videos)
        within = np.arange(block)
        for _ in range(replicates):
            starts = rng.integers(0, n, size=max(round(n / block), 1))
            yield np.asarray((starts[:, None] + within) % n, dtype=np.intp).ravel()
        return
    members = [np.flatnonzero(video == each) for each in range(len(names))]
    for _ in range(replicates):
        yield np.concatenate([members[i] for i in rng.integers(0, len(names), size=len(names))])


def method(videos: int, block: int) -> str:
    """What the interval is called."""
    if videos > 1:
        return f"bootstrap over {videos} videos"
    return f"bootstrap over blocks of {block} in a row, within this one video only"


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
