"""The levels at which the mAP of a degraded detector falls below shares of that at level 0."""

from collections.abc import Sequence

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.failure_levels import THRESHOLDS, find_map_points


@needs("boxes", "detections", "operator", "level")
def map_failure_points(
    predictions: Predictions,
    thresholds: Sequence[float] = THRESHOLDS,
    iou: float | str = "coco",
) -> Result:
    """The first level of each operator with mAP below each share of mAP at level 0.

    `thresholds`: shares, 0…1. `iou` as in `map`. `cells` as of `failure_points`. After a search
    (`--fast`) the level equals that of a full sweep if mAP never rises again.

    Example:
        >>> from steadyeye.testing import example_detector_sweep
        >>> for operator in map_failure_points(example_detector_sweep(), (0.9,), iou=0.5).cells:
        ...     print(operator.name, operator.cells[0])
        blur below 0.9 1 (95 % interval 1–3, n = 12)
        noise below 0.9 1 (95 % interval 1–3, n = 12)

    """
    return find_map_points(predictions, thresholds, iou)
