"""A share of N sets from the labels of a few: exact intervals, and when to stop asking.

The sets are a finite pool: C of them may count (for pm-k those whose frames all get one class; the
others are wrong whatever their label is), and of these n are labelled, drawn uniformly without
replacement. Nothing here is about other videos than these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, inf, isinf, log

import numpy as np
from scipy.special import betaln, gammaln
from scipy.stats import hypergeom

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.intervals import LEVEL, Interval

ERROR = 0.025
"""How often at most a decision is wrong, whichever it is."""


def bound_without_labels(consistent: int, sets: int) -> Interval:
    """The share of sets that can be right, before any is labelled: 0 … consistent ÷ sets.

    `consistent`: sets with one answer on all frames. It holds where every set has one class on all
    its frames: a set with two answers is then wrong on a frame. Raises `UsageError` for counts that
    cannot be.
    """
    _check(0, 0, consistent, sets)
    if not sets:
        return Interval(None, None, None, 0, "none: n = 0")
    return Interval(None, 0.0, consistent / sets, sets, "without labels: the consistent sets")


def share_of_sets(right: int, labelled: int, consistent: int, sets: int) -> Interval:
    """The share of all sets that are right, with an interval that holds exactly 95 % or more.

    `right`: of the `labelled` ones, drawn uniformly without replacement from the `consistent` sets.
    The ends are those numbers of right sets among the consistent ones under which as few, or as
    many, of the labelled would be right with a chance of 2.5 % (hypergeometric); ÷ `sets`. All
    labelled: both ends are the value. Raises `UsageError` for counts that cannot be.
    """
    _check(right, labelled, consistent, sets)
    if not sets:
        return Interval(None, None, None, 0, "none: n = 0")
    low, high = count_ends(right, labelled, consistent)
    value = right / labelled * consistent / sets if labelled else None
    if not consistent:
        value = 0.0
    method = "hypergeometric, of these sets only"
    return Interval(value, low / sets, high / sets, labelled, method)


def count_ends(right: int, labelled: int, consistent: int) -> tuple[int, int]:
    """The fewest and the most right sets among the consistent ones that the labels allow."""
    if not labelled:
        return 0, consistent
    tail = (1 - LEVEL) / 2
    # what was seen bounds it, and the chance rises with the number: bisection between the bounds
    totals = np.arange(right, consistent - (labelled - right) + 1)
    as_many = hypergeom.sf(right - 1, consistent, totals, labelled)
    as_few = hypergeom.cdf(right, consistent, totals, labelled)
    # of rounding the chances may be off by a few in 10^16
    possible = totals[(as_many > tail * (1 - 1e-9)) & (as_few > tail * (1 - 1e-9))]
    return int(possible.min()), int(possible.max())


@dataclass(frozen=True)
class Verdict:
    """Whether a share of sets reaches what is required, as far as the labels show it.

    `passes`: None while it is open. `evidence`: how many times more likely the labels are where it
    passes, and where it fails, than where it just does not; from `1 / ERROR` on it is decided.
    """

    passes: bool | None
    evidence: tuple[float, float]


@dataclass(frozen=True)
class RequiredShare:
    """That at least a share of `sets` sets is right, of which `consistent` ones can be.

    `needed`: so many right sets pass. Make one with `require`.
    """

    needed: int
    consistent: int
    sets: int

    def decide(self, right: int, labelled: int) -> Verdict:
        """The verdict after so many labels, whenever and however often it is looked at.

        The labels are drawn uniformly without replacement from the consistent sets; in which order
        does not matter. A prior-posterior ratio over uniform numbers of right sets against the one
        that is nearest to the other verdict: its expectation there is at most 1 after any number of
        labels, so that it reaches 40 in 2.5 % of studies at most (Ville's inequality). Waudby-Smith
        and Ramdas, "Confidence sequences for sampling without replacement", 2020. Raises
        `UsageError` for counts that cannot be.
        """
        _check(right, labelled, self.consistent, self.sets)
        if self.needed <= right:
            return Verdict(True, (inf, 0.0))
        if self.needed > right + self.consistent - labelled:
            return Verdict(False, (0.0, inf))
        above = _evidence(right, labelled, self.consistent, self.needed - 1, passes=True)
        below = _evidence(right, labelled, self.consistent, self.needed, passes=False)
        decided = -log(ERROR)
        passes = True if above >= decided else False if below >= decided else None
        return Verdict(passes, (_power(above), _power(below)))

    def boundaries(self, labelled: int) -> tuple[int, int]:
        """(fewest right labels that pass, most that fail) after so many labels.

        labelled + 1 and −1 where none does.
        """
        passing = _first(labelled + 1, lambda right: self.decide(right, labelled).passes is True)
        open_ = _first(labelled + 1, lambda right: self.decide(right, labelled).passes is not False)
        return passing, open_ - 1


def require(share: float | str, consistent: int, sets: int) -> RequiredShare:
    """The requirement that a share of sets, 0…1, is right.

    `share`: as it was written, since 0.07 × 100 is more than 7 in binary numbers. Raises
    `UsageError` for another share and for counts that cannot be.
    """
    _check(0, 0, consistent, sets)
    exact = Fraction(str(share))
    if not 0 <= exact <= 1:
        raise UsageError(f"a share of {share} is required; give one in 0…1, such as 0.7")
    return RequiredShare(ceil(exact * sets), consistent, sets)


def _evidence(right: int, labelled: int, consistent: int, null: int, *, passes: bool) -> float:
    """The logarithm of the ratio; `null`: the number of right sets nearest to the other verdict.

    The numerator is the mean of the chance of the labels over all numbers of right sets on the
    verdict's side, equally likely; the denominator that chance at `null`.
    """
    sides = consistent - null if passes else null
    if not sides:
        return -inf
    # P(more right sets than `null` | labels), after which it is a beta-binomial's tail, is that of
    # so many marked among those drawn first when n + 1 are drawn of C + 1
    wrong, least = labelled - right, null if passes else null - 1
    tail = hypergeom(consistent + 1, least + 1, labelled + 1)
    posterior = float(tail.cdf(right) if passes else tail.sf(right))
    if posterior <= 0:
        return -inf
    others = consistent - null
    at_null = gammaln(null + 1) - gammaln(null - right + 1)
    at_null += gammaln(others + 1) - gammaln(others - wrong + 1)
    at_null += gammaln(consistent - labelled + 1) - gammaln(consistent + 1)
    prior = log(sides) - log(consistent + 1)
    return float(log(posterior) - prior + betaln(1 + right, 1 + wrong) - at_null)


def _first(stop: int, holds: Callable[[int], bool]) -> int:
    """The first number below `stop` for which a condition holds that stays; `stop` where none."""
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
