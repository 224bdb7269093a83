"""Intervals for proportions: exact where trials are independent, by video where they are not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

LEVEL = 0.95
REPLICATES = 2_000


@dataclass(frozen=True)
class Interval:
    """A proportion with its 95 % interval; `value` is None and the interval open on n = 0."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a binomial proportion, n > 0.

    No successes give a lower end of 0 and no failures an upper end of 1.
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.
    """
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, successes, n - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def proportion(success: NDArray[np.bool_], videos: NDArray[np.str_]) -> Interval:
    """The share of successes, with the interval that its clustering in videos allows.

    `success`: (n,) bool; `videos`: (n,) the video of each trial. One trial a video:
    Clopper–Pearson. Several: a bootstrap over videos. A single video: Clopper–Pearson, and the
    method says that it holds within that video only.
    """
    n = len(success)
    if n == 0:
        return Interval(None, None, None, 0, "none: there is nothing to count")
    hits = int(success.sum())
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == n:
        return Interval(hits / n, *clopper_pearson(hits, n), n, f"Clopper–Pearson, n = {n}")
    if len(names) == 1:
        method = f"Clopper–Pearson, n = {n}, within this one video only"
        return Interval(hits / n, *clopper_pearson(hits, n), n, method)
    totals = np.bincount(video, minlength=len(names))
    wins = np.bincount(video, weights=success, minlength=len(names))
    if hits in (0, n):
        # every resample equals the sample: fall back on one trial a video, which is exact
        low, high = clopper_pearson(len(names) if hits else 0, len(names))
        method = f"Clopper–Pearson over {len(names)} videos"
        return Interval(hits / n, low, high, n, method)
    low, high = _bootstrap(wins, totals)
    return Interval(hits / n, low, high, n, f"bootstrap over {len(names)} videos")


def _bootstrap(wins: NDArray[Any], totals: NDArray[Any]) -> tuple[float, float]:
    """The percentile interval of the ratio Σwins / Σtotals over resampled videos, seeded."""
    rng = np.random.default_rng(0)
    videos = len(totals)
    draws = rng.multinomial(videos, np.full(videos, 1 / videos), size=REPLICATES)
    shares = (draws @ wins) / (draws @ totals)
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
