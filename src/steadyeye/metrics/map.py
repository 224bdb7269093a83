"""Mean average precision."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.box_groups import MOST
from steadyeye.metrics.detection.frame_ap import (
    Frames,
    ap,
    frames,
    limit_frames,
    result,
    select_counted_rows,
    statistic,
)
from steadyeye.metrics.detection.iou_thresholds import ious


def outcomes(
    predictions: Predictions, iou: float | str = 0.5, size: str = "all", detections: int = MOST
) -> Statistic:
    """The images that count, for resampling."""
    return statistic(_select_images(predictions, size, detections), ap(ious(iou)))


def _select_images(predictions: Predictions, size: str, detections: int) -> Frames:
    images = frames(predictions, select_counted_rows(predictions))
    return limit_frames(images, size, detections)


@needs("boxes", "detections")
@compare_by(outcomes)
def map(
    predictions: Predictions, iou: float | str = 0.5, size: str = "all", detections: int = MOST
) -> Result:
    """mAP: AP averaged over the classes present, of anchors where samples form pm-sets.

    Interpolated at 101 recalls, at most 100 detections per image and class, crowds ignored: equal
    to COCOeval of pycocotools. `iou`: 0.5 … 0.95, or "coco", the mean over all ten. `size`: of the
    objects that count, "small" (up to 32² square pixels), "medium" (up to 96²) or "large".
    `detections`: the number per image and class that count, the most confident first. Value None
    without objects. Raises `UsageError` for other values. Lin et al., "Microsoft COCO", 2014.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(map(example_detections(), iou="coco"))
        map(iou=coco) 40.6 % (95 % interval 14.6–57.8 %, n = 30)
    """
    images = _select_images(predictions, size, detections)
    parameters = {"iou": iou}
    parameters |= {"size": size} if size != "all" else {}
    parameters |= {"detections": detections} if detections != MOST else {}
    name = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return result(f"map({name})", images, ap(ious(iou)))
