"""Two proportions of trials that come in clusters: an exact test and bounds that hold for few."""

from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats import bounded_means

Floats = NDArray[np.float64]
FEW = 5  # clusters; 2 · 2⁻⁵ is above 0.05, so that the test tells nothing apart
SUBSETS = 8_192
STEPS = 50_000_000  # what the exact distribution may cost; beyond it counts are rounded


def ends(lead: Floats, totals: Floats) -> tuple[float, float, float]:
    """The 95 % interval of Σahead / Σtotals, and the two-sided p value of no difference.

    `lead`: (g,) by how many trials the one model is ahead in each cluster, `totals`: (g,) of how
    many. The interval leaves out 0 exactly where p is 0.05 or less. On the side of 0, where models
    are told apart, its end is that of the means of random subsets of the clusters: the differences
    for which the same test, of clusters less that difference, is not passed (Hartigan, "Using
    subsample values as typical values", JASA 64, 1969). Elsewhere it is Gaffke's bound, in which a
    cluster that nobody saw may differ by everything, because how far a difference may go is told
    by rare clusters. One more success of the one model never lowers an end.
    """
    above, below = chances(lead)
    value = float(lead.sum() / totals.sum())
    low = _low(lead, totals, above)
    high = -_low(-lead, totals, below)
    return min(low, value), max(high, value), min(1.0, 2 * min(above, below))


def lower_bound(lead: Floats, totals: Floats, copies: float = 1.0) -> float:
    """Gaffke's lower bound of Σahead / Σtotals, −1…1; `copies` as in `bounded_means`."""
    bounds = bounded_means.lower_bounds(((lead + totals) / 2)[None], totals[None], copies)
    return float(2 * bounds[0] - 1)


def chances(lead: Floats) -> tuple[float, float]:
    """One-sided p values of no difference, against the one model being higher, and being lower.

    If the models are alike, each cluster might as well have come out with the two exchanged: of all
    2ᵍ ways to exchange them, the share that is as far ahead. Exact, for clusters of any size; with
    one trial a cluster McNemar's exact test. Fisher, "The Design of Experiments", 1935, Section 21.
    """
    exact = np.abs(lead[lead != 0])
    scale = max(1.0, float(exact.sum()) * len(exact) / STEPS)
    sizes = np.rint(exact / scale).astype(np.int64)
    # what it is behind by; from the middle, so that rounded sizes shift nothing
    lost = float(sizes.sum()) / 2 - float(lead.sum()) / scale / 2
    chance = np.zeros(int(sizes.sum()) + 1)
    chance[0], largest = 1.0, 0
    for size in np.sort(sizes).tolist():
        largest += size
        moved = chance[: largest + 1 - size] / 2
        chance[: largest + 1] /= 2
        chance[size : largest + 1] += moved
    # of sums over half the clusters: what the one is behind by comes back where it is left out
    above, below = chance[: floor(lost) + 1].sum(), chance[ceil(lost) :].sum()
    return float(min(above, 1.0)), float(min(below, 1.0))


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
    """(subsets, clusters) 1 where a cluster is in a subset: all of them, or a seeded choice."""
    if 2**clusters <= SUBSETS:
        every = np.arange(2**clusters)[:, None] >> np.arange(clusters) & 1
        return every.astype(np.float32)
    many = max(min(SUBSETS, 20_000_000 // clusters), 1_000)
    members = np.random.default_rng(0).integers(0, 2, size=(many, clusters), dtype=np.uint8)
    return members.astype(np.float32)
