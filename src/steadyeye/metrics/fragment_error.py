"""How often true objects change between found and not found."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.stability_errors import average_error
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("boxes", "detections", "tracks")
def fragment_error(predictions: Predictions, score: float = SCORE) -> Result:
    """Changes between detected and missed ÷ (frames − 1), averaged over true objects, 0…1.

    Zhang and Wang 2016; formulas in `metrics.sequences.stability_errors`. n objects; the interval
    is clustered by video. Value None without true objects. `score`: the lowest score of a
    detection, above 0.1 and below 1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(fragment_error(example_true_tracks()))
        fragment_error 29.8 % (95 % interval 4.7–88.9 %, n = 4)

    """
    return average_error("fragment_error", predictions, score)
