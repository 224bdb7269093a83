"""Metrics as methods of a run: their arguments are checked like those of the command line."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec
from steadyeye.core.types import Result
from steadyeye.runner.validate import check_fits


def bind_metric(name: str, table: Callable[[], Predictions]) -> Callable[..., Result]:
    """The metric of a name over predictions, with its own parameters and docstring.

    `table`: gives the predictions when it is called. The function raises `UsageError` for arguments
    that the metric does not take, and for predictions that it does not apply to.
    """
    metric = plugins.load("metrics", name)
    signature = inspect.signature(metric)
    _, *others = signature.parameters.values()

    @wraps(metric)
    def call(*arguments: Any, **parameters: Any) -> Result:
        spec = name_arguments(name, [other.name for other in others], arguments, parameters)
        predictions = table()
        check_fits(spec, predictions, "run.results() gives all that do")
        result: Result = metric(predictions, **spec.kwargs)
        return result

    call.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
    return call


def name_arguments(
    metric: str, names: Sequence[str], arguments: Sequence[Any], parameters: Mapping[str, Any]
) -> Spec:
    """A call of a metric as its spec. Raises `UsageError` for too many arguments.

    `names`: of its parameters, in the order of `arguments`. A number out of an array is a number.
    """
    if len(arguments) > len(names):
        raise UsageError(
            f"{metric} takes {number_of(len(names), 'argument')} ({', '.join(names) or 'none'}), "
            f"not {len(arguments)}; leave out the surplus"
        )
    by_place = dict(zip(names, arguments, strict=False))
    if twice := by_place.keys() & parameters.keys():
        raise UsageError(f"{metric}: '{min(twice)}' is given twice; give it once")
    values = {**by_place, **parameters}
    plain = {key: v.item() if isinstance(v, np.generic) else v for key, v in values.items()}
    return Spec(metric, plain)
