"""Selects a result among those of a cell, and the models that can be compared row by row."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from steadyeye.core.format import WITHIN
from steadyeye.core.types import Evaluated, Result


def find(results: Mapping[str, Result], name: str) -> Result | None:
    """The result of a metric, whatever its parameters (`pm_k` finds `pm_k(k=10)`), or None."""
    for key, result in results.items():
        if key == name or key.startswith(f"{name}("):
            return result
    return None


def read_k(result: Result) -> int:
    """The k of a `pm_k` or `drop` result, in native frames."""
    return int(read_parameter(result, "k") or 0)


def add_parameters(name: str, parameters: Mapping[str, object]) -> str:
    """The name of a result with further parameters, except those that it has.

    Example:
        >>> add_parameters("map_drop(k=3)", {"k": 3, "iou": "coco"})
        'map_drop(k=3, iou=coco)'

    """
    base, _, inner = name.partition("(")
    parts = [inner.removesuffix(")")] if inner else []
    known = {part.partition("=")[0] for part in inner.removesuffix(")").split(", ")}
    parts += [f"{key}={value}" for key, value in parameters.items() if key not in known]
    return f"{base}({', '.join(parts)})" if parts else base


def read_score(result: Result, default: float) -> float:
    """The score threshold of a detector's result; `default` if its name has none."""
    return float(read_parameter(result, "score") or default)


def read_parameter(result: Result, parameter: str) -> str:
    """A parameter in the name of a result, as text; empty if it has none."""
    written = re.search(rf"\b{parameter}=([^,)]+)", result.name)
    return written[1] if written else ""


def among(result: Result) -> str:
    """The number of competing classes of a result, in words; empty without one."""
    return "" if result.classes is None else f"{result.classes:,}"


def limit(method: str) -> str:
    """The limit of an interval, or why there is none, from the name of its method.

    `within this one video only`, `no interval: too few images`; "" without a limit.
    """
    why = re.match(r"none: ([^:;]+)", method)
    if why:
        return f"no interval: {why[1]}"
    return WITHIN if "one video only" in method else ""


def select_same_samples(evaluated: Sequence[Evaluated]) -> list[Evaluated]:
    """The models with the same samples as the first of them, in the same order."""
    first = evaluated[0].predictions
    return [
        candidate
        for candidate in evaluated
        if candidate.predictions.fingerprint == first.fingerprint
        and np.array_equal(candidate.predictions.ids, first.ids)
    ]
