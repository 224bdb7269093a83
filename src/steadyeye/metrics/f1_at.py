"""F1 of a detector at a score threshold."""

from functools import partial

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.operating_point import SCORE, f1, measure, statistic


@needs("boxes", "detections")
@compare_by(partial(statistic, f1))
def f1_at(predictions: Predictions, score: float = SCORE, iou: float = 0.5) -> Result:
    """The harmonic mean of `precision_at` and `recall_at`: 2 TP ÷ (detections + objects).

    `score`, `iou`, intervals and errors as there. `cells`: the classes with the number of their
    objects; n images. Value None with neither detections nor objects.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(f1_at(example_detections(), score=1))
        f1_at(score=1) 90.9 % (95 % interval 69.5–96.9 %, n = 30)
    """
    return measure(predictions, f1, score, iou)
