"""Failure points, with published ones for comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from steadyeye.core.format import format_value, percent, span
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.storage.text_files import read_shipped
from steadyeye.core.types import Evaluated, Result, needs

DATA = Path(__file__).resolve().parent / "data" / "published_degradation.csv"

QUANTITIES = {
    "failure_points": "",
    "map_failure_points": ", shares of mAP at level 0",
    "recall_failure_points": ", shares of the objects found at level 0",
}
"""Metric → the quantity of its thresholds, a suffix to the name of the model."""
PUBLISHED = (
    "The last table has published values of other models on other images; its operators are "
    "similar to these, not pixel-identical."
)
SEARCHED = (
    "After a search, the interval contains the failure level that a full sweep over these "
    "images would give; it does not generalise to other images. Pixel changes are not known for "
    "levels without predictions."
)


@needs("truth", "operator", "level")
def failure_levels(evaluated: Sequence[Evaluated]) -> Section | None:
    """The first level with accuracy below each threshold, and how degraded the images are there.

    None if no model has `failure_points`. The published 50 % points of three networks are shown for
    comparison. Swingler 2022, Tables 1–3.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_sweep
        >>> print(failure_levels(example_models(example_sweep())).title)
        Failure points: the level at which accuracy falls below each threshold
    """
    searched = [(model, find(model.results, name)) for model in evaluated for name in QUANTITIES]
    tables = [
        _table(model.predictions.model, result, QUANTITIES[result.name.partition("(")[0]])
        for model, result in searched
        if result and result.cells
    ]
    if not tables:
        return None
    accuracy = any(result and result.name.startswith("failure_points") for _, result in searched)
    return Section(
        topic=Topic.WHEN,
        place=16,
        title=(
            f"Failure points: the level at which {'accuracy' if accuracy else 'a detector'} falls "
            "below each threshold"
        ),
        text=(
            "For each threshold: the first level below it, its 95 % interval, the share of pixels "
            "changed at that level and the mean grey value (0…255)."
            + (f" {PUBLISHED}" if accuracy else ""),
            *([SEARCHED] if any("profile" not in m.predictions.columns for m in evaluated) else []),
        ),
        tables=(*tables, *([_read_published()] if accuracy else [])),
    )


def _table(model: str, result: Result, quantity: str) -> Table:
    thresholds = [cell.name.removeprefix("below ") for cell in result.cells[0].cells]
    header = ["operator"]
    for threshold in thresholds:
        share = percent(float(threshold), 0)
        header += [f"below {share}", "changed", "mean"]
    rows = [
        (operator.name, *(text for point in operator.cells for text in _point(point)))
        for operator in result.cells
    ]
    return Table(f"Failure points of {model}{quantity}", tuple(header), tuple(rows))


def _point(point: Result) -> tuple[str, str, str]:
    if point.value is None:
        low = "" if point.low is None else f" ({span(point.low, None, 'level')})"
        # a search that ends early has not looked at every level
        looked = low and point.interval.startswith("sequential tests")
        return f"not {'found' if looked else 'reached'}{low}", "—", "—"
    level = f"{format_value(point.value, 'level')} ({span(point.low, point.high, 'level')})"
    measured = {cell.name: cell.value for cell in point.cells}
    grey = format_value(measured["mean value"], "grey value")
    return level, percent(measured["pixels changed"]), grey


def _format_published(line: Mapping[str, str]) -> str:
    change, pixels = line["change_at_50_percent_accuracy"], line["pixels_changed_percent"]
    # some operators are measured by the share of pixels alone
    if change.endswith("% of pixels"):
        return f"{pixels}\u202f% of pixels"
    return f"{change} ({pixels}\u202f%)"


def _read_published() -> Table:
    lines = read_shipped(DATA)
    models = list(dict.fromkeys(line["model"] for line in lines))
    levels = {(line["operator"], line["model"]): _format_published(line) for line in lines}
    operators = sorted({line["operator"] for line in lines})
    rows = tuple((o, *(levels.get((o, model), "—") for model in models)) for o in operators)
    caption = "Published failure points at 50 % accuracy: change (share of pixels changed)"
    return Table(f"{caption}, Swingler 2022", ("operator", *models), rows)
