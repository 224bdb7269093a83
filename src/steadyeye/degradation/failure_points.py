"""Failure points: the first level of an operator at which accuracy falls below a threshold.

Those of a full sweep, those of a search, and their shift between two sweeps of the same images.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.trials import Statistic, Trials
from steadyeye.core.types import Result
from steadyeye.degradation.curves import Profiles, profiles
from steadyeye.degradation.failure_search import Search, exhaustive

METHOD = "sequential tests: contains the level of a full sweep over these images, ≥ 95 %"


@dataclass(frozen=True)
class FailurePoint:
    """The first level with accuracy below `threshold`; None if there is none.

    `low`, `high`: the 95 % interval of the level, None beyond the last level. `changed`: mean share
    of pixels changed there; `brightness`: mean value there, 0…255.
    """

    operator: str
    threshold: float
    level: int | None
    low: int | None
    high: int | None
    changed: float | None
    brightness: float | None
    n: int
    method: str


def read_thresholds(thresholds: Sequence[float]) -> tuple[float, ...]:
    """Some shares above 0 and up to 1. Raises `UsageError` for others, and for none."""
    limits = tuple(float(threshold) for threshold in thresholds)
    if not limits or not all(0 < threshold <= 1 for threshold in limits):
        raise UsageError(f"thresholds {list(thresholds)}: give shares above 0 and up to 1")
    return limits


def describe_point(point: FailurePoint, images: int) -> Result:
    """The result of a failure point; `images`: how many were measured at its level."""
    measured = (
        Result("pixels changed", point.changed, None, None, images, "none"),
        Result("mean value", point.brightness, None, None, images, "none", unit="grey value"),
    )
    is_reached = point.level is not None
    return Result(
        f"below {point.threshold:g}",
        *(point.level, point.low, point.high, point.n, point.method),
        () if is_reached else ("not reached",),
        measured if is_reached else (),
        "level",
    )


def failure_points(sweep: Profiles, thresholds: tuple[float, ...]) -> list[FailurePoint]:
    """The failure points of every operator, thresholds in the order given, over the baseline set.

    The interval goes from the first level at which accuracy may be below, as far as its lower end
    says, to the first at which its upper end is: the threshold lies within the interval of accuracy
    (`bootstrap.mean_ends`) or beyond it from one level to the next. None if that end never is.
    """
    draws = bootstrap.draws(sweep.videos)
    predictions = sweep.predictions
    points = []
    for operator, levels, rows in sweep.curves():
        right = predictions.right[rows].astype(np.float32)
        accuracy = right.mean(axis=1)
        ends_of = bootstrap.mean_ends(right, draws, (0, 1))
        if sweep.baseline == "right":
            # right at level 0 by selection: nothing is estimated there
            for end in ends_of:
                end[0] = 1
        for threshold in thresholds:
            at, low, high = (
                first_below(shares[:, None], levels, threshold)[0]
                for shares in (accuracy, *ends_of)
            )
            rows_at = rows[levels == at]
            changed, brightness = (
                float(predictions.tags[tag][rows_at].mean()) if rows_at.size else None
                for tag in ("changed", "brightness")
            )
            ends = (finite(at), finite(low), finite(high))
            n = len(sweep.images)
            points.append(
                FailurePoint(operator, threshold, *ends, changed, brightness, n, draws.method)
            )
    return points


def first_below(
    accuracy: NDArray[np.floating], levels: NDArray[np.int64], threshold: float
) -> NDArray[np.float64]:
    """(m,) the first of `levels` at which each column of (levels, m) is below; `inf` for none."""
    # a share that equals the threshold must not fall below it by the rounding of a float32 sum
    below = accuracy < threshold - 1e-6
    return np.where(below.any(axis=0), levels[below.argmax(axis=0)], np.inf)


def finite(level: float) -> int | None:
    """The level, or None for `inf`."""
    return int(level) if np.isfinite(level) else None


def state(predictions: Predictions, thresholds: tuple[float, ...]) -> tuple[Search, list[str]]:
    """The state of a search from its predictions, and the names of its operators."""
    levels = predictions.sweep["levels"]
    tags = predictions.tags
    images = int(predictions.right[tags["level"] == 0].sum())
    answers = {}
    for number, operator in enumerate(levels):
        mine = tags["operator"] == operator
        for level in np.unique(tags["level"][mine]).tolist():
            right = predictions.right[mine & (tags["level"] == level)]
            answers[number, level] = (len(right), int(right.sum()))
    return Search(images, list(levels.values()), thresholds, answers), list(levels)


def searched_points(predictions: Predictions, thresholds: tuple[float, ...]) -> list[FailurePoint]:
    """The failure points of every operator as far as the search went, with their evidence."""
    search, operators = state(predictions, thresholds)
    return [
        _point(predictions, search, number, operator, threshold)
        for operator, number in sorted(zip(operators, range(len(operators)), strict=True))
        for threshold in thresholds
    ]


def _point(
    predictions: Predictions, search: Search, number: int, operator: str, threshold: float
) -> FailurePoint:
    levels = search.levels[number]
    bracket = search.bracket(number, threshold)
    level = search.level(number, threshold)
    tags = predictions.tags
    rows = (tags["operator"] == operator) & (tags["level"] == level)
    changed, brightness = (
        float(tags[tag][rows].mean()) if rows.any() else None for tag in ("changed", "brightness")
    )
    high = levels[bracket.high] if bracket.high < len(levels) else None
    low = levels[bracket.low + 1] if bracket.low + 1 < len(levels) else None
    return FailurePoint(
        operator, threshold, finite(level), low, high, changed, brightness, search.images, METHOD
    )


def cost(predictions: Predictions) -> str:
    """The forward passes of the search, compared with a full sweep."""
    passes = len(predictions)
    search, _ = state(predictions, ())
    whole = exhaustive(int((predictions.tags["level"] == 0).sum()), search)
    return f"{passes:,} forward passes, {percent(passes / whole)} of the {whole:,} of a full sweep"


@dataclass(frozen=True)
class FailureShift:
    """The shift of a failure point. `value`: the number of levels it moved, with its interval.

    A point beyond the last level counts as one level beyond it. `open`: one of the two points is
    beyond, so that the shift is at least (at most, if it is the first) as large; the value is None
    if both are.
    """

    before: FailurePoint
    after: FailurePoint
    value: int | None
    low: int
    high: int
    open: bool
    n: int
    method: str


def measure_failure_shifts(
    before: Predictions, after: Predictions, thresholds: tuple[float, ...], images: str
) -> list[FailureShift]:
    """The shift of every failure point of a model; paired, as both use the same resamples.

    `images` as in `degraded_accuracy`: "right" for those that each model has right at level 0. The
    interval is from a Bayesian bootstrap over images, or over videos if a video has several, with
    one unseen image or video added, on which one model never fails and the other immediately.
    """
    blocks = [profiles(predictions, "all") for predictions in (before, after)]
    baselines = [profiles(predictions, images) for predictions in (before, after)]
    points = [failure_points(baseline, thresholds) for baseline in baselines]
    weights = [
        bootstrap.draws(blocks[0].videos, np.isin(block.images, baseline.images))
        for block, baseline in zip(blocks, baselines, strict=True)
    ]
    # per model, the levels if the unseen video fails at once, and if it never fails
    failure_levels = [
        [_levels(*sweep, further, thresholds) for further in (0.0, 1.0)]
        for sweep in zip(baselines, blocks, weights, strict=True)
    ]
    (soon_before, late_before), (soon_after, late_after) = failure_levels
    last = {operator: int(levels[-1]) for operator, levels, _ in blocks[0].curves()}
    method = f"paired {bootstrap.draws(blocks[0].videos).method}"
    shifts = []
    for was, now, *replicates in zip(
        *points, late_before, soon_after, soon_before, late_after, strict=True
    ):
        above = last[was.operator] + 1
        levels = [np.minimum(replicate, above) for replicate in replicates]
        ends = [above if point.level is None else point.level for point in (was, now)]
        low = min(bootstrap.ends(levels[1] - levels[0])[0], ends[1] - ends[0])
        high = max(bootstrap.ends(levels[3] - levels[2])[1], ends[1] - ends[0])
        value = None if was.level is None and now.level is None else ends[1] - ends[0]
        some = was.level is None or now.level is None
        n = len(blocks[0].images)
        shifts.append(FailureShift(was, now, value, int(low), int(high), some, n, method))
    return shifts


def accuracy_at_zero(predictions: Predictions) -> Trials:
    """The images at level 0."""
    sweep = profiles(predictions, "all")
    return Trials(predictions.right[sweep.row[0, 0]], sweep.videos)


def accuracy_loss(predictions: Predictions) -> Statistic:
    """Accuracy at level 0 minus that under degradation, of all images.

    The latter is the mean over operators of the mean over their levels.
    """
    sweep = profiles(predictions, "all")
    right = predictions.right.astype(np.float64)
    degraded = np.mean([right[rows][1:].mean(axis=0) for _, _, rows in sweep.curves()], axis=0)
    loss = right[sweep.row[0, 0]] - degraded

    return bootstrap.mean_statistic(loss, sweep.videos, (-1, 1))


def _levels(
    baseline: Profiles,
    every: Profiles,
    draws: bootstrap.Draws,
    further: float,
    thresholds: Sequence[float],
) -> list[NDArray[np.float64]]:
    """The failure levels of each resample, by operator and threshold.

    `further`: the outcome of the added unseen video at every level; at level 0 it is right if the
    images were chosen to be.
    """
    levels_of_all = []
    for _, levels, rows in every.curves():
        right = every.predictions.right[rows].astype(np.float32)
        unseen = np.full(len(levels), further, dtype=np.float32)
        if baseline.baseline == "right":
            unseen[0] = 1
        accuracy = draws.means(right, unseen)
        levels_of_all += [first_below(accuracy, levels, threshold) for threshold in thresholds]
    return levels_of_all
