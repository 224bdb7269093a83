"""mAP over the worst frame of each pm-set."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.worst_frames import worst_frames, worst_statistic


@needs("boxes", "detections", "group", "offset")
@compare_by(worst_statistic)
def pm_k_map(predictions: Predictions, k: int | None = None, iou: float | str = 0.5) -> Result:
    """The mAP of the worst frames: of each anchor, the frame of lowest frame AP within ±k.

    `k`: native frames, by default the largest in the data. `iou` as in `map`; the worst frame is
    chosen at 0.5 or, with another threshold, at that. Frames without objects are no candidates.
    `cells`: k = 0, 1 … Value None without objects. Shankar et al., Section 4.2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(pm_k_map(example_detections(), k=1))
        pm_k_map(k=1) 86.1 % (95 % interval 63.7–96.1 %, n = 30)
    """
    return worst_frames("pm_k_map", predictions, k, iou)
