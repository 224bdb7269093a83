"""The difference of two models on the same samples: estimate, interval and p value."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.special import stdtr, stdtrit
from steadyeye.core.stats import bounded_means
from steadyeye.core.stats.class_means import FEWEST, Spread, chance_of_none, less, mean_difference
from steadyeye.core.stats.intervals import (
    LEVEL,
    count_clusters,
    limit_to_video,
    number_clusters,
)
from steadyeye.core.stats.proportions import FEW, cluster_ends, mcnemar, tango
from steadyeye.core.stats.trials import Outcomes, Statistic, Trials

FINE = 1_000.0  # parts of an image that the exact test counts


@dataclass(frozen=True)
class Difference:
    """The value of one model minus that of another, with its 95 % interval and two-sided p value.

    `n`: trials or images. `units`: the number of independent ones, or of their videos.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    units: int
    method: str


@dataclass(frozen=True, eq=False)
class PreparedOutcomes:
    """Outcomes with their `value`, and the inputs for their difference from others.

    `wins`, `totals`: (g,) successes and trials of each cluster, or parts of a share; None for
    another statistic. `spread`: of a mean over classes.
    """

    outcomes: Outcomes
    value: float
    wins: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    spread: Spread | None = None


def prepare_outcomes(outcomes: Outcomes) -> PreparedOutcomes:
    """The outcomes of a model with their value and clusters, ready for `difference`."""
    if isinstance(outcomes, Statistic):
        if outcomes.parts is not None:
            cluster = number_clusters(outcomes.videos, outcomes.block)
            wins, totals = (
                np.bincount(cluster, part).astype(np.float64) for part in outcomes.parts
            )
            return PreparedOutcomes(outcomes, outcomes.value, wins, totals)
        find = None if np.isnan(outcomes.value) else outcomes.spread
        return PreparedOutcomes(outcomes, outcomes.value, spread=find() if find else None)
    success = outcomes.success
    value = float(success.mean()) if len(success) else float("nan")
    cluster = number_clusters(outcomes.videos, outcomes.block)
    wins = np.bincount(cluster, weights=success).astype(np.float64)
    return PreparedOutcomes(outcomes, value, wins, np.bincount(cluster).astype(np.float64))


def difference(base: PreparedOutcomes, other: PreparedOutcomes) -> Difference | None:
    """The value of one model minus that of the other; None if either has none.

    Independent trials, one per video or all of a single video (the method says so): McNemar's exact
    test and Tango's score interval. Clustered trials, means over images, and shares of each model's
    own objects: the models are exchanged cluster by cluster, with Gaffke's bounds
    (`core.stats.proportions`). Means over classes: the jackknife of their difference
    (`core.stats.class_means`). Anything else, such as means over each model's own choice of images:
    a jackknife over videos (or images without videos) with Student's t. With too few images or
    videos for an interval, it is −1…1 or the full range of values, p is 1, and the method says so.
    """
    assert np.array_equal(base.outcomes.videos, other.outcomes.videos), "of the same samples"
    if np.isnan(base.value) or np.isnan(other.value):
        return None
    first, second = base.outcomes, other.outcomes
    if isinstance(first, Trials) and isinstance(second, Trials):
        if len(base.totals) == len(first.success):
            return _of_trials(first, second)
        return _of_clusters(base, other, first.block)
    if base.spread is not None and other.spread is not None:
        return _of_classes(base.spread, other.spread, len(first.videos))
    assert isinstance(first, Statistic), "trials are compared with trials"
    assert isinstance(second, Statistic), "trials are compared with trials"
    if first.terms is not None and second.terms is not None:
        return _of_means(first, second)
    return _of_others(first, second) if first.parts is None else _of_shares(base, other)


def chance_of_equal_means(base: PreparedOutcomes, other: PreparedOutcomes, p: float) -> float:
    """The two-sided p value of equal means, also for models that fail on different videos.

    Exchanging two models tests whether they are alike in every respect: a model that fails on a few
    whole videos and one that fails anywhere may differ significantly although their means are
    equal. This one is Gaffke's (`core.stats.bounded_means`), which allows for rare videos. For
    independent samples and for means over classes it is `p`, that of `difference`; never less.
    """
    first, second = base.outcomes, other.outcomes
    if isinstance(first, Trials):
        if len(base.totals) == len(first.success):
            return p
        lead, totals = base.wins - other.wins, base.totals
    elif first.terms is not None and isinstance(second, Statistic) and second.terms is not None:
        lead, totals = _lead_of_means(first.terms, second.terms, first.videos)
    elif first.parts is not None:
        lead, totals = lead_of_shares(base, other)
    else:
        return p
    leads = np.stack([totals + lead, totals - lead]) / 2
    chances = bounded_means.chances(leads, np.stack([totals, totals]), np.full(2, 0.5))
    return max(p, min(1.0, 2 * float(chances.min())))


def _lead_of_means(
    first: tuple[NDArray[np.float64], float],
    second: tuple[NDArray[np.float64], float],
    videos: NDArray[np.str_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(g,) the lead of a mean over images in each cluster, and its greatest possible size."""
    width = max(first[1], second[1], 1e-300)
    cluster = number_clusters(videos)
    lead = FINE * np.bincount(cluster, (first[0] - second[0]) / width)
    return np.asarray(lead, dtype=np.float64), FINE * np.bincount(cluster).astype(np.float64)


def lead_of_shares(
    first: PreparedOutcomes, second: PreparedOutcomes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(g,) the lead of a share in each cluster, and its greatest possible size.

    The excess over the share of both together in a cluster, divided by the total: the leads sum to
    the difference of the shares. In parts of `FINE` per cluster.
    """
    right, whole, other_right, other_whole = first.wins, first.totals, second.wins, second.totals
    together = (right.sum() + other_right.sum()) / (whole.sum() + other_whole.sum())
    lead = (right - together * whole) / whole.sum()
    lead -= (other_right - together * other_whole) / other_whole.sum()
    totals = np.maximum(whole / whole.sum(), other_whole / other_whole.sum())
    counted = totals > 0
    scale = FINE * np.count_nonzero(counted)
    return np.asarray(scale * lead[counted], dtype=np.float64), scale * totals[counted]


def find_width(totals: NDArray[np.float64]) -> float:
    """The greatest possible difference of shares, in the units of `lead_of_shares`."""
    return float(totals.sum()) / (FINE * len(totals))


def _of_shares(base: PreparedOutcomes, other: PreparedOutcomes) -> Difference:
    lead, totals = lead_of_shares(base, other)
    videos, block = base.outcomes.videos, base.outcomes.block
    n, units, value = len(videos), len(totals), base.value - other.value
    width = find_width(totals)
    low, high, p = cluster_ends(lead, totals)
    of = count_clusters(videos)
    if block > 1 and len(np.unique(videos)) == 1:
        of = f"{number_of(units, 'block')} of {block} images in a row"
    method = f"exact permutation test over {of}; Gaffke's bounds{limit_to_video(videos)}"
    if units <= FEW:
        method += f"; {units} are too few for a clear difference"
    low, high = max(low * width, -1.0), min(high * width, 1.0)
    return Difference(value, min(low, value), max(high, value), p, n, units, method)


def _of_classes(first: Spread, second: Spread, n: int) -> Difference:
    apart = less(first, second)
    own, p = mean_difference(apart, n), chance_of_none(apart)
    assert own.value is not None, "asked before"
    if own.low is None or own.high is None:
        method = f"{own.method.removeprefix('none: ')}: they may differ by anything"
        return Difference(own.value, -1.0, 1.0, 1.0, n, apart.units, method)
    return Difference(own.value, own.low, own.high, p, n, apart.units, f"paired {own.method}")


def _of_means(first: Statistic, second: Statistic) -> Difference:
    assert first.terms is not None, "asked before"
    assert second.terms is not None, "asked before"
    width = max(first.terms[1], second.terms[1], 1e-300)
    lead, totals = _lead_of_means(first.terms, second.terms, first.videos)
    low, high, p = cluster_ends(lead, totals)
    n, units, value = len(first.terms[0]), len(totals), first.value - second.value
    method = f"exact permutation test over {count_clusters(first.videos)}; Gaffke's bounds"
    method += limit_to_video(first.videos)
    if units <= FEW:
        method += f"; {units} are too few for a clear difference"
    return Difference(value, min(low * width, value), max(high * width, value), p, n, units, method)


def _of_others(first: Statistic, second: Statistic) -> Difference:
    """A jackknife; degrees of freedom by the kurtosis of the changes on leaving a unit out."""
    cluster = number_clusters(first.videos)
    n, units = len(cluster), int(cluster.max()) + 1
    value = first.value - second.value
    of = count_clusters(first.videos)
    if units < FEWEST:
        low, high = (-np.inf, np.inf)
        return Difference(value, low, high, 1.0, n, units, f"{of} are too few for an interval")
    left_in = (cluster != np.arange(units)[:, None]).astype(np.float32)
    moved = first.resampled(left_in) - second.resampled(left_in)
    moved = moved[~np.isnan(moved)] - np.nanmean(moved)
    squares = float(np.sum(moved**2))
    if squares < 1e-24:
        return _alike(value, n, units)
    kurtosis = units * float(np.sum(moved**4)) / squares**2
    df = min(units - 1, max(1.0, 2 * units / max(kurtosis - 1, 1e-9)))
    error = float(np.sqrt((units - 1) / units * squares))
    half_width = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    p = float(min(2 * stdtr(df, -abs(value) / error), 1.0))
    method = f"paired jackknife over {of}, Student's t, {df:.0f} df{limit_to_video(first.videos)}"
    return Difference(value, value - half_width, value + half_width, p, n, units, method)


def _of_trials(first: Trials, second: Trials) -> Difference:
    wins = int(np.sum(first.success & ~second.success))
    losses = int(np.sum(~first.success & second.success))
    n = len(first.success)
    method = f"McNemar's exact test, {wins} against {losses} of {n:,}; Tango's interval"
    method += limit_to_video(first.videos)
    ends = tango(wins, losses, n)
    return Difference((wins - losses) / n, *ends, mcnemar(wins, losses), n, n, method)


def _of_clusters(first: PreparedOutcomes, second: PreparedOutcomes, block: int) -> Difference:
    lead, totals = first.wins - second.wins, first.totals
    n, units = int(totals.sum()), len(totals)
    low, high, p = cluster_ends(lead, totals)
    single = len(np.unique(first.outcomes.videos)) == 1
    of = (
        f"{number_of(units, 'block')} of {block} in a row"
        if single
        else f"{number_of(units, 'video')}"
    )
    method = (
        f"exact permutation test over {of}, difference above 0 in {int(np.sum(lead > 0)):,} and "
        f"below 0 in {int(np.sum(lead < 0)):,}; Gaffke's bounds"
    )
    if units <= FEW:
        method += f"; {units} are too few for a clear difference"
    if single:
        method += f", {WITHIN}"
    return Difference(float(lead.sum() / n), low, high, p, n, units, method)


def _alike(value: float, n: int, units: int) -> Difference:
    """The difference if it is equal in all videos, so that there is no spread: one trial each."""
    ends = tango(units * max(value, 0.0), units * max(-value, 0.0), units)
    several = "images" if units == n else "videos"
    method = f"Tango's interval over {units:,} {several} with equal differences"
    return Difference(value, *ends, mcnemar(units if value else 0, 0), n, units, method)
