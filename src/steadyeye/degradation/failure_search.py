"""The search for failure points: which images to predict at which levels, and the results.

For every operator and threshold t the levels are bisected. Whether accuracy at a level is below t
is a sequential test: images are predicted in a random order, twice as many each time, until the
exact hypergeometric test decides at its share of the error budget, or all images are predicted.

The guarantee: over the random order, the interval of a failure point contains the level of the
exhaustive sweep over the same images with at least 95 % probability. It has two premises: each test
errs with at most `ERROR`, and accuracy does not dip by more than `MARGIN` below its later values.
Nothing is assumed about single images, of which up to a tenth are right again at some later level:
bisecting each image by itself misses accuracy by up to 20 points. `benchmarks/failure_points.py`
measures how often the guarantee holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

THRESHOLDS = (0.9, 0.5, 0.1)

ERROR = 0.0125
"""The error probability of a single test; only tests with accuracy close to t can err."""

MARGIN = 0.05
"""How far above t accuracy must be for the levels before to count as not below either. Profiles of
real images rise again by up to about this much: EfficientNet-Lite1 under `posterize` from 88.1 % at
level 26 to 93.0 % at level 27."""

FIRST_LOOK = 16


@dataclass(frozen=True)
class Query:
    """Predict images `start` … `stop` of the random order at one level of one operator."""

    operator: int
    level: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Bracket:
    """The range of a failure point: accuracy is not below at `low`, but is at `high`.

    Both are positions in the operator's levels; `high` is their number if no level is below.
    """

    low: int
    high: int

    @property
    def is_closed(self) -> bool:
        """Whether the failure level is known."""
        return self.high - self.low == 1


@dataclass(eq=False)
class Search:
    """The state of a search with `images` images (all right at level 0) under some operators.

    `levels`: of each operator, rising from 0. `answers[operator, level]`: number of images
    predicted, in the random order, and number of those that were right.
    """

    images: int
    levels: Sequence[Sequence[int]]
    thresholds: Sequence[float]
    answers: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def looks(self) -> list[int]:
        """The number of images predicted after each look at a level."""
        looks = [FIRST_LOOK]
        while looks[-1] < self.images:
            looks.append(2 * looks[-1])
        return [min(look, self.images) for look in looks]

    def below(self, operator: int, level: int, threshold: float) -> bool | None:
        """Whether accuracy at a level is below the threshold; None if that is not known.

        False needs accuracy to be `MARGIN` higher. The test is exact: it assumes nothing about the
        other images.
        """
        if level == 0:
            return False
        number, right = self.answers.get((operator, level), (0, 0))
        if not number:
            return None
        from scipy.stats import hypergeom  # takes half a second, and only searches need it

        # the fewest right images of all that are not below; a share equal to t is not below
        least = math.ceil(threshold * self.images - 1e-6)
        if hypergeom.cdf(right, self.images, least, number) <= ERROR:
            return True
        clear = min(math.ceil((threshold + MARGIN) * self.images - 1e-6), self.images)
        if hypergeom.sf(right - 1, self.images, clear - 1, number) <= ERROR:
            return False
        return None

    def bracket(self, operator: int, threshold: float) -> Bracket:
        """The range of a failure point so far."""
        levels = self.levels[operator]
        is_below = [self.below(operator, level, threshold) for level in levels]
        high = next((i for i, below in enumerate(is_below) if below), len(levels))
        low = max(i for i, below in enumerate(is_below[:high]) if below is False)
        return Bracket(low, high)

    def queries(self) -> list[Query]:
        """The next queries of every unknown failure point, without repeats.

        Empty once all are known.
        """
        queries: dict[tuple[int, int], Query] = {}
        for operator, levels in enumerate(self.levels):
            for threshold in self.thresholds:
                for place in self._places(operator, self.bracket(operator, threshold)):
                    level = levels[place]
                    number = self._number(operator, level)
                    more = next(look for look in self.looks() if look > number)
                    queries[operator, level] = Query(operator, level, number, more)
        return list(queries.values())

    def _places(self, operator: int, bracket: Bracket) -> list[int]:
        """The next levels to test within a bracket, as positions in the operator's levels.

        The middle, until it is decided or all images are predicted. If it is still undecided then,
        accuracy is too close to the threshold: next are the middles on both sides of it.
        """
        if bracket.is_closed:
            return []
        levels = self.levels[operator]
        inside = range(bracket.low + 1, bracket.high)
        begun = [place for place in inside if self._number(operator, levels[place])]
        if not begun:
            return [(bracket.low + bracket.high) // 2]
        unfinished = [p for p in begun if self._number(operator, levels[p]) < self.images]
        if unfinished:
            return unfinished
        sides = ((bracket.low, begun[0]), (begun[-1], bracket.high))
        return [(low + high) // 2 for low, high in sides if high - low > 1]

    def _number(self, operator: int, level: int) -> int:
        return self.answers.get((operator, level), (0, 0))[0]

    def level(self, operator: int, threshold: float) -> float:
        """The most likely failure level: the first with interpolated accuracy below; or `inf`."""
        bracket = self.bracket(operator, threshold)
        levels = self.levels[operator]
        places = range(bracket.low, min(bracket.high, len(levels) - 1) + 1)
        accuracies = {p: self.accuracy(operator, levels[p]) for p in places}
        measured = [p for p, share in accuracies.items() if share is not None]
        shares = np.interp(list(places), measured, [float(accuracies[p] or 0) for p in measured])
        failing = [p for p, share in zip(places, shares, strict=True) if share < threshold - 1e-6]
        inside = [p for p in failing if bracket.low < p <= bracket.high]
        return levels[inside[0]] if inside else math.inf

    def accuracy(self, operator: int, level: int) -> float | None:
        """The share right among the predicted images; None without any."""
        if level == 0:
            return 1.0
        number, right = self.answers.get((operator, level), (0, 0))
        return right / number if number else None

    def learn(self, query: Query, right: int) -> None:
        """Records how many of the predicted images were right."""
        number, before = self.answers.get((query.operator, query.level), (0, 0))
        assert number == query.start, "questions are answered in order"
        self.answers[query.operator, query.level] = (query.stop, before + right)


def affordable(queries: Sequence[Query], budget: int) -> list[Query]:
    """The cheapest queries that together fit a budget of forward passes."""
    within_budget: list[Query] = []
    for query in sorted(queries, key=len):
        budget -= len(query)
        if budget < 0:
            break
        within_budget.append(query)
    return within_budget


def exhaustive(images: int, state: Search) -> int:
    """The forward passes of the exhaustive sweep over the images right at level 0.

    `images`: all images, because each is predicted once at level 0.
    """
    return images + state.images * sum(len(levels) - 1 for levels in state.levels)
