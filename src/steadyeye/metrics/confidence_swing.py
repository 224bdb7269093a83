"""How much the score of an object moves from frame to frame; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import (
    compare_values,
    find_swings,
    measure_values,
)
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_swings), lower=True)
def confidence_swing(predictions: Predictions, score: float = SCORE) -> Result:
    """The mean |Δ score| of an object from one of its boxes to the next, 0…1; n counts pairs.

    Objects and `score`, 0…1, as of `blink_rate`; scores below the threshold count as well, frames
    without a detection do not.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> print(confidence_swing(example_tracks()))
        confidence_swing 13.8 % (95 % interval 2.2–86.4 %, n = 451)

    """
    return measure_values("confidence_swing", predictions, score, find_swings)
