"""Recall of a detector at a score threshold."""

from functools import partial

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.operating_point import SCORE, measure, recall, statistic


@needs("boxes", "detections")
@compare_by(partial(statistic, recall))
def recall_at(predictions: Predictions, score: float = SCORE, iou: float = 0.5) -> Result:
    """The share of objects detected with `score` or more, over all classes together.

    `iou`, `cells`, intervals and errors as of `precision_at`; n objects, without crowds. Value None
    without objects.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(recall_at(example_detections(), score=1))
        recall_at(score=1) 83.3 % (95 % interval 62.1–94.1 %, n = 30)
    """
    return measure(predictions, recall, score, iou)
