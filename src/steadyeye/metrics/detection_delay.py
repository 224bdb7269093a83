"""How long an object is there before it is detected; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.first_detections import measure_delay
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
def detection_delay(predictions: Predictions, score: float = SCORE) -> Result:
    """The median time from the first box of 0.1 at an object's place to its first detection.

    Backwards from the first detection, frame by frame, a box counts if it overlaps that of the next
    frame (IoU > 0.5). Time without any box is not counted: with true tracks `true_detection_delay`
    counts it. Objects as of `blink_rate`, without those that are present when a scene begins; a
    delay that reaches the start of a scene is censored (Kaplan and Meier's median). In seconds, n
    objects; a bootstrap over videos. `score`: the lowest score of a detection, above 0.1 and below
    1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> print(detection_delay(example_tracks(late=20)))
        detection_delay 0.50 s (n = 4)

    """
    return measure_delay(predictions, score)
