"""The sets that two models have in common, and where they can differ in pm-k."""

from dataclasses import dataclass

import numpy as np

from steadyeye.metrics.label_studies.answered_sets import AnsweredSets, fold_name

METRIC = "pm_k"
"""The metric that a difference is found of."""


@dataclass(frozen=True)
class SharedSets:
    """The sets that two models have a prediction for, and where they can differ.

    `names`: all. `answers`: of each model set → its class. `pools`: of each model the sets that it
    may get right and where the two can differ, in their order.
    """

    names: tuple[str, ...]
    answers: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]
    pools: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def differing(self) -> frozenset[str]:
        """The sets where the two can differ."""
        return frozenset(self.pools[0]) | frozenset(self.pools[1])


def find_shared_sets(first: AnsweredSets, second: AnsweredSets) -> SharedSets:
    """The sets that two models have in common, in the order of the first."""
    own = [dict(zip(sets.ids.tolist(), sets.answers, strict=True)) for sets in (first, second)]
    steady = [set(sets.ids[np.flatnonzero(sets.candidates)].tolist()) for sets in (first, second)]
    names = tuple(name for name in own[0] if name in own[1])

    def can_differ(name: str) -> bool:
        if not (name in steady[0] and name in steady[1]):
            return True
        classes, others = (set(map(fold_name, answers[name])) for answers in own)
        return classes != others

    pools = [tuple(n for n in names if n in candidates and can_differ(n)) for candidates in steady]
    return SharedSets(names, (own[0], own[1]), (pools[0], pools[1]))
