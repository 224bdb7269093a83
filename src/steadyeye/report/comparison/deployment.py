"""The cost of a deployed model against its original on the same samples, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import Interval, mean
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import Difference, difference, prepare_outcomes
from steadyeye.core.types import Evaluated
from steadyeye.report.comparison.leaderboards import ALPHA, common
from steadyeye.report.comparison.metric_wording import amount, format_ends, name_metric

SMALLEST = 1e-12
"""Smaller differences count as 0, because they come from the order of sums."""
SAME = ("frame", "operator", "level")
"""Tags that rows of the same frame of a video share."""


@dataclass(frozen=True)
class Cost:
    """How much worse a deployed model is by a metric, with the paired interval.

    `difference`: original minus deployed, or the other way where lower is better, so that more is
    always worse. `adjusted`: its p value after Holm, over all metrics and models of one original.
    """

    metric: str
    unit: str
    lower: bool
    difference: Difference
    adjusted: float


@dataclass(frozen=True)
class Deployment:
    """A model against its original. `changed`: the share of samples with another prediction."""

    original: str
    deployed: str
    changed: Interval
    costs: tuple[Cost, ...]


def compare_deployed(models: Sequence[Evaluated], original: str) -> list[Deployment]:
    """Each of the other models against the one named `original`, all of one data.

    Raises `UsageError` if no model has this name.
    """
    names = [model.predictions.model for model in models]
    if original not in names:
        raise unknown("model of these runs", original, names)
    tables = common([model.predictions for model in models])
    base, base_table = models[names.index(original)], tables[names.index(original)]
    gaps: list[tuple[int, str, Difference]] = []
    for place, (model, table) in enumerate(zip(models, tables, strict=True)):
        if model is base:
            continue
        for name, bound in model.bound_metrics.items():
            if bound.outcomes is None or name not in base.bound_metrics:
                continue
            pair = [prepare_outcomes(bound.outcomes(rows)) for rows in (base_table, table)]
            gap = difference(*(pair[::-1] if bound.lower else pair))
            if gap is not None:
                gaps.append((place, name, gap))
    adjusted = holm([gap.p for _, _, gap in gaps]).tolist() if gaps else []
    costs: dict[int, list[Cost]] = {}
    for (place, name, gap), p in zip(gaps, adjusted, strict=True):
        bound, result = base.bound_metrics[name], base.results[name]
        costs.setdefault(place, []).append(Cost(name, result.unit, bound.lower, gap, float(p)))
    return [
        Deployment(
            original, names[i], _measure_change(base_table, tables[i]), tuple(costs.get(i, ()))
        )
        for i in range(len(models))
        if models[i] is not base
    ]


def _measure_change(base: Predictions, other: Predictions) -> Interval:
    """The share of samples with a different best class, clustered by video."""
    rows = _list_frames(base, np.flatnonzero(base.valid & other.valid))
    if base.model_classes == other.model_classes:
        differs = base.own[rows] != other.own[rows]
    else:
        differs = np.array(
            [base.answer(row) != other.answer(row) for row in rows.tolist()], dtype=np.bool_
        )
    videos = base.videos[rows]
    if "frame" in base.tags:
        return block_bootstrap.mean(differs, videos, block_bootstrap.length(len(rows)))
    return mean(differs, videos)


def _list_frames(predictions: Predictions, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first row of each frame that several sets share; frames of videos in time order."""
    tags = predictions.tags
    if "frame" not in tags:
        return rows
    same = [predictions.videos[rows], *(tags[n][rows] for n in SAME if n in tags)]
    numbers = [np.unique(column, return_inverse=True)[1] for column in same]
    return rows[np.unique(np.stack(numbers), axis=1, return_index=True)[1]]


def describe(deployment: Deployment) -> str:
    """The costs of a deployed model in two sentences: clear costs first, then the others."""
    share, name = deployment.changed, deployment.deployed
    if share.value is None:
        return f"{name} and {deployment.original} have no sample in common."
    ends = ""
    if share.low is not None and share.high is not None:
        ends = f" (95 % interval {share.low * 100:.1f}–{share.high * 100:.1f} %)"
    text = (
        f"{name} changes {share.value * 100:.1f} % of {number_of(share.n, 'prediction')} of "
        f"{deployment.original}{ends}"
    )
    alike = [cost for cost in deployment.costs if abs(cost.difference.value) < SMALLEST]
    clear = [cost for cost in deployment.costs if cost.adjusted <= ALPHA and cost not in alike]
    if clear:
        text += f", and costs {'; '.join(map(_amount, clear))}"
    open_ = [cost for cost in deployment.costs if cost not in clear]
    if open_:
        text += f". No clear cost in {'; '.join(map(_amount, open_))}"
    return f"{text}."


def _amount(cost: Cost) -> str:
    """`3.1 percentage points of pm-10 (1.0 to 5.2)`; a cost below 0 is a gain."""
    gap = cost.difference
    ends = format_ends(gap.low, gap.high, cost.unit)
    size = amount(gap.value, cost.unit)
    more = " more" if cost.lower else ""
    return f"{name_metric(cost.metric)}: {size}{more} ({ends})"
