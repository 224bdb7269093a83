"""Accuracy and pm-k class by class."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from steadyeye.charts.style import PALETTE, SCHEMA, interval, percent, shares
from steadyeye.core.intervals import Interval, proportion
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.results import find, reach
from steadyeye.core.sections import Figure, Section, Table
from steadyeye.core.types import Evaluated, needs

MEASURES = ("accuracy", "pm-k")


@dataclass(frozen=True)
class _Class:
    model: str
    name: str
    original: Interval
    perturbed: Interval

    @property
    def drop(self) -> float:
        return (self.original.value or 0.0) - (self.perturbed.value or 0.0)


@needs("truth", "group", "offset")
def per_class(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy and pm-k of each class, over the anchors that carry it, and the median drop.

    An anchor with several labels counts for each. None on data without anchors. Shankar et al.,
    Figure 7.
    """
    rows = [row for one in evaluated for row in _classes(one)]
    if not rows:
        return None
    models = list(dict.fromkeys(row.model for row in rows))
    drops = {m: median(row.drop for row in rows if row.model == m) for m in models}
    said = "; ".join(f"{model} {percent(drop)}" for model, drop in drops.items())
    return Section(
        place=40,
        title="Class by class",
        text=(
            f"The median class loses between accuracy and pm-k: {said}. "
            "An anchor that carries several classes counts for each of them.",
        ),
        figures=(_figure(rows, models),),
        tables=(_table(rows),),
    )


def _classes(one: Evaluated) -> list[_Class]:
    sets = pm_sets(one.predictions)
    asked = find(one.results, "pm_k")
    k = farthest(sets, reach(asked) if asked else None)
    truth = one.predictions.truth[sets.anchors]
    return [
        _Class(
            one.predictions.model,
            name,
            proportion(sets.breaks_at[carried] > 0, sets.videos[carried]),
            proportion(sets.breaks_at[carried] > k, sets.videos[carried]),
        )
        for name, carried in zip(one.predictions.classes, truth.T, strict=True)
        if carried.any()
    ]


def _figure(rows: Sequence[_Class], models: Sequence[str]) -> Figure:
    values: list[dict[str, Any]] = [
        {
            "model": row.model,
            "class": row.name,
            "measure": measure,
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "n": found.n,
        }
        for row in rows
        for measure, found in zip(MEASURES, (row.original, row.perturbed), strict=True)
    ]
    y = {"field": "class", "type": "nominal", "title": None, "axis": {"labelLimit": 160}}
    offset = {"field": "measure", "sort": list(MEASURES)}
    legend = {"title": None, "orient": "bottom"}
    scale = {"domain": list(MEASURES), "range": [PALETTE[5], PALETTE[0]]}
    hue = {"field": "measure", "type": "nominal", "scale": scale, "legend": legend}
    bars = {
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "y": y,
            "yOffset": offset,
            "x": shares("value", "share of anchors"),
            "color": hue,
        },
    }
    whiskers = {
        "mark": {"type": "rule"},
        "encoding": {
            "y": y,
            "yOffset": offset,
            "x": shares("low", "share of anchors"),
            "x2": {"field": "high"},
        },
    }
    facet = {"field": "model", "type": "nominal", "title": None, "sort": list(models)}
    return Figure(
        name="per_class",
        caption="Accuracy and pm-k of each class with 95 % intervals.",
        alt=f"Bars of accuracy and pm-k for each class and {', '.join(models)}; see the table.",
        spec={
            "$schema": SCHEMA,
            "data": {"values": values},
            "facet": facet,
            "columns": min(len(models), 3),
            "spec": {"width": 190, "height": {"step": 13}, "layer": [bars, whiskers]},
        },
    )


def _table(rows: Sequence[_Class]) -> Table:
    header = ("class", "model", "anchors", "accuracy", "pm-k", "drop")
    body = tuple(
        (
            row.name,
            row.model,
            f"{row.original.n:,}",
            f"{percent(row.original.value)} ({interval(row.original.low, row.original.high)})",
            f"{percent(row.perturbed.value)} ({interval(row.perturbed.low, row.perturbed.high)})",
            percent(row.drop),
        )
        for row in sorted(rows, key=lambda row: (-row.drop, row.name, row.model))
    )
    return Table("Classes, the largest drop first", header, body)
