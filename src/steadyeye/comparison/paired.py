"""The difference of two models on the same samples: estimate, interval and p value."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from steadyeye.comparison import clustered
from steadyeye.comparison.proportions import mcnemar, tango
from steadyeye.core import blocks, bootstrap
from steadyeye.core.intervals import LEVEL, REPLICATES
from steadyeye.core.outcomes import Outcomes, Statistic, Trials

MOST = 20_000  # resamples: what twenty models need for their pairs to survive Holm's adjustment


@dataclass(frozen=True)
class Difference:
    """How much higher one model is than another, with its 95 % interval and two-sided p value.

    `n`: trials or images. `units`: how many of them, or of their videos, stand for themselves.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    units: int
    method: str


@dataclass(frozen=True, eq=False)
class Drawn:
    """Outcomes with their `value` and the (r,) values of resamples, where any are needed.

    `wins`, `totals`: (g,) successes and trials of each cluster; none for a statistic.
    """

    outcomes: Outcomes
    value: float
    replicates: NDArray[np.float64]
    wins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def drawn(outcomes: Outcomes, replicates: int = REPLICATES) -> Drawn:
    """The outcomes of a model, a statistic resampled as that of any other on the same samples is.

    At most 20,000 times.
    """
    if isinstance(outcomes, Statistic):
        weight = bootstrap.weights(outcomes.videos, min(replicates, MOST))
        return Drawn(outcomes, outcomes.value, outcomes.resampled(weight))
    success = outcomes.success
    value = float(success.mean()) if len(success) else float("nan")
    cluster = blocks.clusters(outcomes.videos, outcomes.block)
    wins = np.bincount(cluster, weights=success).astype(np.float64)
    return Drawn(outcomes, value, np.zeros(0), wins, np.bincount(cluster).astype(np.float64))


def difference(one: Drawn, other: Drawn) -> Difference | None:
    """The value of one model minus that of the other; None where either has none.

    Trials that stand for themselves, one a video, or all of a single video, which the method then
    says: McNemar's exact test and Tango's score interval. Trials that do not, several a video or in
    the time of one: the models are exchanged cluster by cluster, and Gaffke's bounds
    (`comparison.clustered`). Anything else: a bootstrap over videos (images, where each is its own)
    that draws the same for both models.
    """
    assert np.array_equal(one.outcomes.videos, other.outcomes.videos), "of the same samples"
    if np.isnan(one.value) or np.isnan(other.value):
        return None
    first, second = one.outcomes, other.outcomes
    if not isinstance(first, Trials) or not isinstance(second, Trials):
        return _of_replicates(one, other)
    if len(one.totals) == len(first.success):
        return _of_trials(first, second)
    return _of_clusters(one, other, first.block)


def _of_trials(one: Trials, other: Trials) -> Difference:
    ahead = int(np.sum(one.success & ~other.success))
    behind = int(np.sum(~one.success & other.success))
    n = len(one.success)
    method = f"McNemar's exact test, {ahead} against {behind} of {n:,}; Tango's interval"
    if n > 1 and len(np.unique(one.videos)) == 1:
        method += ", within this one video only"
    ends = tango(ahead, behind, n)
    return Difference((ahead - behind) / n, *ends, mcnemar(ahead, behind), n, n, method)


def _of_clusters(one: Drawn, other: Drawn, block: int) -> Difference:
    ahead, totals = one.wins - other.wins, one.totals
    n, units = int(totals.sum()), len(totals)
    low, high, p = clustered.ends(ahead, totals)
    single = len(np.unique(one.outcomes.videos)) == 1
    of = f"{units:,} blocks of {block} in a row" if single else f"{units:,} videos"
    method = (
        f"exact test that exchanges the models in {of}, higher in {int(np.sum(ahead > 0)):,} and "
        f"lower in {int(np.sum(ahead < 0)):,}; Gaffke's bounds"
    )
    if units <= clustered.FEW:
        method += f"; {units} are too few to tell models apart"
    if single:
        method += ", within this one video only"
    return Difference(float(ahead.sum() / n), low, high, p, n, units, method)


def _alike(value: float, n: int, units: int) -> Difference:
    """Where all videos differ alike, which tells nothing of their spread: one trial a video."""
    ends = tango(units * max(value, 0.0), units * max(-value, 0.0), units)
    several = "images" if units == n else "videos"
    method = f"Tango's interval over {units:,} {several}, which all differ alike"
    return Difference(value, *ends, mcnemar(units if value else 0, 0), n, units, method)


def _of_replicates(one: Drawn, other: Drawn) -> Difference:
    videos = one.outcomes.videos
    n, units = len(videos), _units(videos)
    value = one.value - other.value
    skewed = isinstance(one.outcomes, Statistic) and one.outcomes.skewed
    replicates = one.replicates - other.replicates
    replicates = replicates[~np.isnan(replicates)]
    if np.ptp(replicates) > 0:
        shift = 2 * bootstrap.bias(replicates, value) if skewed else 0.0
        low, high = _ends(replicates, shift, units)
        p = _p_value(replicates, shift, units)
        corrected = "bias-corrected " if skewed else ""
        method = f"paired {corrected}{bootstrap.method(videos)}, {len(replicates):,} resamples"
        return Difference(value, min(low, value), max(high, value), p, n, units, method)
    return _alike(value, n, units)


def _ends(replicates: NDArray[np.float64], shift: float, units: int) -> tuple[float, float]:
    """The percentile interval, corrected by `shift` and widened as Student's is for few units.

    Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69,
    2015: the expanded percentile interval.
    """
    tail = _widened(units) * t.ppf((1 - LEVEL) / 2, units - 1)
    shares = norm.cdf(shift + np.array([tail, -tail]))
    low, high = np.quantile(replicates, shares, method="inverted_cdf")
    return float(low), float(high)


def _p_value(replicates: NDArray[np.float64], shift: float, units: int) -> float:
    """Two-sided, of the level at which the interval reaches 0; the sample counts as a resample.

    From the share of resamples on the far side of 0, one added. Davison and Hinkley, "Bootstrap
    Methods and their Application", 1997, Section 4.2.
    """
    most = len(replicates) + 1
    below = norm.ppf((1 + np.sum(replicates <= 0)) / most) - shift
    above = norm.ppf((1 + np.sum(replicates >= 0)) / most) + shift
    far = min(below, above) / _widened(units)
    return float(min(2 * t.cdf(far, units - 1), 1.0))


def _widened(units: int) -> float:
    # resamples vary by (n − 1)/n of what samples do
    return float(np.sqrt(units / (units - 1)))


def _units(videos: NDArray[np.str_]) -> int:
    """What a resample draws: videos, or the images of a single one."""
    several = len(np.unique(videos))
    return several if several > 1 else len(videos)
