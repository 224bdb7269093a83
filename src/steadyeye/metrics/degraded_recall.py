"""The objects that a detector still finds under degradation."""

from dataclasses import replace

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.degradation.curves import shares
from steadyeye.metrics.detection.degraded import FOUND, NO_OBJECTS, NONE_FOUND, profile_objects


@needs("boxes", "detections", "operator", "level", "profile")
def degraded_recall(
    predictions: Predictions, objects: str = "found", score: float = FOUND
) -> Result:
    """The share of objects still detected, averaged over the levels and then over the operators.

    Found: a detection of the class with `score` or more and an IoU of 0.5 or more. `objects`:
    "found", those found at level 0, so that it starts from 1; or "all". `cells`: the operators,
    each with its levels from 0. Objects that an operator moves outside the image are ignored at
    that level. n objects; intervals clustered by image, or by video. Value None without objects
    that count.

    Example:
        >>> from steadyeye.testing import example_detector_sweep
        >>> print(degraded_recall(example_detector_sweep()))
        degraded_recall 60.4 % (95 % interval 42.1–72.9 %, n = 18)

    """
    own = profile_objects(predictions, objects, score)
    if own is None:
        why = NONE_FOUND if objects == "found" else NO_OBJECTS
        return Result("degraded_recall", None, None, None, 0, why)
    result = shares("degraded_recall", own.profiles, own.hits)
    return replace(result, notes=own.notes)
