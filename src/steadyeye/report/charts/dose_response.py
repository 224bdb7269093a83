"""How the share of broken neighbours rises with a measure, by its quintiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import interval, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Table
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.metrics.covariates.breakage import Outcomes, column
from steadyeye.metrics.covariates.measures import Measure
from steadyeye.report.charts.lines import lines
from steadyeye.report.charts.style import chart, shares

QUINTILES = 5


@dataclass(frozen=True)
class Bin:
    """Neighbours of one model between two quintiles: their median measure, and what broke."""

    model: str
    low: float
    high: float
    middle: float
    share: Interval


def edges(predictions: Predictions, measure: Measure) -> NDArray[np.float64]:
    """The ends of the quintiles over all neighbours, whatever any model says of them: up to 6."""
    neighbours = np.flatnonzero(predictions.tags["offset"] != 0)
    values = column(predictions, measure, neighbours)
    shares_ = np.arange(QUINTILES + 1) / QUINTILES
    return np.asarray(np.unique(np.quantile(values[np.isfinite(values)], shares_)), np.float64)


def dose(
    predictions: Predictions, found: Outcomes, measure: Measure, ends: NDArray[np.float64]
) -> list[Bin]:
    """The share of broken neighbours between each two ends, where there are any.

    A value on an end belongs to the bin below it, the lowest to the first. Intervals are over
    videos, or over pm-sets where there are few videos.
    """
    values = column(predictions, measure, found.rows)
    bins = []
    for i in range(max(len(ends) - 1, 1)):
        low, high = ends[i], ends[min(i + 1, len(ends) - 1)]
        within = (values > low) & (values <= high)
        within |= (values == low) & (i == 0)
        if within.any():
            middle = float(np.median(values[within]))
            share = proportion(found.broken[within], found.clusters[within])
            bins.append(Bin(predictions.model, float(low), float(high), middle, share))
    return bins


def dose_figure(measure: Measure, bins: Sequence[Bin]) -> Figure:
    """The shares against the median measure of each quintile, one line a model."""
    values = [
        {
            "model": each.model,
            "value": measure.scale_value(each.middle),
            "share": each.share.value,
            "low": each.share.low,
            "high": each.share.high,
            "n": each.share.n,
        }
        for each in bins
    ]
    models = list(dict.fromkeys(each.model for each in bins))
    title = f"{measure.words}, {measure.unit}".rstrip(", ")
    x = {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": False}}
    y = shares("share", "broken neighbours")
    channels = lines(models, "model")
    shared = {"x": x, "color": channels["color"]}
    tooltip = [{"field": name} for name in ("model", "value", "share", "low", "high", "n")]
    layers = [
        {"mark": {"type": "line", "opacity": 0.6}, "encoding": {"x": x, "y": y, **channels}},
        {
            "mark": {"type": "rule"},
            "encoding": {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {**shared, "y": y, "tooltip": tooltip},
        },
    ]
    spec = {**chart(layers, height=260), "data": {"values": values}}
    return Figure(
        name="what_changed_dose",
        caption=f"Share of wrong neighbours of right anchors, by quintile of {measure.words}.",
        alt=f"Share of broken neighbours by {measure.words}, with 95 % intervals",
        spec=spec,
    )


def dose_table(measure: Measure, bins: Sequence[Bin]) -> Table:
    """The shares by model and quintile."""
    rows = tuple(
        (
            each.model,
            f"{measure.format_value(each.low)} to {measure.format_value(each.high)}",
            percent(each.share.value),
            interval(each.share.low, each.share.high),
            f"{each.share.n:,}",
        )
        for each in bins
    )
    header = ("model", measure.words, "broken", "95 % interval", "n")
    return Table(f"Broken neighbours by quintile of {measure.words}", header, rows)
