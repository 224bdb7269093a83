"""The difference of two models from the labels of a few sets, at every look: by betting.

The sets where the two can differ are a finite pool, drawn uniformly without replacement. Each is
worth +1 where the first model alone is right, −1 where the second alone is, else 0; the sum of all
is asked for. Which of the two can be right is known of every set before it is labelled.

Against a sum of `null` a gambler stakes on every label that the difference is larger. If the sum is
`null`, what the next set is worth on average follows from the labels before it, so that the bet is
fair; the capital then reaches 40 in 2.5 % of studies at most (Ville's inequality). Waudby-Smith and
Ramdas, "Estimating means of bounded random variables by betting", 2024, without replacement.
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
"""Kinds of sets: the first model alone can be right, the second alone, or either of them."""
LEAST, MOST = np.array([0, -1, -1]), np.array([1, 0, 1])
"""What a set of each kind is worth at least, and at most."""
EXPECTED = np.array([0.7, -0.7, 0.0])
"""What a set of each kind is taken to be worth; another number makes the interval wider, not wrong.

The bet is on what a label says beyond it, so that how many sets of each kind come first is no luck.
"""
STAKES = 1.4 * 2.0 ** (-np.arange(12) / 2)
"""Stakes for each unit of worth; the capital is divided equally among them."""
MOST_AT_STAKE = 0.95
"""So much of its capital a stake may lose with one label, at most."""


@dataclass(frozen=True)
class DrawnSets:
    """Labelled sets, in the order in which they were drawn.

    `values`: what each is worth, +1, 0 or −1. `kinds`: of each, as above. `sizes`: how many sets
    there are of each kind, labelled or not.
    """

    values: tuple[int, ...]
    kinds: tuple[int, ...]
    sizes: tuple[int, int, int]

    def exchange_models(self) -> "DrawnSets":
        """As the second model less the first has them."""
        kinds = tuple((SECOND, FIRST, EITHER)[kind] for kind in self.kinds)
        first, second, either = self.sizes
        return DrawnSets(tuple(-value for value in self.values), kinds, (second, first, either))

    def take_first(self, labels: int) -> "DrawnSets":
        """The first so many labels alone."""
        return DrawnSets(self.values[:labels], self.kinds[:labels], self.sizes)

    def find_range(self) -> tuple[Ints, Ints]:
        """(n + 1,) twice: the smallest and the largest sum that the first 0…n labels leave."""
        left = _count_left(self)
        values = np.append(0, np.cumsum(self.values, dtype=np.int64))
        return values + left @ LEAST, values + left @ MOST


def bound_sum(least: DrawnSets, most: DrawnSets, error: float = ERROR) -> tuple[int, int]:
    """The ends of an interval of the sum of all sets, whenever and however often it is looked at.

    `least`, `most`: the same sets with what each is worth at least, and at most: both the same
    where people could tell. `error`: how often at most each end is wrong, at any label. Never
    outside what the labels leave possible; exact where all are labelled.
    """
    low = _find_low_end(least, error)
    high = -_find_low_end(most.exchange_models(), error)
    return min(low, high), max(low, high)


def find_first_clear(least: DrawnSets, most: DrawnSets, error: float = ERROR) -> int | None:
    """The number of labels after which `bound_sum` first leaves 0 out; None where it never does."""
    clear = _find_positive(least, error) | _find_positive(most.exchange_models(), error)
    return int(np.argmax(clear)) if clear.any() else None


def estimate_sum(values: Sequence[int], kinds: Sequence[int], sizes: tuple[int, int, int]) -> float:
    """The sum of all sets as labelled ones say, one or more: unbiased for uniformly drawn ones."""
    surplus = np.asarray(values) - EXPECTED[np.asarray(kinds, dtype=np.int64)]
    return float(surplus.mean() * sum(sizes) + np.asarray(sizes) @ EXPECTED)


def _find_positive(draws: DrawnSets, error: float) -> NDArray[np.bool_]:
    """(n + 1,) whether after the first 0…n labels the low end is above 0."""
    smallest, largest = draws.find_range()
    clear = smallest > 0
    # the range only narrows, so that these are the first ones
    undecided = int(np.count_nonzero((smallest <= 0) & (largest > 0)))
    if undecided:
        bets = _Bets.place(draws.take_first(undecided - 1))
        growth = np.cumsum(bets.grow(0), axis=1)
        logs = np.hstack([np.zeros((len(STAKES), 1)), growth])
        clear[:undecided] = _log_mean(logs) >= _find_threshold(error)
    return clear


def _find_low_end(draws: DrawnSets, error: float) -> int:
    """The smallest sum that is not ruled out; the capital falls with what is bet against."""
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
    return -log(error) + 1e-9  # of rounding


def _log_mean(logs: Floats) -> Floats:
    """The logarithm of the mean over the stakes, along the first axis."""
    most = logs.max(axis=0)
    return np.asarray(most + np.log(np.exp(logs - most).mean(axis=0)))


def _count_left(draws: DrawnSets) -> Ints:
    """(n + 1, 3) the sets of each kind without a label, after the first 0…n labels."""
    kinds = np.asarray(draws.kinds, dtype=np.int64)
    labelled = np.cumsum(kinds[:, None] == np.arange(3), axis=0, dtype=np.int64)
    return np.asarray(draws.sizes) - np.vstack([np.zeros((1, 3), dtype=np.int64), labelled])


@dataclass(frozen=True, eq=False)
class _Bets:
    """What the bets of n labels need, (n,) each: see `grow`.

    `surplus`: what a label is worth beyond what its kind is expected to be. `explained`: the sum of
    the labels before it, and of what the others are expected to be. `left`: how many these are,
    itself among them. `lowest`: the least that one of these can be worth beyond what is expected.
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
        """(stakes, n) by what each label multiplies the capital against `null`, as a logarithm.

        `null`: a sum that all the labels leave possible. A stake is the smaller of the fixed one
        and that with which a label cannot lose more than `MOST_AT_STAKE`. So the capital falls as
        `null` grows, and rises with what any of the labels is worth.
        """
        mean = (null - self.explained) / self.left
        allowed = MOST_AT_STAKE / np.maximum(mean - self.lowest, 1e-9)
        return np.log1p(np.minimum(STAKES[:, None], allowed) * (self.surplus - mean))
