"""The number of classes among which a prediction was chosen, for every metric of predictions."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result

ONE = "none: only one class competes, so every prediction is right"
ONE_OWN = "none: the model has only one class, so its prediction cannot change"


def among_competing(metric: Callable[..., Result]) -> Callable[..., Result]:
    """Decorates a metric of right predictions with the number of competing classes.

    With one class it has no value, because every prediction is right.
    """

    @wraps(metric)
    def measure(predictions: Predictions, *arguments: object, **parameters: object) -> Result:
        result = metric(predictions, *arguments, **parameters)
        if predictions.competing < 2:
            return _without_value(result, ONE)
        return replace(result, classes=predictions.competing)

    return measure


def among_own(metric: Callable[..., Result]) -> Callable[..., Result]:
    """Decorates a metric of the model's own predictions: adds the model's number of classes.

    It has no value with one class, except for a detector, which may also detect nothing.
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
