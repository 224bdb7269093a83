"""Accuracy by operator and level, as a heat map."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.format import format_share, number_of
from steadyeye.core.report_types import Figure, Section, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.curves import format_operator_name, harm, operators
from steadyeye.report.charts.specs import SCHEMA

CELL = 15


@needs("truth", "operator", "level", "profile")
def degradation_map(evaluated: Sequence[Evaluated]) -> Section | None:
    """One heat map of accuracy per model, with the operators in the order of their cost.

    None where no model has `degraded_accuracy`.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_sweep
        >>> print(degradation_map(example_models(example_sweep())).title)
        Accuracy by operator and level
    """
    accuracies = [(model, find(model.results, "degraded_accuracy")) for model in evaluated]
    rows: list[dict[str, Any]] = [
        {
            "model": model.predictions.model,
            "operator": operator.name,
            "level": int(cell.name.removeprefix("level ")),
            "accuracy": None if cell.value is None else round(cell.value, 4),
            "mean": None if operator.value is None else round(operator.value, 4),
        }
        for model, result in accuracies
        if result
        for operator in operators(result)
        for cell in operator.cells
    ]
    if not rows:
        return None
    maps = [_sentence(model, result) for model, result in accuracies if result and result.cells]
    return Section(
        topic=Topic.WHAT,
        place=14,
        title="Accuracy by operator and level",
        text=(
            "Dark is high accuracy, light is low; where there is no cell, the operator has no such "
            "level. The operators with the lowest mean accuracy come first.",
            *maps,
        ),
        figures=(_figure(rows),),
    )


def _sentence(model: Evaluated, result: Result) -> str:
    """The operators with the lowest and the highest accuracy, and whether they are clearly so."""
    damage = harm(model.predictions, result)
    if damage.next is None:
        share = format_share(damage.worst)
        return f"{model.predictions.model}: {share} stay right, averaged over levels."
    return (
        f"{model.predictions.model}, on {number_of(result.n, 'image')}: lowest mean accuracy under "
        f"{format_operator_name(damage.worst.name)}, {format_share(damage.worst)}{damage.doubt}; "
        f"highest under {format_operator_name(damage.least.name)}, {format_share(damage.least)}."
    )


def _figure(rows: list[dict[str, Any]]) -> Figure:
    levels = len({row["level"] for row in rows})
    encoding = {
        "x": {"field": "level", "type": "ordinal", "title": "level", "axis": {"labelAngle": 0}},
        "y": {
            "field": "operator",
            "type": "nominal",
            "title": "",
            "sort": {"field": "mean", "op": "mean", "order": "ascending"},
        },
        "color": {
            "field": "accuracy",
            "type": "quantitative",
            "scale": {"scheme": "viridis", "domain": [0, 1], "reverse": True},
            "legend": {"title": "accuracy", "format": ".0%", "orient": "bottom"},
        },
        "tooltip": [
            {"field": "operator"},
            {"field": "level"},
            {"field": "accuracy", "format": ".1%"},
        ],
    }
    spec = {
        "$schema": SCHEMA,
        "data": {"values": rows},
        "facet": {"field": "model", "type": "nominal", "title": ""},
        "columns": 1,
        "spec": {
            "width": levels * CELL * 1.3,
            "height": {"step": CELL},
            "mark": "rect",
            "encoding": encoding,
        },
    }
    return Figure(
        name="degradation_map",
        caption="Accuracy by operator and level.",
        alt="Heat maps of accuracy: operators as rows, levels as columns.",
        spec=spec,
    )
