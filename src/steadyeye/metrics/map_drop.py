"""The drop from mAP to pm-k mAP."""

from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.worst_frames import drop_statistic, name_with_iou


@needs("boxes", "detections", "group", "offset")
@compare_by(drop_statistic, lower=True)
def map_drop(predictions: Predictions, k: int | None = None, iou: float | str = 0.5) -> Result:
    """The mAP of the anchors minus that of the worst frames within ±k of them.

    `k` and `iou` as in `pm_k_map`. The interval is that of the difference, with each video left out
    of both; the worst frames have another mix of objects, so that a drop may be below 0. Value None
    without objects. Shankar et al., Section 4.2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(map_drop(example_detections(), k=1))
        map_drop(k=1) 6.6 pp (95 % interval −7.5 to +18.7 pp, n = 30)
    """
    name = name_with_iou("map_drop", farthest(pm_sets(predictions, labels=False), k), iou)
    return Result.of(name, drop_statistic(predictions, k, iou).interval())
