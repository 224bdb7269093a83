"""An order of models as far as the data can tell them apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from steadyeye.core import notebook
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import Difference, difference, prepare_outcomes
from steadyeye.core.stats.trials import Outcomes
from steadyeye.core.types import Result, results_html

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class RankedModel:
    """A model with its number and with what that number is made of."""

    model: str
    result: Result
    outcomes: Outcomes


@dataclass(frozen=True)
class ModelPair:
    """Two models, the first being the better by its number.

    `difference`: by how much it is better, whichever way better is. `adjusted`: the p value after
    Holm, over all pairs of the leaderboard. `apart`: whether the data tell them apart.
    """

    better: str
    worse: str
    difference: Difference
    adjusted: float
    apart: bool

    def __repr__(self) -> str:
        gap = self.difference
        told = f"{gap.value:+.3g} ({gap.low:+.3g} to {gap.high:+.3g}), p = {self.adjusted:.2g}"
        return notebook.short("Pair", f"{self.better} − {self.worse}: {told}")


@dataclass(frozen=True)
class Standing:
    """A model's place. `rank`: 1 + how many models are better and told apart from it.

    `tied`: the models that it is not told apart from.
    """

    rank: int
    model: str
    result: Result
    tied: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboard:
    """Models on one metric, in the order of their ranks and, within one, of their numbers.

    `lower`: whether the lower number is the better. `pairs`: all pairs, those told apart first and
    those of small p value before the others.
    """

    metric: str
    lower: bool
    standings: tuple[Standing, ...]
    pairs: tuple[ModelPair, ...]

    def __repr__(self) -> str:
        ranks = (f"{each.rank} {each.model}" for each in self.standings)
        return notebook.short("Leaderboard", f"{self.metric}: {', '.join(ranks)}")

    def _repr_html_(self) -> str:
        ranked = [
            replace(each.result, name=f"{each.rank}. {each.model}") for each in self.standings
        ]
        return results_html(self.metric, ranked)

    @property
    def unit(self) -> str:
        """The unit of its numbers, as in `Result`."""
        return self.standings[0].result.unit

    @property
    def apart(self) -> tuple[ModelPair, ...]:
        """The pairs told apart."""
        return tuple(pair for pair in self.pairs if pair.apart)

    @property
    def open_triple(self) -> tuple[str, str, str] | None:
        """Models of which the first and last are told apart, and neither from the middle one."""
        for pair in self.apart:
            for each in self.standings:
                if pair.better in each.tied and pair.worse in each.tied:
                    return pair.better, each.model, pair.worse
        return None


def leaderboard(
    metric: str, entries: Sequence[RankedModel], lower: bool = False
) -> Leaderboard | None:
    """The models as the data can order them; None for fewer than two with a number.

    Two models are told apart where the paired p value, adjusted by Holm over all pairs, is 0.05
    or less. Not being told apart does not carry over: of three models the first may be told apart
    from the last, and neither from the one between.
    """
    there = [entry for entry in entries if entry.result.value is not None]
    if len(there) < 2:
        return None
    sign = -1 if lower else 1
    there = sorted(there, key=lambda entry: (-sign * (entry.result.value or 0.0), entry.model))
    pairs = _pairs(there, lower)
    standings = [_standing(entry, pairs) for entry in there]
    standings.sort(key=lambda each: each.rank)
    pairs = sorted(pairs, key=lambda pair: (not pair.apart, pair.adjusted, -pair.difference.value))
    return Leaderboard(metric, lower, tuple(standings), tuple(pairs))


def _pairs(entries: Sequence[RankedModel], lower: bool) -> list[ModelPair]:
    """All pairs of entries that stand in the order of their numbers."""
    both = list(combinations(range(len(entries)), 2))
    many = [prepare_outcomes(entry.outcomes) for entry in entries]
    found = []
    for better, worse in both:
        first, second = (worse, better) if lower else (better, worse)
        each = difference(many[first], many[second])
        assert each is not None, "both have a number"
        found.append((entries[better].model, entries[worse].model, each))
    adjusted = holm([each.p for _, _, each in found])
    return [ModelPair(*pair, p, p <= ALPHA) for pair, p in zip(found, adjusted, strict=True)]


def _standing(entry: RankedModel, pairs: Sequence[ModelPair]) -> Standing:
    better = sum(pair.apart and pair.worse == entry.model for pair in pairs)
    tied = tuple(
        pair.worse if pair.better == entry.model else pair.better
        for pair in pairs
        if not pair.apart and entry.model in {pair.better, pair.worse}
    )
    return Standing(1 + better, entry.model, entry.result, tied)
