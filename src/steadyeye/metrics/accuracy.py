"""The share of samples, or of anchors, that are right."""

import numpy as np

from steadyeye.core.intervals import proportion
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs


@needs("truth")
def accuracy(predictions: Predictions) -> Result:
    """The share right: of the anchors where samples form pm-sets, of the labelled samples else.

    Right is any of the sample's own labels. Value None on empty input.
    """
    if "offset" in predictions.tags:
        sets = pm_sets(predictions)
        success, videos = sets.breaks_at > 0, sets.videos
        lost = sets.lost_anchors
    else:
        counted = predictions.labelled & predictions.valid
        success = predictions.right[counted]
        videos = predictions.ids[counted]
        lost = int(np.sum(predictions.labelled & ~predictions.valid))
    found = proportion(success, videos)
    notes = (f"{lost} left out: not predicted",) if lost else ()
    return Result("accuracy", found.value, found.low, found.high, found.n, found.method, notes)
