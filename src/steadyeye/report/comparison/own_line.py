"""The line from accuracy to pm-k through the user's own models, and where each lies.

As the line of Taori et al., NeurIPS 2020, Section 2, with the user's models in place of published
ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.stats.intervals import number_clusters
from steadyeye.metrics.testbed.testbed_fit import LOGIT, PROBIT, Line, Space, fit
from steadyeye.report.comparison.cluster_draws import (
    ClusterDraws,
    bound_replicates,
    draw_clusters,
    resample_shares,
)

Floats = NDArray[np.float64]
FEWEST = 3
"""Models below which no line is fitted: two always lie on theirs."""


@dataclass(frozen=True, eq=False)
class AnchorOutcomes:
    """What a model does on n anchors: `right` (n,) on the anchor; `steady` (n,) on all its set."""

    model: str
    right: NDArray[np.bool_]
    steady: NDArray[np.bool_]


@dataclass(frozen=True)
class LineDistance:
    """A model against the line: shares, `value` = pm-k − expected, with its 95 % interval.

    `low`, `high`: None where there are too few clusters for an interval. `n`: anchors.
    """

    model: str
    accuracy: float
    pm_k: float
    expected: float
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class OwnLine:
    """The line through the user's models on the scale of its space, and each model's distance.

    `slope`: the 95 % interval of its slope, None where there are too few clusters. `moved`: the
    models whose accuracy or pm-k is 0 or 1, which has no probit and no logit, and counts as half
    an anchor more or less. `method`: of the intervals.
    """

    line: Line
    slope: tuple[float, float] | None
    distances: tuple[LineDistance, ...]
    moved: tuple[str, ...]
    method: str


def explain_no_line(models: Sequence[AnchorOutcomes]) -> str:
    """Why no line goes through the models; blank where one does."""
    if len(models) < FEWEST:
        count = number_of(len(models), "model")
        return f"A line through your own models needs {FEWEST} models or more; there are {count}."
    if not len(models[0].right):
        return "A line through your own models needs anchors; there are none."
    if len({int(model.right.sum()) for model in models}) < 2:
        return "All models have the same accuracy, so no line goes through them."
    return ""


def fit_own_lines(
    models: Sequence[AnchorOutcomes], videos: NDArray[np.str_]
) -> tuple[OwnLine, ...]:
    """The lines in probit and in logit space; none where `explain_no_line` says why.

    `models`: of the same n anchors. `videos`: (n,) the video of each anchor.
    """
    if explain_no_line(models):
        return ()
    return tuple(fit_own_line(models, videos, space) for space in (PROBIT, LOGIT))


def fit_own_line(
    models: Sequence[AnchorOutcomes], videos: NDArray[np.str_], space: Space
) -> OwnLine:
    """The least squares line of pm-k against accuracy through three models or more, in a space.

    `models`, `videos`: as for `fit_own_lines`. The line goes through all models, so each draws it
    towards itself. Intervals are a Bayesian bootstrap over videos, the same resamples for all
    models and the line fitted in each: they are about other footage and these same models, not
    about other models.
    """
    n = len(videos)
    right = np.array([model.right.mean() for model in models])
    steady = np.array([model.steady.mean() for model in models])
    line = fit(right, steady, space, n)
    expected = space.back(line.intercept + line.slope * _scale(space, right, n))
    draws, cluster = draw_clusters(videos), number_clusters(videos)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(models)
    slope = None
    if draws.enough:
        slopes, gaps = _fit_replicates(*_resample_models(models, draws, cluster), space, n)
        slope = bound_replicates(slopes, -np.inf, np.inf)
        ends = [_widen(gaps[:, i], steady[i] - expected[i]) for i in range(len(models))]
    rows = zip(models, right, steady, expected, ends, strict=True)
    distances = tuple(
        LineDistance(m.model, float(a), float(p), float(e), float(p - e), *between, n)
        for m, a, p, e, between in rows
    )
    extreme = ((right == 0) | (right == 1) | (steady == 0) | (steady == 1)).tolist()
    moved = tuple(model.model for model, has in zip(models, extreme, strict=True) if has)
    method = f"Bayesian bootstrap over {draws.method}" if draws.enough else draws.method
    return OwnLine(line, slope, distances, moved, method)


def _resample_models(
    models: Sequence[AnchorOutcomes], draws: ClusterDraws, cluster: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """(r, m) accuracies and pm-k of m models in the same r resamples.

    Joined by half a cluster of each outcome (wrong, broken, steady), as in `testbed_fit`: an
    outcome that nobody saw of a model may still occur.
    """
    resampled = [
        np.stack([resample_shares(part, cluster, draws.weights) for part in parts], axis=1)
        for parts in ([model.right for model in models], [model.steady for model in models])
    ]
    rng = np.random.default_rng(1)
    size = np.bincount(cluster).astype(np.float64)
    further = rng.gamma(0.5, size=(len(draws.weights), len(models), 3)) * size.mean()
    total = (draws.weights @ size)[:, None]
    steady = total * resampled[1] + further[..., 2]
    right = total * resampled[0] + further[..., 1] + further[..., 2]
    total = total + further.sum(axis=-1)
    return right / total, steady / total


def _widen(gaps: Floats, value: float) -> tuple[float, float]:
    """The interval of a distance, which the distance itself lies in."""
    low, high = bound_replicates(gaps, -1.0, 1.0)
    return min(low, float(value)), max(high, float(value))


def _scale(space: Space, shares: Floats, anchors: int) -> Floats:
    """Shares on the scale of a space, those beyond half an anchor from 0 and 1 moved to there."""
    return space.to(np.clip(shares, 0.5 / anchors, 1 - 0.5 / anchors))


def _fit_replicates(
    right: Floats, steady: Floats, space: Space, anchors: int
) -> tuple[Floats, Floats]:
    """(r,) slopes and (r, m) distances from the line of each of r resamples of m models' shares.

    NaN where all accuracies of a resample are equal.
    """
    x, y = _scale(space, right, anchors), _scale(space, steady, anchors)
    across, along = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    spread = np.sum(across**2, axis=1)
    spread = np.where(spread < 1e-18, np.nan, spread)
    slopes = np.sum(across * along, axis=1) / spread
    expected = space.back(y.mean(axis=1, keepdims=True) + slopes[:, None] * across)
    return slopes, steady - expected
