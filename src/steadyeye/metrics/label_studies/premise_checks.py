"""Checks of the premise on a sample of the sets that need no label if it holds.

Such a set is *exempt*: it contributes nothing if it shows one class on all its frames. If its class
changes with the predictions, it may be right on all frames, which no label of another set reveals.
People are therefore asked about a uniform sample of the exempt sets, too. The sample bounds how
many of them may count, and the upper end of the metric is raised by that number.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from steadyeye.core.stats.label_budget import ERROR, count_ends, count_ends_any_time
from steadyeye.metrics.label_studies.answered_sets import counts_as, names_several

CHECK_ERROR = ERROR / 2
"""The probability, at most, that more exempt sets count than the bound from the sample."""
ADVISED = 100
"""Recommended number of checks if the premise is stated only."""


@dataclass(frozen=True)
class Allowance:
    """What the exempt sets add to the upper end: `sets` of them may count.

    `error`: the error that is left to the upper end of the other sets, so that both together have
    `ERROR`.
    """

    sets: int = 0
    error: float = ERROR


@dataclass(frozen=True)
class CheckCounts:
    """Checks of a study: `checked` of `planned` ones have a label, of `exempt` sets.

    `doubtful`: the ids of checked sets that may count nevertheless.
    """

    exempt: int = 0
    planned: int = 0
    checked: int = 0
    doubtful: tuple[str, ...] = ()

    def add(self, name: str, is_doubtful: bool) -> "CheckCounts":
        """With the label of one more check."""
        doubtful = (*self.doubtful, name) if is_doubtful else self.doubtful
        return replace(self, checked=self.checked + 1, doubtful=doubtful)

    @property
    def is_complete(self) -> bool:
        """Whether no check is left."""
        return self.checked == self.planned

    def allow(self, *, any_time: bool) -> Allowance:
        """The allowance for exempt sets after the checks so far; 0 without planned checks.

        `any_time`: whether it is valid at every look, rather than after a number of checks that was
        fixed before the first.
        """
        if not self.planned:
            return Allowance()
        most = _find_bound(len(self.doubtful), self.checked, self.exempt, any_time)
        return Allowance(most, CHECK_ERROR)

    def allow_at_best(self) -> Allowance:
        """The allowance at every look, if all remaining checks turn out not doubtful."""
        return replace(self, checked=self.planned).allow(any_time=True)


NO_CHECKS = CheckCounts()
"""The checks of a study that does not check the premise."""


# every vote is judged anew, from the first label on
@lru_cache(maxsize=100_000)
def _find_bound(doubtful: int, checked: int, exempt: int, any_time: bool) -> int:
    """The upper bound of exempt sets that may count, with an error of `CHECK_ERROR`."""
    ends = count_ends_any_time if any_time else count_ends
    return ends(doubtful, checked, exempt, CHECK_ERROR)[1]


def bound_clean_checks(checks: int, exempt: int) -> int:
    """The most of `exempt` sets that may count if none of `checks` is doubtful, at every look."""
    return _find_bound(0, min(checks, exempt), exempt, True)


def count_checks_needed(most: float, exempt: int) -> int:
    """The number of checks, none doubtful, that show that at most `most` exempt sets may count."""

    def is_enough(checks: int) -> bool:
        return bound_clean_checks(checks, exempt) <= most

    return bisect_left(range(exempt), True, key=is_enough)


def is_doubtful(metric: str, answers: tuple[str, ...], labels: Iterable[str]) -> bool:
    """Whether an exempt set may count, by the classes that all its frames show.

    `answers`: the model's prediction on the anchor. So may a set whose class changes, or that
    nobody could tell, which has no label. Where all frames show several classes, predictions that
    differ may all be right, if that of the anchor is; predictions that do not are right on all
    frames or on none.
    """
    known = tuple(labels)
    if not known:
        return True
    return metric == "pm_k" and names_several(known) and counts_as(metric, answers, known)
