"""The line from accuracy to pm-k through the user's own models, and their distances from it.

The method is that of Taori et al., NeurIPS 2020, Section 2, with the user's models instead of
published ones.
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
"""The least number of models for a line: two always lie on their line."""


@dataclass(frozen=True, eq=False)
class AnchorOutcomes:
    """The outcomes of a model on n anchors: `right` (n,) on it; `steady` (n,) on its whole set."""

    model: str
    right: NDArray[np.bool_]
    steady: NDArray[np.bool_]


@dataclass(frozen=True)
class LineDistance:
    """A model against the line: shares, `value` = pm-k − expected, with its 95 % interval.

    `low`, `high`: None with too few clusters for an interval. `n`: anchors.
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

    `slope`: the 95 % interval of its slope, None with too few clusters. `moved`: the models whose
    accuracy or pm-k is 0 or 1, which has no probit and no logit, and counts as half an anchor more
    or less. `method`: of the intervals.
    """

    line: Line
    slope: tuple[float, float] | None
    distances: tuple[LineDistance, ...]
    moved: tuple[str, ...]
    method: str


def explain_no_line(models: Sequence[AnchorOutcomes]) -> str:
    """Why there is no line through the models; empty if there is one."""
    if len(models) < FEWEST:
        count = number_of(len(models), "model")
        return f"A line through your own models needs {FEWEST} models or more; there are {count}."
    if not len(models[0].right):
        return "A line through your own models needs anchors; there are none."
    different = len({int(model.right.sum()) for model in models})
    if different < FEWEST:
        # through two accuracies a line goes exactly, whatever the models do
        count = "1 accuracy" if different == 1 else f"{different} different accuracies"
        return f"A line needs {FEWEST} different accuracies; your models have {count}."
    return ""


def fit_own_lines(
    models: Sequence[AnchorOutcomes], videos: NDArray[np.str_]
) -> tuple[OwnLine, ...]:
    """The lines in probit and in logit space; empty if `explain_no_line` gives a reason.

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
        shares = _resample_models(models, draws, cluster)
        slope = _bound_slope(shares, space, n)
        values = (steady - expected).tolist()
        ends = [_bound_distance(shares, i, values[i], space, n) for i in range(len(models))]
    rows = zip(models, right, steady, expected, ends, strict=True)
    distances = tuple(
        LineDistance(m.model, float(a), float(p), float(e), float(p - e), *between, n)
        for m, a, p, e, between in rows
    )
    extreme = ((right == 0) | (right == 1) | (steady == 0) | (steady == 1)).tolist()
    moved = tuple(model.model for model, has in zip(models, extreme, strict=True) if has)
    method = f"Bayesian bootstrap over {draws.method}" if draws.enough else draws.method
    return OwnLine(line, slope, distances, moved, method)


@dataclass(frozen=True, eq=False)
class _Resampled:
    """(r, m) accuracies and pm-k of m models in the same r resamples of the clusters.

    `unseen`: (r, 1) the share of a further, unseen cluster, on whose anchors all models are right.
    No resample of the data shows an outcome that a model never had.
    """

    right: Floats
    steady: Floats
    unseen: Floats

    def join(self, steady: Floats) -> tuple[Floats, Floats]:
        """Accuracies and pm-k with the further cluster, for given pm-k of the m models on it."""
        rest = 1 - self.unseen
        return rest * self.right + self.unseen, rest * self.steady + self.unseen * steady


def _resample_models(
    models: Sequence[AnchorOutcomes], draws: ClusterDraws, cluster: NDArray[np.intp]
) -> _Resampled:
    right, steady = (
        np.stack([resample_shares(part, cluster, draws.weights) for part in parts], axis=1)
        for parts in ([model.right for model in models], [model.steady for model in models])
    )
    return _Resampled(right, steady, draws.unseen[:, None])


def _bound_distance(
    shares: _Resampled, model: int, value: float, space: Space, anchors: int
) -> tuple[float, float]:
    """The interval of a model's distance, `value`, which lies in it.

    On the further cluster the model alone breaks for the lower end, all others for the upper one.
    """
    alone = np.zeros(shares.right.shape[1])
    alone[model] = 1.0
    lower, upper = (
        _fit_replicates(*shares.join(steady), space, anchors)[1][:, model]
        for steady in (1 - alone, alone)
    )
    low, high = bound_replicates(lower, -1.0, 1.0)[0], bound_replicates(upper, -1.0, 1.0)[1]
    return min(low, value), max(high, value)


def _bound_slope(shares: _Resampled, space: Space, anchors: int) -> tuple[float, float]:
    """The interval of the slope: the further cluster orders the models against or by accuracy."""
    order = np.argsort(np.argsort(shares.right.mean(axis=0))) / (shares.right.shape[1] - 1)
    lower, upper = (
        _fit_replicates(*shares.join(steady), space, anchors)[0] for steady in (1 - order, order)
    )
    return bound_replicates(lower, -np.inf, np.inf)[0], bound_replicates(upper, -np.inf, np.inf)[1]


def _scale(space: Space, shares: Floats, anchors: int) -> Floats:
    """Shares on the scale of a space, kept half an anchor away from 0 and 1."""
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
