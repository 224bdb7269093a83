"""Leaderboards of models on the same samples, and their findings in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from steadyeye.core import notebook
from steadyeye.core.claims import Claim, above, every, first
from steadyeye.core.errors import list_texts
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import (
    Difference,
    chance_of_equal_means,
    difference,
    prepare_outcomes,
)
from steadyeye.core.stats.trials import Outcomes
from steadyeye.core.types import Evaluated, Result, results_html
from steadyeye.report.comparison.metric_wording import (
    amount,
    format_ends,
    list_detector_caveats,
    name_metric,
    place_metric,
)

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class RankedModel:
    """A model with its number and the outcomes behind it."""

    model: str
    result: Result
    outcomes: Outcomes


@dataclass(frozen=True)
class ModelPair:
    """Two models, the first being the better by its number.

    `difference`: by how much it is better, in the direction of better. `adjusted`: the p value
    after Holm, over all pairs of the leaderboard. `is_clear`: whether the difference is clear.
    `order_p`: the p value of equal means, `chance_of_equal_means` after Holm.
    """

    better: str
    worse: str
    difference: Difference
    adjusted: float
    is_clear: bool
    order_p: float

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the two means is clear."""
        return self.order_p <= ALPHA

    def __repr__(self) -> str:
        gap = self.difference
        text = f"{gap.value:+.3g} ({gap.low:+.3g} to {gap.high:+.3g}), p = {self.adjusted:.2g}"
        return notebook.short("Pair", f"{self.better} − {self.worse}: {text}")


@dataclass(frozen=True)
class Standing:
    """A model's place. `rank`: 1 + the number of clearly better models.

    `open_ranks`: the first and the last rank that the data leave open, from 1 + how many means are
    higher to how many are not lower (`ModelPair.is_ordered`); the true ranks lie within for all
    models of a leaderboard at once in 95 % of cases. `tied`: models without a clear difference.
    """

    rank: int
    open_ranks: tuple[int, int]
    model: str
    result: Result
    tied: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboard:
    """Models on one metric, ordered by rank, then by number.

    `lower`: whether the lower number is better. `pairs`: all pairs, clear differences first, then
    by p value.
    """

    metric: str
    lower: bool
    standings: tuple[Standing, ...]
    pairs: tuple[ModelPair, ...]

    def __repr__(self) -> str:
        ranks = (f"{standing.rank} {standing.model}" for standing in self.standings)
        return notebook.short("Leaderboard", f"{self.metric}: {', '.join(ranks)}")

    def _repr_html_(self) -> str:
        ranked = [
            replace(standing.result, name=f"{standing.rank}. {standing.model}")
            for standing in self.standings
        ]
        return results_html(self.metric, ranked)

    @property
    def unit(self) -> str:
        """The unit of its numbers, as in `Result`."""
        return self.standings[0].result.unit

    @property
    def clear_pairs(self) -> tuple[ModelPair, ...]:
        """The pairs with a clear difference."""
        return tuple(pair for pair in self.pairs if pair.is_clear)

    @property
    def open_triple(self) -> tuple[str, str, str] | None:
        """Three models: first and last differ clearly, but neither from the middle one."""
        for pair in self.clear_pairs:
            for standing in self.standings:
                if pair.better in standing.tied and pair.worse in standing.tied:
                    return pair.better, standing.model, pair.worse
        return None


def leaderboard(
    metric: str, entries: Sequence[RankedModel], lower: bool = False
) -> Leaderboard | None:
    """The leaderboard of models; None for fewer than two with a number.

    A difference is clear if the paired p value, adjusted by Holm over all pairs, is 0.05 or less.
    No clear difference is not transitive: the first of three models may differ clearly from the
    last, and neither from the one between.
    """
    ranked = [entry for entry in entries if entry.result.value is not None]
    if len(ranked) < 2:
        return None
    sign = -1 if lower else 1
    ranked = sorted(ranked, key=lambda entry: (-sign * (entry.result.value or 0.0), entry.model))
    pairs = _pairs(ranked, lower)
    standings = [_standing(entry, pairs, len(ranked)) for entry in ranked]
    standings.sort(key=lambda standing: standing.rank)
    pairs = sorted(
        pairs, key=lambda pair: (not pair.is_clear, pair.adjusted, -pair.difference.value)
    )
    return Leaderboard(metric, lower, tuple(standings), tuple(pairs))


def _pairs(entries: Sequence[RankedModel], lower: bool) -> list[ModelPair]:
    """All pairs of entries, which are in the order of their numbers."""
    both = list(combinations(range(len(entries)), 2))
    many = [prepare_outcomes(entry.outcomes) for entry in entries]
    compared = []
    for better, worse in both:
        first, second = (worse, better) if lower else (better, worse)
        gap = difference(many[first], many[second])
        assert gap is not None, "both have a number"
        compared.append((entries[better].model, entries[worse].model, gap))
    adjusted = holm([gap.p for _, _, gap in compared])
    # a pair without a clear difference is not ordered either, and takes the longest to test
    means = [
        chance_of_equal_means(many[i], many[j], compared[place][2].p) if p <= ALPHA else 1.0
        for place, ((i, j), p) in enumerate(zip(both, adjusted, strict=True))
    ]
    rows = zip(compared, adjusted, holm(means), strict=True)
    return [ModelPair(*pair, p, p <= ALPHA, order_p) for pair, p, order_p in rows]


def _standing(entry: RankedModel, pairs: Sequence[ModelPair], models: int) -> Standing:
    better = sum(pair.is_clear and pair.worse == entry.model for pair in pairs)
    higher = sum(pair.is_ordered and pair.worse == entry.model for pair in pairs)
    lower = sum(pair.is_ordered and pair.better == entry.model for pair in pairs)
    tied = tuple(
        pair.worse if pair.better == entry.model else pair.better
        for pair in pairs
        if not pair.is_clear and entry.model in {pair.better, pair.worse}
    )
    return Standing(1 + better, (1 + higher, models - lower), entry.model, entry.result, tied)


@dataclass(frozen=True)
class Boards:
    """The leaderboards of models on the same samples, the most important metric first.

    `left_out`: number of samples that not all models predicted, which no number counts. `unlike`:
    differences of the models, in numbers of classes and in objects; one sentence each.
    """

    data: str
    boards: tuple[Leaderboard, ...]
    left_out: int
    unlike: tuple[str, ...] = ()

    def __repr__(self) -> str:
        metrics = ", ".join(board.metric for board in self.boards)
        models = len(self.boards[0].standings) if self.boards else 0
        number = number_of(models, "model")
        return notebook.short("Boards", f"{number} on {self.data}: {metrics}")

    def _repr_html_(self) -> str:
        return "".join(board._repr_html_() for board in self.boards)

    @property
    def one_video(self) -> bool:
        """Whether all samples come from one video, within which the comparison then holds."""
        pairs = (pair for board in self.boards for pair in board.pairs)
        return any("one video only" in pair.difference.method for pair in pairs)


def boards(evaluated: Sequence[Evaluated]) -> Boards | None:
    """A leaderboard for every metric that two or more of the models have.

    None unless two models hold the same samples (the same fingerprint) and share a metric.
    """
    if len(evaluated) < 2 or len(set(samples([model.predictions for model in evaluated]))) > 1:
        return None
    tables = [model.predictions for model in evaluated]
    if any(not np.array_equal(table.ids, tables[0].ids) for table in tables):
        return None
    names = list(dict.fromkeys(name for model in evaluated for name in model.bound_metrics))
    names.sort(key=place_metric)
    incomparable = [name for name in names if not_ranked(name, evaluated)]
    comparable = (name for name in names if name not in incomparable)
    ranked = tuple(filter(None, (_board(name, evaluated) for name in comparable)))
    lost = ~np.all([table.valid for table in tables], axis=0)
    unlike = (
        *(not_ranked(name, evaluated) for name in incomparable),
        *filter(None, (_name_missing(board, evaluated) for board in ranked)),
        *_chances(evaluated),
        *list_detector_caveats([board.metric for board in ranked], evaluated),
    )
    return Boards(tables[0].data, ranked, int(lost.sum()), unlike) if ranked else None


def not_ranked(name: str, evaluated: Sequence[Evaluated]) -> str:
    """Why models are not ranked by a metric of their own predictions; empty if they can be.

    Among fewer classes a prediction changes less often.
    """
    asking = [
        model
        for model in evaluated
        if name in model.bound_metrics and model.bound_metrics[name].outcomes
    ]
    classes = {model.predictions.model: model.results[name].classes for model in asking}
    if len(set(classes.values())) < 2 or any(model.bound_metrics[name].judged for model in asking):
        return ""
    return (
        f"{name_metric(name)[:1].upper()}{name_metric(name)[1:]} is not ranked, because with fewer "
        f"classes a prediction changes less often: {_list_classes(classes)}."
    )


def _name_missing(board: Leaderboard, evaluated: Sequence[Evaluated]) -> str:
    """The models without a value on a board, in words; empty if all have one."""
    placed = {standing.model for standing in board.standings}
    others = [model.predictions.model for model in evaluated]
    missing = [name for name in others if name not in placed]
    if not missing:
        return ""
    title = name_metric(board.metric)
    return f"{title[:1].upper()}{title[1:]} has no value for {', '.join(missing)}."


def _chances(evaluated: Sequence[Evaluated]) -> tuple[str, ...]:
    """A sentence if models with different numbers of classes are judged by labels."""
    numbers: dict[str, int] = {}
    for model in evaluated:
        judged = [
            model.results[name].classes
            for name, bound in model.bound_metrics.items()
            if bound.judged
        ]
        for number in filter(None, judged):
            numbers[model.predictions.model] = number
    if len(set(numbers.values())) < 2:
        return ()
    return (
        f"The models have different numbers of classes to choose from: {_list_classes(numbers)}.",
    )


def _list_classes(classes: Mapping[str, int] | Mapping[str, int | None]) -> str:
    return list_texts([f"{model} {number or 0:,}" for model, number in classes.items()])


def common(tables: Sequence[Predictions]) -> list[Predictions]:
    """The tables without samples that one of the models did not predict."""
    valid = np.all([table.valid for table in tables], axis=0)
    why = np.asarray("no prediction from every compared model")
    return [
        table
        if np.array_equal(table.valid, valid)
        else replace(table, errors=np.where(table.valid & ~valid, why, table.errors))
        for table in tables
    ]


def _board(name: str, evaluated: Sequence[Evaluated]) -> Leaderboard | None:
    bound = [model.bound_metrics[name] for model in evaluated if name in model.bound_metrics]
    tables = common([model.predictions for model in evaluated])
    entries = [
        _entry(name, model, table)
        for model, table in zip(evaluated, tables, strict=True)
        if name in model.bound_metrics and model.bound_metrics[name].outcomes
    ]
    return leaderboard(name, entries, bound[0].lower)


def _entry(name: str, model: Evaluated, table: Predictions) -> RankedModel:
    bound = model.bound_metrics[name]
    assert bound.outcomes is not None, "only what can be compared"
    # another table than the results are of: some model lacks samples that this one predicted
    result = model.results[name] if table is model.predictions else bound.metric(table)
    return RankedModel(table.model, result, bound.outcomes(table))


MOST = 4
"""Pairs that a sentence names."""


def sentence(pair: ModelPair, board: Leaderboard) -> str:
    """The finding about two models, in words."""
    name = name_metric(board.metric)
    if not pair.is_clear:
        return f"no clear difference in {name} between {pair.better} and {pair.worse}"
    gap, unit = pair.difference, board.unit
    return (
        f"{pair.better} has a better {name} than {pair.worse}, by "
        f"{amount(gap.value, unit)} ({format_ends(gap.low, gap.high, unit)})"
    )


def finding(board: Leaderboard) -> str:
    """The finding about all pairs, in one or two sentences; clear differences come first."""
    clear, tied = board.clear_pairs, tuple(pair for pair in board.pairs if not pair.is_clear)
    name = name_metric(board.metric)
    if not clear and len(board.standings) > 2:
        return (
            f"No clear difference in {name} between any two of "
            f"{number_of(len(board.standings), 'model')}."
        )
    parts = [sentence(pair, board) for pair in clear[:MOST]]
    if len(clear) > MOST:
        parts.append(f"{len(clear) - MOST} more pairs differ clearly")
    if tied and len(tied) <= MOST:
        names = ", or between ".join(f"{pair.better} and {pair.worse}" for pair in tied)
        parts.append(f"no clear difference in {name} between {names}")
    elif tied:
        parts.append(
            f"no clear difference for {len(tied)} of {number_of(len(board.pairs), 'pair')}"
        )
    text = "; ".join(parts)
    return f"{text[:1].upper() if text.startswith('no clear') else text[:1]}{text[1:]}."


def headline(board: Leaderboard) -> str:
    """The finding as a title: the clear differences, otherwise a question."""
    supported = claim(board)
    if supported is not None:
        return supported.text
    several = "two" if len(board.standings) == 2 else f"{len(board.standings)}"
    return f"Do the {several} models differ in {name_metric(board.metric)}? No clear difference"


def claim(board: Leaderboard) -> Claim | None:
    """The claim of a title: that pairs differ, with their adjusted p values."""
    text = _state_differences(board)
    pairs = [above(text, pair.difference, p=pair.adjusted) for pair in board.clear_pairs]
    return first([every(text, pairs)])


def _state_differences(board: Leaderboard) -> str:
    clear, name = board.clear_pairs, name_metric(board.metric)
    best = board.standings[0]
    if sum(pair.better == best.model for pair in clear) == len(board.standings) - 1:
        others = "all others" if len(board.standings) > 2 else board.standings[1].model
        return f"{best.model} has a better {name} than {others}"
    if len(clear) == 1:
        return f"{clear[0].better} has a better {name} than {clear[0].worse}"
    return (
        f"{len(clear)} of {number_of(len(board.pairs), 'pair')} of models differ clearly in {name}"
    )


def rank(board: Leaderboard, place: int) -> str:
    """The rank of a standing, with `=` where another model shares it."""
    own = board.standings[place].rank
    shared = sum(standing.rank == own for standing in board.standings) > 1
    return f"{own}=" if shared else f"{own}"


def rank_range(standing: Standing) -> str:
    """The ranks that the data leave open to a model: `2`, or `1 to 3`."""
    first, last = standing.open_ranks
    return f"{first}" if first == last else f"{first} to {last}"
