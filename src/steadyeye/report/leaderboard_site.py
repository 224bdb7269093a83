"""A leaderboard of many models on many data sets: ranks, own lines and rank correlations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steadyeye.core import notebook
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import find, read_k
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Evaluated
from steadyeye.metrics.testbed.published_models import (
    choose_published_set,
    find_released_set,
    read_published,
    why_not,
)
from steadyeye.predictions.read import cells
from steadyeye.report import compare
from steadyeye.report.comparison.leaderboards import (
    Boards,
    Leaderboard,
    Standing,
    common,
    finding,
)
from steadyeye.report.comparison.metric_wording import FIRST, place_metric
from steadyeye.report.comparison.own_line import AnchorOutcomes, fit_own_lines
from steadyeye.report.comparison.set_correlation import (
    SetCorrelation,
    correlate_sets,
    measure_set,
)
from steadyeye.report.leaderboard_sections import DataLines, describe_main
from steadyeye.report.run_costs import ModelCost, read_costs
from steadyeye.report.run_index import read_last_time
from steadyeye.runner.collect import tables

CORRELATED = (*FIRST, "flip_rate")
"""The metrics whose rank correlations between data sets are computed."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A model by one metric on one data set, counted on the samples that all models predicted.

    `value`, `low`, `high`: the number and its 95 % interval, in its `unit`, or None; `n`: its
    number of cases. `rank`: 1 + the number of clearly better models. `open_ranks`: the first and
    the last that the data leave open, for all `models` of the metric and data set at once. `tied`:
    the models without a clear difference.
    """

    model: str
    data: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    n: int
    rank: int
    open_ranks: tuple[int, int]
    models: int
    tied: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LeaderboardSite:
    """The content of a leaderboard.

    `models`: those of each data set; `rankings`: their leaderboards. `costs`: recorded costs of its
    results. `left_out`: number of results without another model on the same samples. `date`: end of
    the last run, seconds since 1970, None if no run has a log. `metrics`: the requested specs,
    None: those of each run's job.
    """

    runs: tuple[Place, ...]
    models: tuple[tuple[Evaluated, ...], ...]
    rankings: tuple[Boards, ...]
    lines: tuple[DataLines, ...]
    correlations: tuple[SetCorrelation, ...]
    costs: tuple[ModelCost, ...]
    left_out: int
    date: float | None
    metrics: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The models, each once."""
        every = (table.model for table in self.tables)
        return tuple(dict.fromkeys(every))

    @property
    def tables(self) -> tuple[Predictions, ...]:
        """The predictions of all models on all data sets."""
        return tuple(model.predictions for models in self.models for model in models)

    @property
    def rows(self) -> tuple[LeaderboardRow, ...]:
        """Every model by every metric on every data set, the most important metric first."""
        return tuple(
            _build_row(item.data, board, standing)
            for item in self.rankings
            for board in item.boards
            for standing in board.standings
        )

    def __repr__(self) -> str:
        models, data = len(self.names), len(self.rankings)
        counts = f"{number_of(models, 'model')} on {number_of(data, 'data set')}"
        return notebook.short("LeaderboardSite", counts)

    def _repr_html_(self) -> str:
        tables = (ranked.boards[0]._repr_html_() for ranked in self.rankings)
        return "".join([notebook.prose("Leaderboard", self.findings), *tables])

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings of the leaderboard, one or two sentences each, the ranks first."""
        ranks = [f"{item.data}: {finding(item.boards[0])}" for item in self.rankings]
        lost = (
            f"{number_of(self.left_out, 'result')} left out: no other model was run on the same "
            "samples."
        )
        parts = [*ranks, *describe_main(self.correlations)]
        return tuple([*parts, lost] if self.left_out else parts)


def _build_row(data: str, board: Leaderboard, standing: Standing) -> LeaderboardRow:
    result = standing.result
    return LeaderboardRow(
        model=standing.model,
        data=data,
        metric=board.metric,
        value=result.value,
        low=result.low,
        high=result.high,
        unit=result.unit,
        n=result.n,
        rank=standing.rank,
        open_ranks=standing.open_ranks,
        models=len(board.standings),
        tied=standing.tied,
    )


def build_site(runs: Sequence[Place], metrics: str | None = None) -> LeaderboardSite:
    """The leaderboard of runs. `metrics`: a list of specs, None: those of each job.

    Raises `UsageError` as `compare.group_shared` and `compare.rank_models` do: if a run shares its
    samples with no other model, or the models have no metric in common.
    """
    by_run = tables(runs)
    pairs = compare.rank_groups(unify_names(compare.group_tables(by_run, metrics)))
    models = tuple(tuple(models) for models, _ in pairs)
    rankings = tuple(ranked for _, ranked in pairs)
    dates = [date for date in map(read_last_time, runs) if date is not None]
    return LeaderboardSite(
        runs=tuple(runs),
        models=models,
        rankings=rankings,
        lines=tuple(filter(None, map(fit_lines, models))),
        correlations=tuple(correlate_data(models, rankings)),
        costs=tuple(_name_costs(read_costs(by_run), models)),
        left_out=sum(len(cells(run)) for run in runs) - sum(map(len, models)),
        date=max(dates, default=None),
        metrics=metrics,
    )


def _name_costs(
    costs: Sequence[ModelCost], groups: Sequence[Sequence[Evaluated]]
) -> Iterator[ModelCost]:
    """The costs of models on their data sets, with the names of the leaderboard."""
    names: dict[tuple[str, str], list[str]] = {}
    for model in (model.predictions for models in groups for model in models):
        names.setdefault((model.data, model.model_mark), []).append(model.model)
    for cost in costs:
        own = names.get((cost.data, cost.mark), [])
        if own:
            # several: a model that was run twice keeps the names that tell its runs apart
            yield replace(cost, model=cost.model if cost.model in own else own[0])


def unify_names(groups: Sequence[Sequence[Evaluated]]) -> list[list[Evaluated]]:
    """The models with one name for each fingerprint on all data sets, and one fingerprint a name.

    A model with two runs on one data set keeps the names that distinguish the runs.
    """
    names: dict[str, str] = {}
    for models in groups:
        marks = [model.predictions.model_mark for model in models]
        for model, mark in zip(models, marks, strict=True):
            if mark and marks.count(mark) == 1:
                names.setdefault(mark, model.predictions.model)
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}

    def rename(model: Evaluated, marks: Sequence[str]) -> Evaluated:
        table = model.predictions
        mark = table.model_mark
        name = names[mark] if mark and marks.count(mark) == 1 else table.model
        name = f"{name} [{mark[:6]}]" if name in shared else name
        return replace(model, predictions=replace(table, model=name))

    return [
        [rename(model, [other.predictions.model_mark for other in models]) for model in models]
        for models in groups
    ]


def fit_lines(models: Sequence[Evaluated]) -> DataLines | None:
    """The models of one data set around their own line; None without labelled pm-sets."""
    results = [(model, find(model.results, "pm_k")) for model in models]
    measured = [(model, result) for model, result in results if result is not None]
    if not measured:
        return None
    k = read_k(measured[0][1])
    same_k = [model for model, result in measured if read_k(result) == k]
    tables = common([model.predictions for model in same_k])
    every = [pm_sets(table) for table in tables]
    anchors = tuple(
        AnchorOutcomes(table.model, sets.breaks_at > 0, sets.breaks_at > k)
        for table, sets in zip(tables, every, strict=True)
    )
    left_out = why_not(tables[0], k) or ""
    published = None if left_out else read_published(choose_published_set(tables[0]) or "")
    videos = np.asarray(every[0].videos)
    own = fit_own_lines(anchors, videos)
    is_same_set = find_released_set(tables[0]) is not None
    return DataLines(tables[0].data, k, anchors, videos, own, published, left_out, is_same_set)


def correlate_data(
    models: Sequence[Sequence[Evaluated]], rankings: Sequence[Boards]
) -> list[SetCorrelation]:
    """The rank correlations of every pair of data sets, the most important metric first."""
    sets = []
    for place, (several, ranked) in enumerate(zip(models, rankings, strict=True)):
        tables = common([model.predictions for model in several])
        for board in ranked.boards:
            if board.metric.partition("(")[0] not in CORRELATED:
                continue
            outcomes = {}
            for model, table in zip(several, tables, strict=True):
                bound = model.bound_metrics.get(board.metric)
                if bound is not None and bound.outcomes is not None:
                    outcomes[table.model] = bound.outcomes(table)
            sets.append(measure_set(ranked.data, board, outcomes, seed=place))
    return sorted(correlate_sets(sets), key=lambda pair: place_metric(pair.metric, CORRELATED))
