"""How far failure points lie apart in two sweeps of the same images, and what models are left."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bootstrap
from steadyeye.core.outcomes import Statistic, Trials
from steadyeye.core.table import Predictions
from steadyeye.degradation.failure import FailurePoint, failure_points, first_below
from steadyeye.degradation.profiles import Profiles, profiles


@dataclass(frozen=True)
class Moved:
    """A failure point before and after. `value`: by how many levels it moved, with its interval.

    One beyond the last level counts as one level beyond it: `open` says that one of the two does,
    so that it moved by at least (at most, if it was the first) as much; None where both do.
    """

    before: FailurePoint
    after: FailurePoint
    value: int | None
    low: int
    high: int
    open: bool
    n: int
    method: str


def moved(
    before: Predictions, after: Predictions, thresholds: tuple[float, ...], images: str
) -> list[Moved]:
    """How far every failure point of a model moved; paired: the same images are drawn for both.

    `images` as in `degraded_accuracy`: "right", of those that each model has right at level 0. A
    percentile interval of a bootstrap over images, or over videos where several are of one.
    """
    blocks = [profiles(each, "all") for each in (before, after)]
    weight = bootstrap.weights(blocks[0].videos)
    kept = [profiles(each, images) for each in (before, after)]
    points = [failure_points(each, thresholds) for each in kept]
    counted = [weight * _counts(*each) for each in zip(blocks, kept, strict=True)]
    drawn = [_levels(*each, thresholds) for each in zip(blocks, counted, strict=True)]
    last = {operator: int(levels[-1]) for operator, levels, _ in blocks[0].curves()}
    method = f"paired {bootstrap.method(blocks[0].videos)}"
    found = []
    for was, now, *replicates in zip(*points, *drawn, strict=True):
        beyond = last[was.operator] + 1
        shift = np.diff([np.minimum(each, beyond) for each in replicates], axis=0)[0]
        low, high = bootstrap.ends(shift[~np.isnan(shift)])
        ends = [beyond if each.level is None else each.level for each in (was, now)]
        value = None if was.level is None and now.level is None else ends[1] - ends[0]
        some = was.level is None or now.level is None
        n = len(blocks[0].images)
        found.append(Moved(was, now, value, int(low), int(high), some, n, method))
    return found


def original(predictions: Predictions) -> Trials:
    """The images at level 0."""
    found = profiles(predictions, "all")
    return Trials(predictions.right[found.row[0, 0]], found.videos)


def lost(predictions: Predictions) -> Statistic:
    """Accuracy at level 0 less that under degradation, of all images.

    The latter is the mean over operators of the mean over their levels.
    """
    found = profiles(predictions, "all")
    right = predictions.right.astype(np.float64)
    degraded = np.mean([right[rows][1:].mean(axis=0) for _, _, rows in found.curves()], axis=0)
    each = right[found.row[0, 0]] - degraded

    def resampled(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        return bootstrap.means(each, weights)

    return Statistic(float(each.mean()), found.videos, resampled)


def _counts(every: Profiles, kept: Profiles) -> NDArray[np.bool_]:
    """(images,) those that count for a model."""
    return np.isin(every.images, kept.images)


def _levels(
    found: Profiles, weight: NDArray[np.float32], thresholds: Sequence[float]
) -> list[NDArray[np.float64]]:
    """The failure levels of each resample, by operator and threshold; NaN where none is drawn."""
    total = weight.sum(axis=1)
    levels_of_all = []
    for _, levels, rows in found.curves():
        right = found.predictions.right[rows].astype(np.float32)
        with np.errstate(invalid="ignore"):
            accuracy = right @ weight.T / total
        for threshold in thresholds:
            level = first_below(accuracy, levels, threshold)
            levels_of_all.append(np.where(total > 0, level, np.nan))
    return levels_of_all
