"""Mean average precision."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.frame_ap import (
    ap,
    frames,
    ious,
    result,
    select_counted_rows,
    statistic,
)


def outcomes(predictions: Predictions, iou: float | str = 0.5) -> Statistic:
    """The images that count, counted anew."""
    return statistic(frames(predictions, select_counted_rows(predictions)), ap(ious(iou)))


@needs("boxes", "detections")
@compare_by(outcomes)
def map(predictions: Predictions, iou: float | str = 0.5) -> Result:
    """AP averaged over the classes that are there: of the anchors where samples form pm-sets.

    Interpolated at 101 recalls, at most 100 detections an image and class, crowds ignored: equal
    to COCOeval of pycocotools. `iou`: 0.5 … 0.95, or "coco", the mean over all ten. Value None
    without objects. Lin et al., "Microsoft COCO", 2014.

    Example, on made-up predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(map(example_detections(), iou="coco"))
        map(iou=coco) 40.6 % (95 % interval 14.6–57.8 %, n = 30)
    """
    images = frames(predictions, select_counted_rows(predictions))
    return result(f"map(iou={iou})", images, ap(ious(iou)))
