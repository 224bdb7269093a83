"""How well objects are found, whatever they are called."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.worst_frames import worst_frames, worst_statistic


def outcomes(predictions: Predictions, k: int | None = None, iou: float | str = 0.5) -> Statistic:
    """The worst frames of a model, for resampling."""
    return worst_statistic(predictions, k, iou, one_class=True)


@needs("boxes", "detections", "group", "offset")
@compare_by(outcomes)
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
