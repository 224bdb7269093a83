"""The deviation of the size and the shape of detections from those of true objects."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.stability_errors import average_error
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("boxes", "detections", "tracks")
def scale_and_ratio_error(predictions: Predictions, score: float = SCORE) -> Result:
    """σ of √area plus that of width ÷ height, each relative to the true box; 0…1.26.

    The mean over true objects. Zhang and Wang 2016; formulas in
    `metrics.sequences.stability_errors`. n objects found in two frames or more; the interval is
    clustered by video. Value None without such objects. `score`: the lowest score of a detection,
    above 0.1 and below 1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(scale_and_ratio_error(example_true_tracks()))
        scale_and_ratio_error 3.3 % (95 % interval 0.5–106.3 %, n = 4)

    """
    return average_error("scale_and_ratio_error", predictions, score)
