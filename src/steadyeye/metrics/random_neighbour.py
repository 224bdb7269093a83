"""How often a neighbour drawn at random is right, where pm-k asks for the worst of them."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import PmSets, farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import mean
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs


def statistic(predictions: Predictions, k: int | None = None) -> Statistic:
    """The mean over sets of the share of neighbours within ±k that are right."""
    sets = pm_sets(predictions)
    share, _ = _shares(predictions, sets, farthest(sets, k))
    return bootstrap.mean_statistic(share, sets.videos, (0, 1))


@needs("truth", "group", "offset")
@compare_by(statistic)
@among_competing
def random_neighbour(predictions: Predictions, k: int | None = None) -> Result:
    """The expected share of anchors with a right prediction on a random neighbour within ±k.

    The mean over sets of the share of their accepted neighbours that are right: the expectation of
    the third number of the released scorer, which draws one neighbour per anchor. `k`: native
    frames, by default the largest in the data. A set without a neighbour counts as its anchor
    alone; the released scorer counts it as right, and a note gives that value. The interval is that
    of a mean over videos. Value None on empty input. Shankar et al., "Do Image Classifiers
    Generalize Across Time?", Section 2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> print(random_neighbour(example_predictions(margin=0.5), k=1))
        random_neighbour(k=1) 62.5 % (95 % interval 33.1–80.9 %, n = 12, among 3 classes)
    """
    sets = pm_sets(predictions)
    distance_limit = farthest(sets, k)
    share, lone = _shares(predictions, sets, distance_limit)
    name, estimate = f"random_neighbour(k={distance_limit})", mean(share, sets.videos)
    notes = _notes(share, lone)
    return Result.of(name, estimate, notes=notes)


def _shares(
    predictions: Predictions, sets: PmSets, distance_limit: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(m,) the share of each set's neighbours within ±reach that are right; which have none."""
    distance = np.abs(sets.offsets)
    near = np.flatnonzero((sets.set_of >= 0) & (distance > 0) & (distance <= distance_limit))
    set_of, m = sets.set_of[near], len(sets)
    right = np.bincount(set_of, predictions.right[near], m)
    total = np.bincount(set_of, minlength=m)
    anchor = (sets.breaks_at > 0).astype(np.float64)
    return np.where(total > 0, right / np.maximum(total, 1), anchor), total == 0


def _notes(share: NDArray[np.float64], lone: NDArray[np.bool_]) -> tuple[str, ...]:
    if not lone.any():
        return ()
    released = float(np.where(lone, 1.0, share).mean())
    return (
        f"{int(lone.sum()):,} of {number_of(len(lone), 'set')} without a neighbour, of which the "
        f"anchor alone counts; the released scorer counts these as right: {released:.4f}",
    )
