"""Precision of a detector at a score threshold."""

from functools import partial

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.operating_point import SCORE, measure, precision, statistic


@needs("boxes", "detections")
@compare_by(partial(statistic, precision))
def precision_at(predictions: Predictions, score: float = SCORE, iou: float = 0.5) -> Result:
    """The share of right detections among those of `score` or more, over all classes together.

    Right: a true positive at `iou`, 0.5 … 0.95, matched as for `map`, on the same images as `map`;
    on a crowd neither right nor wrong. Detections of classes without an object are wrong, and a
    note counts them. `cells`: the classes. n detections; intervals clustered by video, or by image.
    Value None without such detections. Raises `UsageError` for other values.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(precision_at(example_detections(), score=1))
        precision_at(score=1) 100.0 % (95 % interval 76.7–100.0 %, n = 25)
    """
    return measure(predictions, precision, score, iou)
