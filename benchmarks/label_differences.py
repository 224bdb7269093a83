"""The number of labels until one of two models is clearly better, on simulated pools of sets.

    python benchmarks/label_differences.py [--tries 2000]

Prints a Markdown table, the same every time. A pool is the sets on which two models can differ. Its
sets are labelled in a random order until the difference is clear: by betting, as in a study of
`steadyeye label A B`, and by the bounds that `steadyeye compare` adds up from labels of studies of
one model, with the same labels in the same order.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.label_budget import ERROR, Pool, StratumCounts, bound_difference
from steadyeye.core.stats.label_differences import (
    EITHER,
    FIRST,
    SECOND,
    DrawnSets,
    bound_sum,
    find_first_clear,
)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TwoModels:
    """The sets on which two models can differ, and how many of them are right.

    `first`, `second`: (sets, right ones) where only that model has one prediction on all frames.
    `either`: (sets, the first right, the second right) where each has one, and they differ.
    """

    first: tuple[int, int]
    second: tuple[int, int]
    either: tuple[int, int, int]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sets where the first alone can be right, the second alone, or either of them."""
        return self.first[0], self.second[0], self.either[0]

    @property
    def difference(self) -> int:
        """Right sets of the first model minus those of the second."""
        return self.first[1] - self.second[1] + self.either[1] - self.either[2]

    def list_sets(self) -> tuple[Ints, Ints]:
        """(sets,) twice: the value of each, +1, 0 or −1, and its kind."""
        (first, plus), (second, minus), (either, won, lost) = self.first, self.second, self.either
        counts = (plus, first - plus, minus, second - minus, won, lost, either - won - lost)
        return np.repeat([1, 0, -1, 0, 1, -1, 0], counts), np.repeat(
            [FIRST, SECOND, EITHER], self.sizes
        )


POOLS = (
    TwoModels((300, 210), (220, 143), (100, 30, 30)),
    TwoModels((280, 196), (220, 110), (150, 60, 40)),
    TwoModels((340, 238), (180, 110), (120, 40, 30)),
    TwoModels((400, 280), (150, 90), (60, 25, 15)),
    TwoModels((360, 351), (200, 195), (20, 10, 9)),
)
ALIKE = TwoModels((300, 200), (280, 195), (40, 10, 15))
"""Two models with the same number of right sets, of which none is better."""

find_ends = lru_cache(maxsize=None)(Pool.find_ends)


def draw_orders(models: TwoModels, tries: int) -> Iterator[tuple[Ints, Ints]]:
    """The sets in random orders: the value of each, and its kind."""
    rng = np.random.default_rng(9)
    values, kinds = models.list_sets()
    for _ in range(tries):
        order = rng.permutation(len(values))
        yield values[order], kinds[order]


def find_clear_bet(values: Ints, kinds: Ints, sizes: tuple[int, int, int]) -> int | None:
    """The number of labels after which the bets of a study show which model is better."""
    draws = DrawnSets(tuple(values.tolist()), tuple(kinds.tolist()), sizes)
    return find_first_clear(draws, draws)


def find_clear_bounds(values: Ints, kinds: Ints, sizes: tuple[int, int, int]) -> int | None:
    """The number of labels after which the bounds of `compare` show it."""
    pools = sizes[0] + sizes[2], sizes[1] + sizes[2]
    labelled = [np.cumsum((kinds == kind) | (kinds == EITHER)) for kind in (FIRST, SECOND)]
    right = [np.cumsum(values == sign) for sign in (1, -1)]
    errors = [ERROR * size / sum(pools) for size in pools]
    for at in range(len(values)):
        own = [
            Pool(StratumCounts(int(right[side][at]), 0, int(labelled[side][at]), pools[side]))
            for side in (0, 1)
        ]
        (low, high), (least, most) = (find_ends(*pair) for pair in zip(own, errors, strict=True))
        if low > most or high < least:
            assert bound_difference(own[:1], own[1:]) == (low - most, high - least)
            return at + 1
    return None


def measure(models: TwoModels, tries: int) -> tuple[str, ...]:
    """A row of the table."""
    first, second, either = models.sizes
    total = sum(models.sizes)
    labels: tuple[list[int], list[int]] = ([], [])
    clear = 0
    for values, kinds in draw_orders(models, tries):
        for place, find in enumerate((find_clear_bet, find_clear_bounds)):
            labels[place].append(find(values, kinds, models.sizes) or total)
        at = labels[0][-1]
        # if both are equal, either is wrong
        wrong = models.difference == 0 or _names_second(values[:at], kinds[:at], models.sizes)
        clear += at < total and wrong
    middle, late = (np.quantile(labels, quantile, axis=1) for quantile in (0.5, 0.9))
    ends = (f"{m:.0f} (≤ {most:.0f})" for m, most in zip(middle, late, strict=True))
    share = f"{100 * models.difference / total:.0f}"
    return f"{total} ({first}; {second}; {either})", share, *ends, f"{clear / tries:.1%}"


def _names_second(values: Ints, kinds: Ints, sizes: tuple[int, int, int]) -> bool:
    """Whether labels with a clear difference say that the second model is better."""
    draws = DrawnSets(tuple(values.tolist()), tuple(kinds.tolist()), sizes)
    return bound_sum(draws, draws)[1] < 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=2000)
    tries = parser.parse_args().tries
    heads = (
        "sets that can differ (first; second; either can be right)",
        "difference in 100 of these",
        "labels of a study of both, median (90 in 100)",
        "with the bounds of `compare`",
        "names the wrong model",
    )
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for models in (*POOLS, ALIKE):
        print(f"| {' | '.join(measure(models, tries))} |")


if __name__ == "__main__":
    main()
