"""pm-k mAP and localization against k."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.format import interval, percent
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.lines import draw_bands, draw_crossed, line_colour
from steadyeye.report.charts.style import chart, shares

METRICS = {"pm_k_map": "pm-k mAP", "localization": "localization"}


@needs("boxes", "detections", "group", "offset")
def map_curve(evaluated: Sequence[Evaluated]) -> Section | None:
    """The mAP over the worst frame within ±k, and the same with one class, against k.

    None where no model has either result with a value. Shankar et al., Table 3.
    """
    rows: list[dict[str, Any]] = [
        {
            "model": one.predictions.model,
            "metric": title,
            "k": k,
            "value": cell.value,
            "low": cell.low,
            "high": cell.high,
        }
        for one in evaluated
        for name, title in METRICS.items()
        if (result := find(one.results, name)) and result.value is not None
        for k, cell in enumerate(result.cells)
    ]
    if not rows:
        return None
    models = list(dict.fromkeys(row["model"] for row in rows))
    return Section(
        topic=Topic.WHEN,
        place=9,
        title="mAP on the worst frame within ±k",
        text=(
            "The worst frame is the frame within ±k of the anchor on which the detector does "
            "worst. Distance 0 is the anchor itself. Localization merges all classes into one, "
            "so it counts missed and misplaced objects but no wrong classes. A detection of a "
            "real object without a label counts as a false positive in both.",
        ),
        figures=(_figure(rows, models),),
        tables=(_table(rows, models),),
    )


def _figure(rows: list[dict[str, Any]], models: list[str]) -> Figure:
    x = {
        "field": "k",
        "type": "quantitative",
        "title": "distance k from the anchor (frames)",
        "axis": {"tickMinStep": 1, "format": "d"},
    }
    hue = line_colour(models, "model")
    low, detail = shares("low", "mAP"), {"field": "metric"}
    band = draw_bands(2 * len(models), x=x, y=low, color=hue, detail=detail)
    place = {"x": x, "y": shares("value", "mAP")}
    crossed = draw_crossed(models, "metric", list(METRICS.values()), place)
    return Figure(
        name="map_curve",
        caption="mAP over the worst frames within ±k, with classes and with all classes merged.",
        alt=f"Lines of pm-k mAP and localization by k for {', '.join(models)}.",
        spec={**chart([band, *crossed]), "data": {"values": rows}},
    )


def _table(rows: list[dict[str, Any]], models: list[str]) -> Table:
    told = {
        (row["k"], row["model"], row["metric"]): (
            f"{percent(row['value'])} ({interval(row['low'], row['high'])})"
        )
        for row in rows
    }
    columns = [(model, metric) for model in models for metric in METRICS.values()]
    body = tuple(
        (f"{k}", *(told.get((k, *column), "—") for column in columns))
        for k in sorted({row["k"] for row in rows})
    )
    header = ("k", *(f"{model}: {metric}" for model, metric in columns))
    return Table("mAP over the worst frames, with 95 % intervals", header, body)
