"""The difference of two models from the labels of a few sets, at any time: by betting.

The sets on which the two can differ are a finite pool, drawn uniformly without replacement. A set
has the value +1 if only the first model is right, −1 if only the second is, otherwise 0; the
estimand is the sum over all sets. Which of the two models can be right is known for every set
before it is labelled.

A gambler bets on every label that the sum is larger than `null`. If the sum is `null`, the expected
value of the next set follows from the labels before it, so that the bet is fair; the capital then
reaches 40 in at most 2.5 % of studies (Ville's inequality). Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting", 2024, without replacement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.label_budget import ERROR

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST, SECOND, EITHER = 0, 1, 2
"""Kinds of sets: only the first model can be right, only the second, or either of them."""
LEAST, MOST = np.array([0, -1, -1]), np.array([1, 0, 1])
"""The least and the greatest value of a set of each kind."""
EXPECTED = np.array([0.7, -0.7, 0.0])
"""The assumed value of a set of each kind; another one makes the interval wider, not wrong.

The bet is on the deviation of a label from it, so that the order of the kinds is no luck.
"""
STAKES = 1.4 * 2.0 ** (-np.arange(12) / 2)
"""Stakes per unit of value; the capital is divided equally among them."""
MOST_AT_STAKE = 0.95
"""The largest share of its capital that a stake may lose with one label."""


@dataclass(frozen=True)
class DrawnSets:
    """Labelled sets, in the order in which they were drawn.

    `values`: the value of each, +1, 0 or −1. `kinds`: of each, as above. `sizes`: the number of
    sets of each kind, labelled or not.
    """

    values: tuple[int, ...]
    kinds: tuple[int, ...]
    sizes: tuple[int, int, int]

    def exchange_models(self) -> "DrawnSets":
        """The sets for the second model minus the first."""
        kinds = tuple((SECOND, FIRST, EITHER)[kind] for kind in self.kinds)
        first, second, either = self.sizes
        return DrawnSets(tuple(-value for value in self.values), kinds, (second, first, either))

    def take_first(self, labels: int) -> "DrawnSets":
        """The first `labels` labels only."""
        return DrawnSets(self.values[:labels], self.kinds[:labels], self.sizes)

    def find_range(self) -> tuple[Ints, Ints]:
        """(n + 1,) twice: the smallest and the largest sum that the first 0…n labels leave."""
        left = _count_left(self)
        values = np.append(0, np.cumsum(self.values, dtype=np.int64))
        return values + left @ LEAST, values + left @ MOST


def bound_sum(least: DrawnSets, most: DrawnSets, error: float = ERROR) -> tuple[int, int]:
    """The ends of an interval of the sum over all sets, valid at any number of labels.

    `least`, `most`: the same sets with the least and the greatest value of each; equal if it could
    be labelled. `error`: the largest error probability of each end, over all labels. Always within
    what the labels leave possible; exact if all are labelled.
    """
    low = _find_low_end(least, error)
    high = -_find_low_end(most.exchange_models(), error)
    return min(low, high), max(low, high)


def find_first_clear(least: DrawnSets, most: DrawnSets, error: float = ERROR) -> int | None:
    """The number of labels after which `bound_sum` first excludes 0; None if it never does."""
    clear = _find_positive(least, error) | _find_positive(most.exchange_models(), error)
    return int(np.argmax(clear)) if clear.any() else None


def estimate_sum(values: Sequence[int], kinds: Sequence[int], sizes: tuple[int, int, int]) -> float:
    """The sum over all sets, estimated from one or more labelled ones; unbiased."""
    surplus = np.asarray(values) - EXPECTED[np.asarray(kinds, dtype=np.int64)]
    return float(surplus.mean() * sum(sizes) + np.asarray(sizes) @ EXPECTED)


def _find_positive(draws: DrawnSets, error: float) -> NDArray[np.bool_]:
    """(n + 1,) whether after the first 0…n labels the low end is above 0."""
    smallest, largest = draws.find_range()
    clear = smallest > 0
    # the range only narrows, so that these come first
    undecided = int(np.count_nonzero((smallest <= 0) & (largest > 0)))
    if undecided:
        bets = _Bets.place(draws.take_first(undecided - 1))
        growth = np.cumsum(bets.grow(0), axis=1)
        logs = np.hstack([np.zeros((len(STAKES), 1)), growth])
        clear[:undecided] = _log_mean(logs) >= _find_threshold(error)
    return clear


def _find_low_end(draws: DrawnSets, error: float) -> int:
    """The smallest sum that is not ruled out; the capital falls as `null` grows."""
    smallest, largest = (int(ends[-1]) for ends in draws.find_range())
    threshold, bets = _find_threshold(error), _Bets.place(draws)
    while smallest < largest:
        middle = (smallest + largest) // 2
        if _log_mean(bets.grow(middle).sum(axis=1)) >= threshold:
            smallest = middle + 1
        else:
            largest = middle
    return smallest


def _find_threshold(error: float) -> float:
    return -log(error) + 1e-9  # a tolerance for rounding


def _log_mean(logs: Floats) -> Floats:
    """The logarithm of the mean over the stakes, along the first axis."""
    most = logs.max(axis=0)
    return np.asarray(most + np.log(np.exp(logs - most).mean(axis=0)))


def _count_left(draws: DrawnSets) -> Ints:
    """(n + 1, 3) the unlabelled sets of each kind, after the first 0…n labels."""
    kinds = np.asarray(draws.kinds, dtype=np.int64)
    labelled = np.cumsum(kinds[:, None] == np.arange(3), axis=0, dtype=np.int64)
    return np.asarray(draws.sizes) - np.vstack([np.zeros((1, 3), dtype=np.int64), labelled])


@dataclass(frozen=True, eq=False)
class _Bets:
    """The values for the bets of n labels, (n,) each: see `grow`.

    `surplus`: the value of a label minus the expected value of its kind. `explained`: the sum of
    the labels before it, and of the expected values of the others. `left`: the number of these,
    itself included. `lowest`: the least possible surplus of one of these.
    """

    surplus: Floats
    explained: Floats
    left: Ints
    lowest: Floats

    @classmethod
    def place(cls, draws: DrawnSets) -> "_Bets":
        values = np.asarray(draws.values, dtype=np.int64)
        left = _count_left(draws)[:-1]
        return cls(
            surplus=values - EXPECTED[np.asarray(draws.kinds, dtype=np.int64)],
            explained=np.cumsum(values) - values + left @ EXPECTED,
            left=left.sum(axis=1),
            lowest=np.where(left > 0, LEAST - EXPECTED, np.inf).min(axis=1, initial=np.inf),
        )

    def grow(self, null: int) -> Floats:
        """(stakes, n) the factor by which each label multiplies the capital, as a logarithm.

        `null`: a sum that all the labels leave possible. A stake is the smaller of the fixed one
        and the one with which a label cannot lose more than `MOST_AT_STAKE`. So the capital
        falls as `null` grows, and rises with the value of any label.
        """
        mean = (null - self.explained) / self.left
        allowed = MOST_AT_STAKE / np.maximum(mean - self.lowest, 1e-9)
        return np.log1p(np.minimum(STAKES[:, None], allowed) * (self.surplus - mean))
