"""The relative performance of a detector under corruption."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.degraded import measure_rpc


@needs("boxes", "detections", "operator", "level", "profile")
def rpc(predictions: Predictions, iou: float | str = "coco") -> Result:
    """rPC: mPC ÷ mAP at level 0; n counts images, and `cells` holds the same of each operator.

    `iou` as in `map`. Michaelis et al. 2019, Equation 2. Value None if mAP is 0 at level 0.

    Example:
        >>> from steadyeye.testing import example_detector_sweep
        >>> print(rpc(example_detector_sweep(), iou=0.5))
        rpc(iou=0.5) 63.1 % (95 % interval 41.9–81.7 %, n = 12)

    """
    return measure_rpc(predictions, iou)
