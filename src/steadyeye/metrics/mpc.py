"""The mean performance of a detector under corruption: mAP averaged over levels and operators."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.degraded import measure_mpc


@needs("boxes", "detections", "operator", "level", "profile")
def mpc(predictions: Predictions, iou: float | str = "coco") -> Result:
    """The mAP of degraded images, averaged over levels from 1 on and then over operators, 0…1.

    `iou` as in `map`. `cells`: the operators, each with its levels from 0. Intervals are those of
    `map`, over images, or over videos if these have several images. Michaelis et al., "Benchmarking
    Robustness in Object Detection", 2019, Equation 1. Value None without objects.

    Example:
        >>> from steadyeye.testing import example_detector_sweep
        >>> print(mpc(example_detector_sweep(), iou=0.5))
        mpc(iou=0.5) 63.1 % (95 % interval 31.0–81.1 %, n = 12)

    """
    return measure_mpc(predictions, iou)
