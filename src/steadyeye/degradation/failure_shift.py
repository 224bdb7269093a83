"""How far failure points lie apart in two sweeps of the same images, and what models are left."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.trials import Statistic, Trials
from steadyeye.degradation.failure_points import FailurePoint, failure_points, first_below
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

    `images` as in `degraded_accuracy`: "right", of those that each model has right at level 0. The
    interval is of a Bayesian bootstrap over images, or over videos where several are of one, with
    one more than was seen, on which one model never fails and the other at once.
    """
    blocks = [profiles(each, "all") for each in (before, after)]
    kept = [profiles(each, images) for each in (before, after)]
    points = [failure_points(each, thresholds) for each in kept]
    weights = [
        bootstrap.draws(blocks[0].videos, _counts(*each)) for each in zip(blocks, kept, strict=True)
    ]
    # of each model the levels where the further video fails at once, and where it never does
    drawn = [
        [_levels(*each, further, thresholds) for further in (0.0, 1.0)]
        for each in zip(kept, blocks, weights, strict=True)
    ]
    (soon_before, late_before), (soon_after, late_after) = drawn
    last = {operator: int(levels[-1]) for operator, levels, _ in blocks[0].curves()}
    method = f"paired {bootstrap.draws(blocks[0].videos).method}"
    found = []
    for was, now, *replicates in zip(
        *points, late_before, soon_after, soon_before, late_after, strict=True
    ):
        beyond = last[was.operator] + 1
        levels = [np.minimum(each, beyond) for each in replicates]
        ends = [beyond if each.level is None else each.level for each in (was, now)]
        low = min(bootstrap.ends(levels[1] - levels[0])[0], ends[1] - ends[0])
        high = max(bootstrap.ends(levels[3] - levels[2])[1], ends[1] - ends[0])
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

    return bootstrap.mean_statistic(each, found.videos, (-1, 1))


def _counts(every: Profiles, kept: Profiles) -> NDArray[np.bool_]:
    """(images,) those that count for a model."""
    return np.isin(every.images, kept.images)


def _levels(
    kept: Profiles,
    every: Profiles,
    drawn: bootstrap.Draws,
    further: float,
    thresholds: Sequence[float],
) -> list[NDArray[np.float64]]:
    """The failure levels of each resample, by operator and threshold.

    `further`: what the video that nobody saw has at every level; at level 0 it is right where the
    images that count were chosen so.
    """
    levels_of_all = []
    for _, levels, rows in every.curves():
        right = every.predictions.right[rows].astype(np.float32)
        beyond = np.full(len(levels), further, dtype=np.float32)
        if kept.baseline == "right":
            beyond[0] = 1
        accuracy = drawn.means(right, beyond)
        levels_of_all += [first_below(accuracy, levels, each) for each in thresholds]
    return levels_of_all
