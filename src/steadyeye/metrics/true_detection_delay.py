"""How long a true object is there before it is detected."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.first_detections import measure_true_delay
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("boxes", "detections", "tracks", "seconds")
def true_detection_delay(predictions: Predictions, score: float = SCORE) -> Result:
    """The median time from a true object's first frame to its first detection.

    An object that is never found is censored at its last frame (Kaplan and Meier's median). In
    seconds, n objects; a bootstrap over videos. Value None if fewer than half are found. After Mao,
    Yang and Dally, "A Delay Metric for Video Object Detection", 2019. `score`: the lowest score of
    a detection, above 0.1 and below 1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(true_detection_delay(example_true_tracks()))
        true_detection_delay 0.00 s (n = 4)

    """
    return measure_true_delay(predictions, score)
