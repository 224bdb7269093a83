"""Charts of breaks by measured change: a forest plot, quintiles, pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.film_frames import answer_picture, away, list_labels, set_film
from steadyeye.core.format import interval, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Figure, Table
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.metrics.covariates.breakage import Effect, Effects, Outcomes, column
from steadyeye.metrics.covariates.measures import PAIR, Measure
from steadyeye.report.charts.specs import (
    chart,
    colour,
    dot,
    layer,
    lines,
    names_of,
    quantity,
    shares,
)

LIMITS = (1 / 16, 16.0)


def forest(effects: Mapping[str, Effects]) -> Figure:
    """The odds ratio per standard deviation of each measure alone, one colour per model.

    Ends beyond 1/16 and 16 are clipped; the table has them.
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
        for model, of_model in effects.items()
        for effect in of_model.measures
        if effect.alone
    ]
    return Figure(
        name="what_changed",
        caption=(
            "Odds ratio of breaking per standard deviation of each measure alone; 1 means no "
            "relation."
        ),
        alt="Odds ratios with 95 % intervals by measured change and model",
        spec=_spec(values, list(effects)),
    )


def _spec(values: list[dict[str, Any]], models: list[str]) -> dict[str, Any]:
    measures = list(dict.fromkeys(row["measure"] for row in values))
    by_model = colour(models, "model", "model")
    # the axis of names leaves too little room on a phone for two columns
    by_model["legend"] = {**by_model["legend"], "columns": 1}
    shared = {
        "y": names_of("measure", measures, labelLimit=130),
        "yOffset": {"field": "model", "type": "nominal", "sort": models},
        "color": by_model,
    }
    ticks = {"values": [0.1, 0.25, 0.5, 1, 2, 4, 10], "format": "~g"}
    # as far as the intervals reach, symmetric around 1 and at least to 2
    limit = max(2.0, *(row["high"] for row in values), *(1 / row["low"] for row in values))
    scale = {"type": "log", "domain": [1 / limit, limit]}
    x = quantity("odds", "odds ratio of breaking", axis=ticks, scale=scale)
    tooltip = [{"field": name} for name in ("model", "measure", "text")]
    ends = {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    layers = [
        layer("rule", {"x": {**x, "field": "one"}}, [{"one": 1}], strokeDash=[4, 4], color="#888"),
        layer("rule", ends, values, size=2),
        dot({**shared, "x": x, "tooltip": tooltip}, values),
    ]
    return chart(layers, height=max(160, len(measures) * (14 * len(models) + 14)))


QUINTILES = 5


@dataclass(frozen=True)
class Bin:
    """Neighbours of one model between two quintiles: their median measure, and the broken share."""

    model: str
    low: float
    high: float
    middle: float
    share: Interval


def edges(predictions: Predictions, measure: Measure) -> NDArray[np.float64]:
    """The ends of the quintiles over all neighbours, independent of predictions: up to 6."""
    neighbours = np.flatnonzero(predictions.tags["offset"] != 0)
    values = column(predictions, measure, neighbours)
    shares_ = np.arange(QUINTILES + 1) / QUINTILES
    return np.asarray(np.unique(np.quantile(values[np.isfinite(values)], shares_)), np.float64)


def dose(
    predictions: Predictions, outcomes: Outcomes, measure: Measure, ends: NDArray[np.float64]
) -> list[Bin]:
    """The share of broken neighbours between each two ends, if there are any.

    A value on an end belongs to the bin below it, the lowest to the first. Intervals are over
    videos, or over pm-sets if there are few videos.
    """
    values = column(predictions, measure, outcomes.rows)
    bins = []
    for i in range(max(len(ends) - 1, 1)):
        low, high = ends[i], ends[min(i + 1, len(ends) - 1)]
        within = (values > low) & (values <= high)
        within |= (values == low) & (i == 0)
        if within.any():
            middle = float(np.median(values[within]))
            share = proportion(outcomes.broken[within], outcomes.clusters[within])
            bins.append(Bin(predictions.model, float(low), float(high), middle, share))
    return bins


def dose_figure(measure: Measure, bins: Sequence[Bin]) -> Figure:
    """The shares against the median measure of each quintile, one line a model."""
    values = [
        {
            "model": quintile.model,
            "value": measure.scale_value(quintile.middle),
            "share": quintile.share.value,
            "low": quintile.share.low,
            "high": quintile.share.high,
            "n": quintile.share.n,
        }
        for quintile in bins
    ]
    models = list(dict.fromkeys(quintile.model for quintile in bins))
    title = f"{measure.words}, {measure.unit}".rstrip(", ")
    x = quantity("value", title, scale={"zero": False})
    y = shares("share", "broken neighbours")
    channels = lines(models, "model")
    shared = {"x": x, "color": channels["color"]}
    tooltip = [{"field": name} for name in ("model", "value", "share", "low", "high", "n")]
    layers = [
        layer("line", {"x": x, "y": y, **channels}, opacity=0.6),
        layer("rule", {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}),
        dot({**shared, "y": y, "tooltip": tooltip}),
    ]
    spec = chart(layers, height=260, values=values)
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
            quintile.model,
            f"{measure.format_value(quintile.low)} to {measure.format_value(quintile.high)}",
            percent(quintile.share.value),
            interval(quintile.share.low, quintile.share.high),
            f"{quintile.share.n:,}",
        )
        for quintile in bins
    )
    header = ("model", measure.words, "broken", "95 % interval", "n")
    return Table(f"Broken neighbours by quintile of {measure.words}", header, rows)


SHOWN = 3
LINES = ("motion", "linf", "brightness_change", "contrast_change", "sharpness_change")

Judged = tuple[Predictions, Outcomes, Effect]


def pairs(judged: Sequence[Judged]) -> tuple[Exhibit, ...]:
    """Up to three anchors with the frame that broke them, the farthest first.

    `judged`: each model's table, outcomes and effect of the same measure. No two are of one video,
    or of one pm-set if there is only one video; ties go to the earlier model, then row.
    """
    places = []
    for order, (predictions, of, effect) in enumerate(judged):
        values = column(predictions, effect.measure, of.rows) * (1 if effect.rises else -1)
        places += [
            (-float(values[i]), order, int(of.rows[i]), int(of.anchors[i]))
            for i in np.flatnonzero(of.broken & np.isfinite(values))
        ]
    distinct: dict[str, Exhibit] = {}
    for _, order, row, anchor in sorted(places):
        predictions, _, effect = judged[order]
        place = _place(predictions, row)
        if place not in distinct:
            distinct[place] = _exhibit(predictions, effect, anchor, row)
        if len(distinct) == SHOWN:
            break
    return tuple(distinct.values())


def _place(predictions: Predictions, row: int) -> str:
    """The unit that no two pictures may share."""
    videos = predictions.videos
    return str(predictions.groups[row] if len(np.unique(videos)) == 1 else videos[row])


def _exhibit(predictions: Predictions, effect: Effect, anchor: int, row: int) -> Exhibit:
    offset, measure = int(predictions.tags["offset"][row]), effect.measure
    value = float(column(predictions, measure, np.array([row]))[0])
    return Exhibit(
        title=f"{measure.words}: {measure.format_value(value, _sign(measure))}",
        model=predictions.model,
        data=predictions.data,
        pictures=(
            answer_picture(predictions, anchor, "anchor"),
            answer_picture(predictions, row, away(offset), _list_changes(predictions, row)),
        ),
        film=set_film(predictions, anchor, row),
        labels=list_labels(predictions, anchor),
    )


def _list_changes(predictions: Predictions, row: int) -> tuple[str, ...]:
    """The measured changes of a pair, one line each."""
    values = {m: float(predictions.tags[m.name][row]) for m in PAIR if m.name in LINES}
    return tuple(
        f"{measure.words} {measure.format_value(value, _sign(measure))}"
        for measure, value in values.items()
        if np.isfinite(value)
    )


def _sign(measure: Measure) -> str:
    return "+" if measure.signed else ""
