"""Mean average recall."""

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.average_precision import average_recall
from steadyeye.metrics.detection.box_groups import MOST
from steadyeye.metrics.detection.frame_ap import (
    Table,
    frames,
    result,
    select_counted_rows,
    statistic,
)


def outcomes(predictions: Predictions, detections: int = MOST) -> Statistic:
    """The images that count, for resampling."""
    return statistic(frames(predictions, select_counted_rows(predictions)), recall(detections))


def recall(detections: int) -> Table:
    """The recall of so many detections an image and class, whose mean is mAR."""
    return lambda matched, weight: average_recall(matched, detections, weight=weight)


@needs("boxes", "detections")
@compare_by(outcomes)
def mar(predictions: Predictions, detections: int = MOST) -> Result:
    """mAR: the share of objects detected, averaged over IoU 0.50 … 0.95 and the classes present.

    `detections`: the number per image and class that count, the most confident first; at most 100.
    COCO's AR. Value None without objects. Raises `UsageError` for other values.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(mar(example_detections(), detections=1))
        mar(detections=1) 47.7 % (95 % interval 24.4–64.5 %, n = 30)
    """
    if not 1 <= detections <= MOST:
        raise UsageError(f"detections={detections}: give 1 to {MOST}")
    images = frames(predictions, select_counted_rows(predictions))
    return result(f"mar(detections={detections})", images, recall(detections))
