"""Profiles: accuracy, rank and probability by level, for each operator."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.format import format_value, percent, span
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.degradation.curves import MEAN
from steadyeye.report.charts.specs import draw_profiles, list_levels, quantity, shares

QUANTITIES = {
    "degraded_accuracy": "accuracy",
    "degraded_probability": "probability of the true class",
    "degraded_rank": "rank of the true class",
    "mpc": "mAP",
    "degraded_recall": "share of objects still found",
}
HEIGHT = 120  # of a chart, in pixels


@needs("truth", "operator", "level", "profile")
def degradation_profiles(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy, probability and rank, or mAP and recall, by level, one chart per operator.

    None if no model has one of these results. Swingler 2022, Figures 4–6.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_sweep
        >>> print(degradation_profiles(example_models(example_sweep())).title)
        Accuracy, probability and rank by level, for each operator
    """
    models = [model.predictions.model for model in evaluated]
    quantities = {
        name: [result for model in evaluated if (result := find(model.results, name))]
        for name in QUANTITIES
    }
    figures = tuple(
        _figure(name, models, results)
        for name, results in quantities.items()
        if len(results) == len(models) and all(result.value is not None for result in results)
    )
    if not figures:
        return None
    return Section(
        topic=Topic.WHEN,
        place=10,
        title=_name_quantities(figures),
        text=(
            "Level 0 is the original image; each level degrades it more. Bands are 95 % "
            "intervals. The table of all numbers says how many images count."
            + _shorter(next(result for results in quantities.values() for result in results)),
        ),
        figures=figures,
        tables=(_table(models, quantities),),
    )


def _name_quantities(figures: Sequence[Figure]) -> str:
    """The title: the quantities in the charts."""
    if any(figure.name == "mpc" for figure in figures):
        return "mAP and objects still found by level, for each operator"
    return "Accuracy, probability and rank by level, for each operator"


def _shorter(result: Result) -> str:
    """A sentence if some operators have fewer levels than others; otherwise empty."""
    levels = {len(operator.cells) for operator in result.cells if operator.name != MEAN}
    if len(levels) < 2:
        return ""
    return " Some operators have fewer levels; the mean over all operators ends where theirs end."


def _figure(name: str, models: list[str], results: Sequence[Result]) -> Figure:
    title = QUANTITIES[name]
    rows = [
        row
        for model, result in zip(models, results, strict=True)
        for row in list_levels(result, model)
    ]
    operators = dict.fromkeys(row["operator"] for row in rows)
    channels = _channel(name, "value"), _channel(name, "low")
    return Figure(
        name=name,
        caption=f"{title[0].upper()}{title[1:]} by level, with 95 % intervals.",
        alt=f"For each operator, lines of the {title} by level for {', '.join(models)}.",
        spec=draw_profiles(
            rows, models, sorted(operators, key=lambda operator: operator != MEAN), HEIGHT, channels
        ),
    )


def _channel(name: str, field: str) -> Mapping[str, Any]:
    # the whole name is longer than the axis
    title = QUANTITIES[name].removesuffix(" of the true class").removeprefix("share of ")
    if name != "degraded_rank":
        return shares(field, title)
    return quantity(field, title)


def _table(models: list[str], quantities: Mapping[str, Sequence[Result]]) -> Table:
    """The mean over levels of every operator, the quantities of each model side by side."""
    measured = {name: results for name, results in quantities.items() if results}
    columns = [f"{model}: {QUANTITIES[name]}" for model in models for name in measured]
    names = [cell.name for cell in next(iter(measured.values()))[0].cells]
    rows = [
        (
            name,
            describe_kind(name),
            *(_cell(measured[q][i], place) for i in range(len(models)) for q in measured),
        )
        for place, name in enumerate(names)
    ]
    header = ("operator", "kind", *columns)
    return Table("Mean over the levels of each operator", header, tuple(rows))


def describe_kind(operator: str) -> str:
    """How an operator works, `stochastic, local`; empty where it does not say."""
    if not plugins.exists("operators", operator):
        return ""
    return ", ".join(plugins.declaration("operators", operator).kind)


def _cell(result: Result, place: int) -> str:
    if result.value is None:
        return "—"
    cell = result.cells[place]
    value = percent(cell.value) if cell.unit == "share" else format_value(cell.value, cell.unit)
    return f"{value} ({span(cell.low, cell.high, cell.unit)})"
