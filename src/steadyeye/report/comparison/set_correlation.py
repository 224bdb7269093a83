"""Whether the models that are better on one data set are better on another: Kendall's tau-b.

Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.stats.trials import Outcomes
from steadyeye.report.comparison.cluster_draws import (
    ClusterDraws,
    bound_replicates,
    draw_clusters,
    resample_values,
)
from steadyeye.report.comparison.leaderboards import ALPHA, Leaderboard, ModelPair
from steadyeye.report.comparison.metric_wording import name_metric

Floats = NDArray[np.float64]
FEWEST = 3
"""The least number of models for a correlation."""
DIGITS = 12
"""Decimals to which values are compared, so that sums in another order are ties."""


@dataclass(frozen=True, eq=False)
class SetValues:
    """The values of m models by one metric on one data set.

    `values`: (m,). `clear`: (m, m) 1 if a model's mean is clearly better than another's, −1 if it
    is clearly worse, 0 if the data leave it open; the probability of any error in it is at most 2.5
    %. `replicates`: (m, replicates) in resamples of its clusters, the same resamples for all
    models. `draws`: the resamples of the clusters.
    """

    data: str
    metric: str
    models: tuple[str, ...]
    values: Floats
    clear: NDArray[np.int_]
    replicates: Floats
    draws: ClusterDraws


@dataclass(frozen=True)
class SetCorrelation:
    """Kendall's tau-b between the values of the same models on two data sets.

    `value`: −1…1, None if all models are equal on a set. `low`, `high`: its 95 % interval, None if
    a set has too few clusters. `models`: those measured on both. `method`: of the interval.
    """

    metric: str
    first: str
    second: str
    models: tuple[str, ...]
    value: float | None
    low: float | None
    high: float | None
    method: str


def correlate_ranks(first: Floats, second: Floats) -> Floats:
    """(...,) Kendall's tau-b over the last axis of two arrays (..., m), m > 1.

    The share of concordant minus discordant pairs, allowing for ties: −1…1. NaN where all values
    of either are equal, or any is NaN.

    Example:
        >>> float(correlate_ranks(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.9, 0.7])).round(3))
        0.333

    """
    left, right = np.triu_indices(first.shape[-1], k=1)
    x = np.sign(np.round(first[..., left] - first[..., right], DIGITS))
    y = np.sign(np.round(second[..., left] - second[..., right], DIGITS))
    untied = np.sqrt(np.sum(x * x, axis=-1) * np.sum(y * y, axis=-1))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(x * y, axis=-1) / untied, dtype=np.float64)


def measure_set(
    data: str, board: Leaderboard, outcomes: Mapping[str, Outcomes], seed: int
) -> SetValues:
    """The values of the models of a leaderboard, their clear order, and resamples.

    `outcomes`: of each of its models, all of the same samples. `seed`: of the resamples, another
    for each data set.
    """
    models = tuple(standing.model for standing in board.standings)
    values = np.array([standing.result.value for standing in board.standings], dtype=np.float64)
    parts = [outcomes[model] for model in models]
    draws = draw_clusters(parts[0].videos, getattr(parts[0], "block", 1), seed)
    replicates = np.stack([resample_values(part, draws) for part in parts])
    clear = find_clear_order(models, board.pairs)
    return SetValues(data, board.metric, models, values, clear, replicates, draws)


def find_clear_order(models: Sequence[str], pairs: Iterable[ModelPair]) -> NDArray[np.int_]:
    """(m, m) 1 where a model is clearly better than another, −1 where it is clearly worse, else 0.

    At 2.5 % for all pairs of a leaderboard together, so that two data sets have 5 %.
    """
    place = {model: number for number, model in enumerate(models)}
    clear = np.zeros((len(models), len(models)), dtype=np.int_)
    for pair in pairs:
        if pair.order_p <= ALPHA / 2:
            better, worse = place[pair.better], place[pair.worse]
            clear[better, worse], clear[worse, better] = 1, -1
    return clear


def correlate_sets(sets: Sequence[SetValues]) -> list[SetCorrelation]:
    """Every pair of data sets on which the same three models or more have the same metric."""
    pairs = (
        _correlate(first, second)
        for first, second in combinations(sets, 2)
        if first.metric == second.metric
    )
    return [pair for pair in pairs if pair is not None]


def _correlate(first: SetValues, second: SetValues) -> SetCorrelation | None:
    models = tuple(model for model in first.models if model in second.models)
    if len(models) < FEWEST:
        return None
    rows = [[part.models.index(model) for model in models] for part in (first, second)]
    x, y = (part.values[own] for part, own in zip((first, second), rows, strict=True))
    tau = float(correlate_ranks(x, y))
    value = None if np.isnan(tau) else tau
    facts = (first.metric, first.data, second.data, models, value)
    for part in (first, second):
        if not part.draws.enough:
            return SetCorrelation(*facts, None, None, f"{part.draws.method} ({part.data})")
    replicates = [part.replicates[own].T for part, own in zip((first, second), rows, strict=True)]
    opposed, agreeing = (
        correlate_ranks(
            _add_unseen(replicates[0], first.draws, direction * _scale_ranks(y)),
            _add_unseen(replicates[1], second.draws, direction * _scale_ranks(x)),
        )
        for direction in (-1, 1)
    )
    low, high = bound_replicates(opposed, -1.0, 1.0)[0], bound_replicates(agreeing, -1.0, 1.0)[1]
    least, most = bound_by_clear_pairs(
        *(part.clear[np.ix_(own, own)] for part, own in zip((first, second), rows, strict=True))
    )
    # resamples of nearly equal models have any order, so that the end away from 0 lies too near it
    low, high = low if low > 0 else min(low, least), high if high < 0 else max(high, most)
    if value is not None:
        low, high = min(low, value), max(high, value)
    method = "Bayesian bootstrap over " + " and over ".join(
        f"{part.draws.method} ({part.data})" for part in (first, second)
    )
    return SetCorrelation(*facts, low, high, method)


def bound_by_clear_pairs(first: NDArray[np.int_], second: NDArray[np.int_]) -> tuple[float, float]:
    """Least and most of tau-b if pairs that either data set leaves open may have any order.

    `first`, `second`: (m, m) as `SetValues.clear`, of the same m models, m > 1. True ties cannot
    pass these ends: a tie takes as much from the sum of tau-b as from its divisor, or more.
    """
    both = (first * second)[np.triu_indices(len(first), k=1)]
    agreeing, opposed = np.count_nonzero(both > 0), np.count_nonzero(both < 0)
    return 2 * agreeing / len(both) - 1, 1 - 2 * opposed / len(both)


def _scale_ranks(values: Floats) -> Floats:
    """(m,) the ranks of values from −0.5, the lowest, to 0.5; equal values have their mean rank."""
    below = np.sum(values[:, None] > values, axis=1) + np.sum(values[:, None] >= values, axis=1) - 1
    return np.asarray(below / (2 * (len(values) - 1)) - 0.5, dtype=np.float64)


def _add_unseen(replicates: Floats, draws: ClusterDraws, order: Floats) -> Floats:
    """(r, m) values of resamples, (r, m), with a further cluster on which m models have an order.

    If the few samples on which two models differ all favour the same one, no resample reverses
    their order; an unseen cluster may.
    """
    share = draws.unseen[:, None]
    return (1 - share) * replicates + share * (0.5 + order)


def describe_correlation(pair: SetCorrelation) -> str:
    """The correlation of two data sets, in one or two sentences."""
    name, models = name_metric(pair.metric), number_of(len(pair.models), "model")
    if pair.value is None:
        why = f"{models} are all equal on one of the two, so there is no order to compare"
        return f"{name} on {pair.first} and on {pair.second}: {why}."
    tau = f"τ\u00a0=\u00a0{format_tau(pair.value)}"
    if pair.low is None or pair.high is None:
        why = pair.method.removeprefix("none: ")
        return (
            f"Better {name} on {pair.first}, better on {pair.second}? "
            f"{tau}, {models}, no interval: {why}."
        )
    ends = f"{tau} (95 % interval {format_tau(pair.low)} to {format_tau(pair.high)}), {models}"
    better = f"a better {name} on {pair.second}"
    if pair.low > 0:
        return f"Models with a better {name} on {pair.first} have {better} too: {ends}."
    if pair.high < 0:
        worse = f"a worse one on {pair.second}"
        return f"Models with a better {name} on {pair.first} have {worse}: {ends}."
    return f"A better {name} on {pair.first} does not clearly go with {better}: {ends}."


def format_tau(value: float | None) -> str:
    """A correlation with two decimals and a minus sign, `−0.33`; `—` for None."""
    return "—" if value is None else f"{value + 0.0:.2f}".replace("-", "−")
