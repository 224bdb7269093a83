"""How far boxes are off a smooth path; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import compare_values, find_moves, measure_jitter
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import SCORE


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_moves), lower=True)
def box_jitter(predictions: Predictions, score: float = SCORE) -> Result:
    """The mean distance of a box's centre from its smoothed path, as a share of √area.

    The path is the least-squares parabola through the centres of a frame and the two before and
    after it; a distance above 1 counts as 1. `cells`: "size", |ln| of √area over its own parabola,
    and "pixels", the mean distance in pixels. Objects and `score`, 0…1, as of `blink_rate`; boxes
    below the threshold count as well.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> print(box_jitter(example_tracks()))
        box_jitter 0.7 % (95 % interval 0.1–84.3 %, n = 354)

    """
    return measure_jitter(predictions, score)
