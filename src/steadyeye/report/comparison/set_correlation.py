"""Whether the models that are better on one data set are better on another: Kendall's tau-b.

Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.report.comparison.leaderboards import ALPHA, Leaderboard
from steadyeye.report.comparison.metric_wording import name_metric

Floats = NDArray[np.float64]
FEWEST = 3
"""Models below which there is no correlation to speak of."""
DIGITS = 12
"""Decimals to which values are compared: sums of the same parts in another order are a tie."""


@dataclass(frozen=True, eq=False)
class SetOrder:
    """The order of m models by one metric on one data set.

    `values`: (m,) the higher the better. `clear`: (m, m) 1 where a model's mean is clearly higher
    than another's, −1 where it is clearly lower and 0 where the data leave it open; all of it at
    once is wrong with a chance of 2.5 % at most. `limits`: what the order holds for, as
    ", within this one video only".
    """

    data: str
    metric: str
    models: tuple[str, ...]
    values: Floats
    clear: NDArray[np.int_]
    limits: str


@dataclass(frozen=True)
class SetCorrelation:
    """Kendall's tau-b between the values of the same models on two data sets.

    `value`: −1…1, None where all models are equal on a set. `low`, `high`: its interval of 95 % or
    more. `models`: those measured on both. `method`: of the interval.
    """

    metric: str
    first: str
    second: str
    models: tuple[str, ...]
    value: float | None
    low: float
    high: float
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


def order_models(data: str, board: Leaderboard) -> SetOrder:
    """The order of the models of a leaderboard, as far as the data show it."""
    models = tuple(standing.model for standing in board.standings)
    values = np.array([standing.result.value for standing in board.standings], dtype=np.float64)
    clear = np.zeros((len(models), len(models)), dtype=np.int_)
    for pair in board.pairs:
        if pair.order_p <= ALPHA / 2:
            better, worse = models.index(pair.better), models.index(pair.worse)
            clear[better, worse], clear[worse, better] = 1, -1
    single = all("one video only" in pair.difference.method for pair in board.pairs)
    limits = ", within this one video only" if single else ""
    return SetOrder(data, board.metric, models, -values if board.lower else values, clear, limits)


def correlate_sets(sets: Sequence[SetOrder]) -> list[SetCorrelation]:
    """Every pair of data sets on which the same three models or more have the same metric."""
    pairs = (
        _correlate(first, second)
        for first, second in combinations(sets, 2)
        if first.metric == second.metric
    )
    return [pair for pair in pairs if pair is not None]


def _correlate(first: SetOrder, second: SetOrder) -> SetCorrelation | None:
    """The correlation of two sets; its ends have all pairs that are open against it, or for it.

    True ties cannot pass these ends: they lessen the sum of tau-b by at least as much as its
    divisor.
    """
    models = tuple(model for model in first.models if model in second.models)
    if len(models) < FEWEST:
        return None
    places = [[part.models.index(model) for model in models] for part in (first, second)]
    x, y = (part.values[own] for part, own in zip((first, second), places, strict=True))
    tau = float(correlate_ranks(x, y))
    upper = np.triu_indices(len(models), k=1)
    clear = [
        part.clear[np.ix_(own, own)][upper]
        for part, own in zip((first, second), places, strict=True)
    ]
    pairs, both = len(clear[0]), clear[0] * clear[1]
    low = 2 * np.count_nonzero(both > 0) / pairs - 1
    high = 1 - 2 * np.count_nonzero(both < 0) / pairs
    told = " and ".join(
        f"{np.count_nonzero(own)} ({part.data}{part.limits})"
        for part, own in zip((first, second), clear, strict=True)
    )
    method = f"clear order of {told} of {number_of(pairs, 'pair')} of models"
    value = None if np.isnan(tau) else tau
    return SetCorrelation(first.metric, first.data, second.data, models, value, low, high, method)


def describe_correlation(pair: SetCorrelation) -> str:
    """What two data sets tell of the order of the models, in a sentence or two."""
    name, models = name_metric(pair.metric), number_of(len(pair.models), "model")
    if pair.value is None:
        why = f"{models} are all equal on one of the two, so there is no order to compare"
        return f"{name} on {pair.first} and on {pair.second}: {why}."
    tau = f"τ\u00a0=\u00a0{format_tau(pair.value)}"
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
