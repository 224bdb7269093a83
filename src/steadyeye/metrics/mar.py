"""Mean average recall."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.outcomes import Statistic, compared
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.detection.average_precision import average_recall
from steadyeye.detection.frames import Measure, counted, frames, result, statistic
from steadyeye.detection.groups import MOST
from steadyeye.detection.matching import Matched


def outcomes(predictions: Predictions, detections: int = MOST) -> Statistic:
    """The images that count, counted anew."""
    return statistic(frames(predictions, counted(predictions)), mean_recall(detections))


def mean_recall(detections: int) -> Measure:
    """The recall of so many detections an image and class, over thresholds and classes."""

    def measure(matched: Matched, weight: NDArray[np.int64] | None) -> float:
        recall = average_recall(matched, detections, weight=weight)
        there = recall[~np.isnan(recall)]
        return float(there.mean()) if there.size else float("nan")

    return measure


@needs("boxes", "detections")
@compared(outcomes)
def mar(predictions: Predictions, detections: int = MOST) -> Result:
    """The share of objects found, over IoU 0.50 … 0.95 and the classes that are there.

    `detections`: how many of each image and class count, the most confident; at most 100. COCO's
    AR. Value None without objects.
    """
    if not 1 <= detections <= MOST:
        raise UsageError(f"detections={detections}: give 1 to {MOST}")
    found = frames(predictions, counted(predictions))
    return result(f"mar(detections={detections})", found, mean_recall(detections))
