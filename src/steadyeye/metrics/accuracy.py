"""The share of samples, or of anchors, that are right."""

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import proportion
from steadyeye.core.stats.trials import Trials, compare_by
from steadyeye.core.types import Result, needs


def trials(predictions: Predictions) -> Trials:
    """The anchors, or the labelled samples, that are right."""
    if "offset" in predictions.tags:
        sets = pm_sets(predictions)
        return Trials(sets.breaks_at > 0, sets.videos)
    judged = predictions.has_label & predictions.valid
    videos = predictions.videos if "video" in predictions.tags else predictions.ids
    return Trials(predictions.right[judged], videos[judged])


@needs("truth")
@compare_by(trials)
@among_competing
def accuracy(predictions: Predictions) -> Result:
    """The share of right predictions, of anchors if samples form pm-sets, else of labelled samples.

    Right is any of the sample's own labels. Value None on empty input.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> print(accuracy(example_predictions(margin=0.5)))
        accuracy 83.3 % (95 % interval 42.9–97.8 %, n = 12, among 3 classes)
    """
    outcomes = trials(predictions)
    share = proportion(outcomes.success, outcomes.videos)
    if "offset" in predictions.tags:
        sets = pm_sets(predictions)
        lost, unlabelled = sets.lost_anchors, sets.unlabelled_anchors
    else:
        lost = int(np.sum(predictions.has_label & ~predictions.valid))
        unlabelled = int(np.sum(~predictions.has_label))
    notes = (
        *((f"{lost} left out: no prediction",) if lost else ()),
        *((f"{unlabelled} left out: no label",) if unlabelled else ()),
    )
    return Result.of("accuracy", share, notes=notes)
