"""A forest plot: odds ratios of breaking with their intervals, by measure and model."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.report_types import Figure
from steadyeye.metrics.covariates.breakage import Effects
from steadyeye.report.charts.style import chart, colour

LIMITS = (1 / 16, 16.0)


def forest(found: Mapping[str, Effects]) -> Figure:
    """The odds ratios a standard deviation of each measure alone, one colour a model.

    Ends beyond 1/16 and 16 are cut there; the table has them.
    """
    values = [
        {
            "measure": effect.measure.words,
            "model": model,
            "odds": min(max(effect.alone.ratio, LIMITS[0]), LIMITS[1]),
            "low": max(effect.alone.low, LIMITS[0]),
            "high": min(effect.alone.high, LIMITS[1]),
            "text": effect.alone.text(),
        }
        for model, each in found.items()
        for effect in each.each
        if effect.alone
    ]
    return Figure(
        name="what_changed",
        caption=(
            "Odds ratio of breaking per standard deviation of each measure alone; 1 means no "
            "relation."
        ),
        alt="Odds ratios with 95 % intervals by measured change and model",
        spec=_spec(values, list(found)),
    )


def _spec(values: list[dict[str, Any]], models: list[str]) -> dict[str, Any]:
    measures = list(dict.fromkeys(row["measure"] for row in values))
    y = {
        "field": "measure",
        "type": "nominal",
        "sort": measures,
        "title": None,
        "axis": {"labelLimit": 130},
    }
    by_model = colour(models, "model", "model")
    # the axis of names leaves too little room on a phone for two columns
    by_model["legend"] = {**by_model["legend"], "columns": 1}
    shared = {
        "y": y,
        "yOffset": {"field": "model", "type": "nominal", "sort": models},
        "color": by_model,
    }
    ticks = {"values": [0.1, 0.25, 0.5, 1, 2, 4, 10], "format": "~g"}
    x = {
        "field": "odds",
        "type": "quantitative",
        "title": "odds ratio of breaking",
        "axis": ticks,
        "scale": {"type": "log", "domain": _domain(values)},
    }
    tooltip = [{"field": name} for name in ("model", "measure", "text")]
    ends = {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    layers = [
        {
            "data": {"values": [{"one": 1}]},
            "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#888"},
            "encoding": {"x": {**x, "field": "one"}},
        },
        {"data": {"values": values}, "mark": {"type": "rule", "size": 2}, "encoding": ends},
        {
            "data": {"values": values},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {**shared, "x": x, "tooltip": tooltip},
        },
    ]
    return chart(layers, height=max(160, len(measures) * (14 * len(models) + 14)))


def _domain(values: list[dict[str, Any]]) -> list[float]:
    """As far out as the intervals reach, the same to both sides of 1 and at least to 2."""
    reach = max(2.0, *(row["high"] for row in values), *(1 / row["low"] for row in values))
    return [1 / reach, reach]
