"""How many objects come and go within two frames; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import (
    compare_values,
    count_flickers,
    find_flickers,
)
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_flickers), lower=True)
def flicker_rate(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of objects that are detected in at most two consecutive frames, and never again.

    These are mostly false positives. Objects and `score`, 0…1, as of `blink_rate`, without those
    that are present when a scene begins or ends. n objects; the interval is clustered by video.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> print(flicker_rate(example_tracks()))
        flicker_rate 100.0 % (95 % interval 15.8–100.0 %, n = 4)

    """
    return count_flickers(predictions, score)
