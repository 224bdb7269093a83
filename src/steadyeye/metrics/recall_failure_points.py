"""The levels at which a degraded detector finds fewer of its objects than given shares."""

from collections.abc import Sequence

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.degraded import FOUND
from steadyeye.metrics.detection.failure_levels import THRESHOLDS, find_recall_points


@needs("boxes", "detections", "operator", "level")
def recall_failure_points(
    predictions: Predictions, thresholds: Sequence[float] = THRESHOLDS, score: float = FOUND
) -> Result:
    """The first level of each operator at which less than each share of objects is detected.

    Of the objects found at level 0, as in `degraded_recall`. `thresholds`: shares, 0…1. `score`:
    the lowest score of a detection. `cells` as of `failure_points`. After a search (`--fast`) the
    level equals that of a full sweep if the share never rises again.

    Example:
        >>> from steadyeye.testing import example_detector_sweep
        >>> for operator in recall_failure_points(example_detector_sweep(), (0.9,)).cells:
        ...     print(operator.name, operator.cells[0])
        blur below 0.9 1 (95 % interval 1–1, n = 18)
        noise below 0.9 1 (95 % interval 1–2, n = 18)

    """
    return find_recall_points(predictions, thresholds, score)
