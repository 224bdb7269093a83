"""Among how many classes an answer was chosen: what stands beside every number about answers."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from steadyeye.core.table import Predictions
from steadyeye.core.types import Result

ONE = "none: only one class competes, so that every answer is right"


def among_competing(metric: Callable[..., Result]) -> Callable[..., Result]:
    """A metric of right answers that says how many classes compete, with no value where one does.

    With one class every answer is right, whatever the model.
    """

    @wraps(metric)
    def counted(predictions: Predictions, *given: object, **parameters: object) -> Result:
        found = metric(predictions, *given, **parameters)
        if predictions.competing < 2:
            return _without_value(found)
        return replace(found, classes=predictions.competing)

    return counted


def among_own(metric: Callable[..., Result]) -> Callable[..., Result]:
    """A metric of the model's own answers that says how many classes the model has."""

    @wraps(metric)
    def counted(predictions: Predictions, *given: object, **parameters: object) -> Result:
        found = metric(predictions, *given, **parameters)
        return replace(found, classes=len(predictions.model_classes))

    return counted


def _without_value(found: Result) -> Result:
    return replace(found, value=None, low=None, high=None, n=0, interval=ONE, cells=(), classes=1)
