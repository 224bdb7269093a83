"""How often a detector loses an object that it found before and finds again; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import compare_values, count_blinks, find_lost
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_lost), lower=True)
def blink_rate(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of an object's frames, from its first to its last detection, without a detection.

    Detections with a score of `score` or more are linked to objects. Every frame of a gap of up to
    a second is looked up among all detections: it does not count if it has one of `score` or more,
    or if another object covers the place. `cells`: the share not detected at all, and the share
    below the threshold. n frames of objects with 5 detections or more; intervals as of `flip_rate`.
    Value None without such objects.

    Example with invented detections, missing in every tenth frame:

        >>> from steadyeye.testing import example_tracks
        >>> print(blink_rate(example_tracks()))
        blink_rate 16.1 % (95 % interval 2.5–86.7 %, n = 478)
    """
    return count_blinks(predictions, score)
