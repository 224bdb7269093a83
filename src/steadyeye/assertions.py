"""The release gate as an assertion, for tests of a model."""

from collections.abc import Callable, Sequence
from typing import Any

from steadyeye.api import Run, evaluate
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Model, Source
from steadyeye.report.gate import gate, requirements
from steadyeye.report.gate_verdict import HOLDS
from steadyeye.runner.collect import tables


def assert_steady(
    model: str | Model | Callable[..., Any] | Run,
    data: str | Source | Sequence[Any] | None,
    *required: str,
    least: int = 0,
    premise: str | None = None,
    **options: Any,
) -> Run:
    """Asserts that the 95 % interval meets every requirement, and returns the run.

    `model` and `data`: as for `steadyeye.evaluate`, or a finished `Run` and None; in a run of
    several models or data, each is tested.
    `required`: such as "pm_k(k=10) >= 70%" or "flip_rate <= 5%". `least`: the smallest sufficient
    n. `premise`: the premise on sets, for data without labels. `options`: of `evaluate`. Raises
    `AssertionError` with the value, the interval and n for every requirement that is not clearly
    met, also if it is only uncertain, and `UsageError` for every user error.

    Example with a function that predicts a cat for every image:

        >>> import numpy as np
        >>> from steadyeye.testing import example_source
        >>> def see_cats(images):
        ...     return np.tile([0.2, 0.5, 0.3], (len(images), 1))
        >>> run = assert_steady(see_cats, example_source(), "accuracy <= 70%")
        >>> assert_steady(run, None, "accuracy >= 70%")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: accuracy >= 70% does not hold for see_cats on example: 25.0...
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    judged = requirements(required)
    if not judged:
        raise UsageError('no requirement given; give one, such as "pm_k(k=10) >= 70%"')
    run = _find_run(model, data, options)
    cells = [table for _, table in tables([run.folder])]
    verdicts = gate(cells, judged, least=least, premise=premise)
    failures = [verdict.sentence for verdict in verdicts if verdict.outcome != HOLDS]
    if failures:
        raise AssertionError("\n".join(failures))
    return run


def _find_run(model: Any, data: Any, options: dict[str, Any]) -> Run:
    if not isinstance(model, Run):
        if data is None:
            raise UsageError("no data given; give a spec string, a source or data of Python")
        return evaluate(model, data, **options)
    if data is not None or options:
        raise UsageError("a finished run has its data and options; give None, and no options")
    return model
