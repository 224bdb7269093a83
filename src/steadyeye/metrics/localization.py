"""How well objects are found, whatever they are called."""

from functools import partial

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.worst_frames import worst_frames, worst_statistic


@needs("boxes", "detections", "group", "offset")
@compare_by(partial(worst_statistic, one_class=True))
def localization(predictions: Predictions, k: int | None = None, iou: float | str = 0.5) -> Result:
    """pm-k mAP with all classes merged into one, so that only the position counts.

    `cells`: k = 0, the anchors alone, 1 … k. `k`, `iou` and the rest as in `pm_k_map`. Shankar et
    al., Section 4.2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(localization(example_detections(), k=1))
        localization(k=1) 100.0 % (95 % interval 78.2–100.0 %, n = 30)
    """
    return worst_frames("localization", predictions, k, iou, one_class=True)
