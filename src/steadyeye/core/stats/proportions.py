"""Two proportions of the same trials, independent or in clusters: exact tests and intervals."""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, erfc, floor

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.claims import ALPHA
from steadyeye.core.special import ndtri
from steadyeye.core.stats import bounded_means
from steadyeye.core.stats.intervals import LEVEL

Floats = NDArray[np.float64]

CLOSE = 1e-9
ROOT_STEPS = 200  # a dozen are enough unless the function is flat
FEW = 5  # clusters; 2 · 2⁻⁵ is above 0.05, so that no difference is significant
SUBSETS = 8_192
COARSE = 200  # units of the mean difference, below which rounding the sizes matters
GRID = 200_000  # the sum of all differences is rounded to this if they are no whole numbers
STEPS = 50_000_000  # limit of the exact distribution's cost; beyond it counts are rounded


def mcnemar(only_one: int, only_other: int) -> float:
    """The exact two-sided p value of two equal proportions.

    `only_one`, `only_other`: trials in which only the one, or only the other, succeeds; under the
    null hypothesis both are equally likely. McNemar, Psychometrika 12, 1947.
    """
    discordant, fewer = only_one + only_other, min(only_one, only_other)
    ways = tail = 1
    for k in range(fewer):
        ways = ways * (discordant - k) // (k + 1)
        tail += ways
    # whole numbers until here: only the division rounds
    return min(float(2 * tail / 2**discordant), 1.0)


def leads(most: int, second: int) -> bool:
    """Whether the largest of several counts is significantly the largest.

    `most`, `second`: the largest and the next one, of independent units (videos, not frames). The
    exact two-sided test of the two alone keeps its level though both were chosen by their counts:
    Hung and Fithian, "Rank Verification for Exponential Families", Annals of Statistics 47, 2019.
    """
    return most > second and mcnemar(most, second) <= ALPHA


def tango(only_one: float, only_other: float, n: float) -> tuple[float, float]:
    """The 95 % score interval of the difference of two paired proportions, n > 0 trials.

    The differences that Tango's score test does not reject; it keeps its level at small n and if
    none or all of the trials differ. Tango, "Equivalence test and confidence interval for the
    difference in proportions for the paired-sample design", Statistics in Medicine 17, 1998.
    """
    z = float(ndtri((1 + LEVEL) / 2))
    value = (only_one - only_other) / n

    def excess(difference: float) -> float:
        # squared, so that it stays finite where the variance is 0
        apart = only_one - only_other - n * difference
        return apart**2 - z**2 * n * _variance(only_one, only_other, n, difference)

    # at the value itself the score is 0, and the variance may be: the ends are on either side
    low = _root(excess, -1, value - CLOSE) if value - CLOSE > -1 else -1.0
    high = _root(excess, value + CLOSE, 1) if value + CLOSE < 1 else 1.0
    return low, high


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a function with different signs at `low` and `high`.

    The Illinois method: the secant, with the value at an unchanged end halved. Dowell and Jarratt,
    "A modified regula falsi method for computing the root of an equation", BIT 11, 1971.
    """
    at_low, at_high = function(low), function(high)
    at, before = low, 0.0
    for _ in range(ROOT_STEPS):
        at = high - at_high * (high - low) / (at_high - at_low)
        value = function(at)
        if value == 0 or at in (low, high):
            break
        if value * at_high > 0:
            high, at_high = at, value
            at_low *= 0.5 if value * before > 0 else 1
        else:
            low, at_low = at, value
            at_high *= 0.5 if value * before > 0 else 1
        before = value
    return at


def _variance(only_one: float, only_other: float, n: float, difference: float) -> float:
    """The variance of a trial's difference, estimated for a true difference of `difference`."""
    a = 2 * n
    b = -only_one - only_other + (2 * n - only_one + only_other) * difference
    c = -only_other * difference * (1 - difference)
    losing = (max(b * b - 4 * a * c, 0) ** 0.5 - b) / (2 * a)
    return float(2 * losing + difference * (1 - difference))


def cluster_ends(lead: Floats, totals: Floats) -> tuple[float, float, float]:
    """The 95 % interval of Σlead / Σtotals, and the two-sided p value of no difference.

    `lead`: (g,) the trials by which the one model leads in each cluster, `totals`: (g,) all trials.
    The interval excludes 0 exactly if p is 0.05 or less. The end towards 0 is that of the means of
    random subsets of the clusters: the differences that the same test, of clusters minus that
    difference, rejects are outside (Hartigan, "Using subsample values as typical values", JASA 64,
    1969). The other end is Gaffke's bound, with one unseen cluster of the greatest possible
    difference, because rare clusters decide how large a difference may be. One more success of the
    one model never lowers an end.
    """
    above, below = exchange_chances(lead)
    value = float(lead.sum() / totals.sum())
    low = _low(lead, totals, above)
    high = -_low(-lead, totals, below)
    return min(low, value), max(high, value), min(1.0, 2 * min(above, below))


def lower_bound(lead: Floats, totals: Floats, copies: float = 1.0) -> float:
    """Gaffke's lower bound of Σlead / Σtotals, −1…1; `copies` as in `bounded_means`."""
    bounds = bounded_means.lower_bounds(((lead + totals) / 2)[None], totals[None], copies)
    return float(2 * bounds[0] - 1)


def exchange_chances(lead: Floats) -> tuple[float, float]:
    """One-sided p values of no difference: for the one model being higher, and being lower.

    If the models are alike, the outcomes of each cluster could be exchanged: the share of all 2ᵍ
    exchanges with at least the same lead. Exact, for clusters of any size; with one trial per
    cluster McNemar's exact test. By the normal distribution if more than some hundred clusters
    (`COARSE`) differ by fractions, or thousands by whole numbers. Fisher, "The Design of
    Experiments", 1935, Section 21.
    """
    exact = np.abs(lead[lead != 0])
    scale = max(1.0, float(exact.sum()) * len(exact) / STEPS)
    is_whole = scale == 1 and bool((exact == np.rint(exact)).all())
    if len(exact) and not is_whole:
        scale = float(exact.sum()) / min(STEPS / len(exact), GRID)
    if len(exact) and not is_whole and exact.mean() < COARSE * scale:
        # too many to be counted, and enough for their sum to be normal
        above = 0.5 * erfc(float(lead.sum()) / (2 * float(exact @ exact)) ** 0.5)
        return above, 1 - above
    sizes = np.rint(exact / scale).astype(np.int64)
    lost = float(sizes.sum()) / 2 - float(lead.sum()) / scale / 2
    # exchanges with the same lead count; rounded sizes would separate some of them
    slack = 0.0 if is_whole else _bound_rounding(len(exact))
    chance = np.zeros(int(sizes.sum()) + 1)
    chance[0], largest = 1.0, 0
    for size in np.sort(sizes).tolist():
        largest += size
        moved = chance[: largest + 1 - size] / 2
        chance[: largest + 1] /= 2
        chance[size : largest + 1] += moved
    # exchanges whose clusters with a lead of the other model sum to at most `lost`
    above = chance[: floor(lost + slack) + 1].sum()
    below = chance[max(ceil(lost - slack), 0) :].sum()
    return float(min(above, 1.0)), float(min(below, 1.0))


def _bound_rounding(clusters: int) -> float:
    """The greatest difference that rounding makes between two equal sums over clusters.

    Half a unit each; for many clusters, whose sizes are small, four standard deviations.
    """
    return clusters / 2 if clusters <= 200 else 4 * (clusters / 12) ** 0.5


def _low(lead: Floats, totals: Floats, chance: float) -> float:
    if chance > bounded_means.TAIL:
        return min(lower_bound(lead, totals), 0.0)
    some = subsets(len(lead))
    with np.errstate(invalid="ignore"):
        means = np.where((count := some @ totals) > 0, some @ lead / count, -np.inf)
    place = int(bounded_means.TAIL * len(means))
    return max(float(np.partition(means, place)[place]), 0.0)


@lru_cache(maxsize=32)
def subsets(clusters: int) -> NDArray[np.float32]:
    """(subsets, clusters) 1 if a cluster is in a subset: all subsets, or a seeded sample."""
    if 2**clusters <= SUBSETS:
        every = np.arange(2**clusters)[:, None] >> np.arange(clusters) & 1
        return every.astype(np.float32)
    many = max(min(SUBSETS, 20_000_000 // clusters), 1_000)
    members = np.random.default_rng(0).integers(0, 2, size=(many, clusters), dtype=np.uint8)
    return members.astype(np.float32)
