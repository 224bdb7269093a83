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
    def measure(predictions: Predictions, *arguments: object, **parameters: object) -> Result:
        result = metric(predictions, *arguments, **parameters)
        if predictions.competing < 2:
            return _without_value(result, ONE)
        return replace(result, classes=predictions.competing)

    return measure


def among_own(metric: Callable[..., Result]) -> Callable[..., Result]:
    """A metric of the model's own answers that says how many classes the model has.

    It has no value where that is one, but of a detector, which may also find nothing.
    """

    @wraps(metric)
    def measure(predictions: Predictions, *arguments: object, **parameters: object) -> Result:
        result = metric(predictions, *arguments, **parameters)
        found_boxes = predictions.detections is not None or predictions.raw_detections is not None
        if len(predictions.model_classes) < 2 and not found_boxes:
            return _without_value(result, ONE_OWN)
        return replace(result, classes=len(predictions.model_classes))

    return measure


def _without_value(result: Result, why: str) -> Result:
    return replace(result, value=None, low=None, high=None, n=0, interval=why, cells=(), classes=1)
