"""How far detections stray from the centres of true objects."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.stability_errors import average_error
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("boxes", "detections", "tracks")
def center_position_error(predictions: Predictions, score: float = SCORE) -> Result:
    """σ of centre offsets ÷ width plus σ of those ÷ height, averaged over true objects, 0…1.

    Zhang and Wang 2016; formulas in `metrics.sequences.stability_errors`. n objects found in two
    frames or more; the interval is clustered by video. Value None without such objects. `score`:
    the lowest score of a detection, above 0.1 and below 1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(center_position_error(example_true_tracks()))
        center_position_error 1.6 % (95 % interval 0.3–84.4 %, n = 4)

    """
    return average_error("center_position_error", predictions, score)
