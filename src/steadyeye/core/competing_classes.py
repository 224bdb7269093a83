"""Among how many classes an answer was chosen: what stands beside every number about answers."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result

ONE = "none: only one class competes, so every prediction is right"
ONE_OWN = "none: the model has only one class, so its prediction cannot change"


def among_competing(metric: Callable[..., Result]) -> Callable[..., Result]:
    """A metric of right answers that says how many classes compete, with no value where one does.

    With one class every answer is right, whatever the model.
    """

    @wraps(metric)
    def measure_among_competing(
        predictions: Predictions, *given: object, **parameters: object
    ) -> Result:
        found = metric(predictions, *given, **parameters)
        if predictions.competing < 2:
            return _without_value(found, ONE)
        return replace(found, classes=predictions.competing)

    return measure_among_competing


def among_own(metric: Callable[..., Result]) -> Callable[..., Result]:
    """A metric of the model's own answers that says how many classes the model has.

    It has no value where that is one, but of a detector, which may also find nothing.
    """

    @wraps(metric)
    def measure_among_own(predictions: Predictions, *given: object, **parameters: object) -> Result:
        found = metric(predictions, *given, **parameters)
        found_boxes = predictions.detections is not None or predictions.raw_detections is not None
        if len(predictions.model_classes) < 2 and not found_boxes:
            return _without_value(found, ONE_OWN)
        return replace(found, classes=len(predictions.model_classes))

    return measure_among_own


def _without_value(found: Result, why: str) -> Result:
    return replace(found, value=None, low=None, high=None, n=0, interval=why, cells=(), classes=1)
