"""How often the class of an object changes; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import (
    compare_values,
    find_class_changes,
    measure_values,
)
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_class_changes), lower=True)
def class_change_rate(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of consecutive detections of one object whose classes differ; n counts pairs.

    Objects and `score`, 0…1, as of `blink_rate`; of overlapping boxes, the one with the highest
    score counts.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> print(class_change_rate(example_tracks()))
        class_change_rate 4.5 % (95 % interval 0.6–84.9 %, n = 397)

    """
    return measure_values("class_change_rate", predictions, score, find_class_changes)
