"""A share of N sets from the labels of a few: exact intervals, and when to stop labelling.

The sets are a finite pool: C of them may count (for pm-k those whose frames all have one predicted
class; the others are wrong whatever their label), and n of these are labelled, drawn uniformly
without replacement. The results apply to the videos of these sets only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, inf, isinf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.intervals import Interval, clopper_pearson, korn_graubard

Floats = NDArray[np.float64]

ERROR = 0.025
"""The largest error probability of a decision, in either direction."""
Z_ERROR, Z_POWER = 1.959964, 1.281552
"""Normal quantiles of 1 − `ERROR` and of 90 % power."""


def bound_without_labels(consistent: int, sets: int) -> Interval:
    """The share of sets that can be right, before any label: 0 … consistent ÷ sets.

    `consistent`: sets that can be right; for pm-k those with one prediction on all frames, if every
    set has one class on all its frames: a set with two predictions is then wrong on a frame. Raises
    `UsageError` for impossible counts.
    """
    _check(0, 0, consistent, sets)
    if not sets:
        return Interval(None, None, None, 0, "none: n = 0")
    return Interval(None, 0.0, consistent / sets, sets, "without labels: those that may count")


@dataclass(frozen=True)
class StratumCounts:
    """Labels of a stratum: `labelled` sets, drawn uniformly from its `consistent` ones.

    `right` and `unknown`: the number of right sets, and of those without a possible label.
    """

    right: int
    unknown: int
    labelled: int
    consistent: int

    def add(self, right: bool, unknown: bool) -> "StratumCounts":
        """The counts with one more label."""
        counts = (self.right + right, self.unknown + unknown, self.labelled + 1)
        return StratumCounts(*counts, self.consistent)


def count_ends_of_strata(strata: Sequence[StratumCounts]) -> tuple[float, float]:
    """The ends of a 95 % interval of the right sets among the consistent ones of all strata.

    Korn and Graubard's interval of the mean over strata, weighted by size, with the correction for
    a finite pool. The variance of a stratum is at least that with (s + 2p) ÷ (n + 2) of its n
    labels right, where s is its number of right ones and p the share over all strata, so that a
    stratum without a wrong label still has a variance. If all labels are right, or all wrong,
    Clopper and Pearson's. Always within what the labels leave possible, and equal to it if a
    stratum has fewer than two labels. A set without a possible label is wrong for one end, right
    for the other.
    """
    with_sets = [stratum for stratum in strata if stratum.consistent]
    low, _ = _ends_of_strata(with_sets, [s.right for s in with_sets])
    _, high = _ends_of_strata(with_sets, [s.right + s.unknown for s in with_sets])
    return low, high


def _ends_of_strata(strata: Sequence[StratumCounts], right: Sequence[int]) -> tuple[float, float]:
    labelled, total = sum(s.labelled for s in strata), sum(s.consistent for s in strata)
    least, most = float(sum(right)), float(sum(right) + total - labelled)
    if least == most or any(s.labelled < min(2, s.consistent) for s in strata):
        return least, most
    shares = [count / stratum.labelled for count, stratum in zip(right, strata, strict=True)]
    share = _mean_over_strata(strata, shares)
    if sum(right) in (0, labelled):
        low, high = clopper_pearson(sum(right), labelled)
    else:
        shrunk = [(r + 2 * share) / (s.labelled + 2) for r, s in zip(right, strata, strict=True)]
        variance = max(_variance_of_strata(strata, shares), _variance_of_strata(strata, shrunk))
        low, high = korn_graubard(share, sqrt(variance), max(labelled - len(strata), 1))
    return max(low * total, least), min(high * total, most)


def estimate_share_of_strata(strata: Sequence[StratumCounts]) -> float | None:
    """The share of right sets among the consistent ones; None if a stratum has no label.

    Sets without a possible label are left out.
    """
    with_sets = [stratum for stratum in strata if stratum.consistent]
    if not with_sets or any(s.labelled == s.unknown for s in with_sets):
        return None
    return _mean_over_strata(with_sets, [s.right / (s.labelled - s.unknown) for s in with_sets])


def _mean_over_strata(strata: Sequence[StratumCounts], shares: Sequence[float]) -> float:
    """The mean of the shares of strata, each weighted by its sets."""
    total = sum(stratum.consistent for stratum in strata)
    return sum(s.consistent * share for s, share in zip(strata, shares, strict=True)) / total


def _variance_of_strata(strata: Sequence[StratumCounts], shares: Sequence[float]) -> float:
    total = sum(stratum.consistent for stratum in strata)
    return sum(
        (stratum.consistent / total) ** 2
        * (1 - stratum.labelled / stratum.consistent)
        * (share * (1 - share) / (stratum.labelled - 1))
        for stratum, share in zip(strata, shares, strict=True)
        if stratum.labelled < stratum.consistent
    )


@dataclass(frozen=True)
class Pool:
    """Sets that can count, some of them labelled, and how the number of labels was chosen.

    `any_time`: whether that number may depend on the labels, as if someone looked at them and
    stopped; otherwise it was fixed in advance.
    """

    counts: StratumCounts
    any_time: bool = True

    def find_ends(self, error: float) -> tuple[int, int]:
        """The fewest and the most right sets that the labels allow, each with the error `error`."""
        counts = self.counts
        ends = count_ends_any_time if self.any_time else count_ends
        low, _ = ends(counts.right, counts.labelled, counts.consistent, error)
        _, high = ends(counts.right + counts.unknown, counts.labelled, counts.consistent, error)
        return low, high


def bound_difference(added: Sequence[Pool], subtracted: Sequence[Pool] = ()) -> tuple[int, int]:
    """The ends of a 95 % interval of the right sets in some pools minus those in others.

    Each end adds up one end of every pool, and is wrong if one of these is: Bonferroni's
    inequality, with the error divided by the sizes of the pools, so that no part of it depends on a
    label. Exact if all sets are labelled; without a label, what the sizes leave possible.
    """
    total = sum(pool.counts.consistent for pool in (*added, *subtracted))

    def add_up(pools: Sequence[Pool]) -> tuple[int, int]:
        with_sets = [pool for pool in pools if pool.counts.consistent]
        ends = [pool.find_ends(ERROR * pool.counts.consistent / total) for pool in with_sets]
        return sum(low for low, _ in ends), sum(high for _, high in ends)

    (low, high), (least, most) = add_up(added), add_up(subtracted)
    return low - most, high - least


# a study is decided anew at every label, and repeats the same counts
@lru_cache(maxsize=100_000)
def count_ends(right: int, labelled: int, consistent: int, error: float = ERROR) -> tuple[int, int]:
    """The fewest and the most right sets among the consistent ones that the labels allow.

    `error`: the largest error probability of each of the two.
    """
    if not labelled:
        return 0, consistent
    from scipy.stats import hypergeom  # takes half a second, and few labels are of a fixed number

    # rounding may change the probabilities by a few parts in 10^16
    tail = error * (1 - 1e-9)
    # the labels bound the number of right sets, and the probabilities are monotone in it
    least, span = right, consistent - labelled

    def many(more: int) -> bool:
        return bool(hypergeom.sf(right - 1, consistent, least + more, labelled) > tail)

    def few(more: int) -> bool:
        return bool(hypergeom.cdf(right, consistent, least + more, labelled) <= tail)

    return least + _first(span, many), least + _first(span + 1, few) - 1


@lru_cache(maxsize=100_000)
def count_ends_any_time(
    right: int, labelled: int, consistent: int, error: float = ERROR
) -> tuple[int, int]:
    """The fewest and the most right sets that the labels allow, valid at any number of labels.

    Those that `RequiredShare.decide` has not yet ruled out, so that a requirement is decided when
    the ends are: both ends hold in 95 % of studies at every label at once. `error`: the largest
    error probability of each of the two, over all labels.
    """
    above, below = _log_evidence(right, labelled, consistent)
    decided = -log(error)
    # the first that is not ruled out; all below it are
    low = int(np.argmax(np.append(above[1:], -inf) < decided))
    high = consistent - int(np.argmax(np.append(below[::-1], -inf) < decided))
    return max(low, right), min(high, right + consistent - labelled)


@dataclass(frozen=True)
class Verdict:
    """Whether a share of sets meets a requirement, as far as the labels show.

    `passes`: None while it is open. `evidence`: for passing and for failing, the likelihood ratio
    of the labels against the nearest number of right sets with the other verdict; from `1 / ERROR`
    on it is decided. For a smaller error the evidence is reduced in proportion.
    """

    passes: bool | None
    evidence: tuple[float, float]


@dataclass(frozen=True)
class RequiredShare:
    """The requirement that a share of `sets` sets is right, of which `consistent` can be.

    `needed`: the least number of right sets to pass. `allowed`: how many of the other sets may be
    right, too, and count as right before it fails. `error`: the largest probability of a wrong
    failure; that of a wrong pass is `ERROR`.
    """

    needed: int
    consistent: int
    sets: int
    allowed: int = 0
    error: float = ERROR

    def decide(self, right: int, labelled: int) -> Verdict:
        """The verdict after some labels, valid at any time and for repeated looks.

        The labels are drawn uniformly without replacement from the consistent sets, in any
        order. A prior-posterior ratio over uniform numbers of right sets against the one
        nearest to the other verdict: its expectation there is at most 1 after any number of labels,
        so that it reaches 40 in at most 2.5 % of studies (Ville's inequality). Waudby-Smith and
        Ramdas, "Confidence sequences for sampling without replacement", 2020. Raises `UsageError`
        for impossible counts.
        """
        _check(right, labelled, self.consistent, self.sets)
        if self.needed <= right:
            return Verdict(True, (inf, 0.0))
        if self.needed > right + self.consistent - labelled + self.allowed:
            return Verdict(False, (0.0, inf))
        above, below = _weigh(right, labelled, self.consistent, self.needed, self.allowed)
        below += log(self.error / ERROR)
        decided = -log(ERROR)
        passes = True if above >= decided else False if below >= decided else None
        return Verdict(passes, (_power(above), _power(below)))

    def least_more(self, right: int, labelled: int, unknown: int = 0) -> int:
        """The least number of further labels for a decision, all of them right or all wrong.

        `unknown`: labelled sets without a possible label: wrong for a pass, right for a failure.
        """
        rest = self.consistent - labelled

        def decides(more: int) -> bool:
            passing = self.decide(right + more, labelled + more).passes is True
            return passing or self.decide(right + unknown, labelled + more).passes is False

        return _first(rest, decides)


def fixed_sample(share: float, required: float, sets: int) -> int:
    """The number of labels that a sample of all sets with a fixed size would need.

    To show with 90 % power, and errors of 2.5 %, on which side of `required` a known share lies:
    normal approximation, without replacement from `sets` sets. All sets if the share is `required`
    itself.
    """
    gap = abs(share - required)
    if not gap:
        return sets
    spread = Z_ERROR * sqrt(required * (1 - required)) + Z_POWER * sqrt(share * (1 - share))
    endless = (spread / gap) ** 2
    return min(sets, ceil(endless / (1 + (endless - 1) / sets))) if sets else 0


@lru_cache(maxsize=100_000)
def _weigh(
    right: int, labelled: int, consistent: int, needed: int, allowed: int
) -> tuple[float, float]:
    """The logarithms of the ratios for `needed` right sets, and against that minus `allowed`."""
    logs, logs_below = _log_evidence(right, labelled, consistent)
    above = float(logs[needed]) if needed <= consistent else -inf
    return above, float(logs_below[max(needed - allowed, 0)])


def _log_evidence(right: int, labelled: int, consistent: int) -> tuple[Floats, Floats]:
    """(consistent + 1,) twice: the logarithms of the ratios for and against each number of sets.

    The numerator is the mean probability of the labels over all numbers of right sets on that side,
    equally likely; the denominator is the probability at the number nearest to the other side. −inf
    if a side has no number.
    """
    wrong, sets = labelled - right, np.arange(consistent + 1)
    factorials = _log_factorials(consistent)
    possible = slice(right, consistent - wrong + 1)
    chance = np.full(consistent + 1, -inf)
    chance[possible] = factorials[sets[possible]] - factorials[sets[possible] - right]
    chance[possible] += factorials[consistent - sets[possible]]
    chance[possible] -= factorials[consistent - sets[possible] - wrong]
    chance -= chance.max()
    scaled = np.exp(chance)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_least = np.log(np.cumsum(scaled[::-1])[::-1] / (consistent + 1 - sets))
        fewer = np.log(np.append(0.0, np.cumsum(scaled)[:-1]) / np.maximum(sets, 1))
        above = at_least - np.append(-inf, chance[:-1])
        below = fewer - chance
    above[0] = -inf
    return np.nan_to_num(above, nan=-inf, posinf=inf, neginf=-inf), np.nan_to_num(
        below, nan=-inf, posinf=inf, neginf=-inf
    )


@lru_cache(maxsize=8)
def _log_factorials(most: int) -> Floats:
    return np.append(0.0, np.cumsum(np.log(np.arange(1, most + 1))))


def _first(stop: int, holds: Callable[[int], bool]) -> int:
    """The first number below `stop` from which on a condition holds; `stop` if there is none."""
    low, high = 0, stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _power(logarithm: float) -> float:
    return inf if isinf(logarithm) and logarithm > 0 else exp(min(logarithm, 700.0))


def _check(right: int, labelled: int, consistent: int, sets: int) -> None:
    if not 0 <= right <= labelled <= consistent <= sets:
        raise UsageError(
            f"{right} right of {labelled} labelled sets, {consistent} consistent ones and {sets} "
            "in all cannot be: each is at most the next"
        )
