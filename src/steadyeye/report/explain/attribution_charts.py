"""Figure and pictures of attributions: mistakes beside the control, and maps over pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Exhibit, Figure, Heat, Mark, Picture
from steadyeye.explain.attributions import CONTROL, Attribution, InsideShares, groups
from steadyeye.explain.effects import mean
from steadyeye.report.charts.style import GREY, PALETTE, chart, shares

KINDS = ("confident mistake", "correct detection")
LINES = ("uniform map", "box only")
PICKED = ((True, 3), (False, 2))
"""Of mistakes and of the control, how many with the least and with the most inside are shown."""


def figure(one: InsideShares, name: str, way: str) -> Figure:
    """The share of every target, by cause, with means and areas. Lau et al. 2021, Figure 7."""
    effects = one.effects
    drawn = groups(effects)
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for place, which in drawn:
        inside = mean(effects, which)
        if inside.value is None:
            continue
        said = {"group": place, "kind": KINDS[place == CONTROL]}
        dots += [{**said, "share": round(float(v), 4)} for v in effects.change[which]]
        for what, values in zip(LINES, (one.area, one.even), strict=True):
            marks.append(
                {"group": place, "what": what, "share": mean(effects, which, values).value}
            )
        ends = {} if inside.low is None else {"low": inside.low, "high": inside.high}
        means.append({**said, "value": inside.value, "n": inside.n, **ends})
    return Figure(
        name,
        f"{one.model}, {way}: each stroke is one detection, dots with lines are means with 95 % "
        "intervals. Open diamond: mean for a uniform map, the area of the box. Open square: "
        "mean for a detection that depends evenly on its box and on nothing else.",
        "Share of attribution inside the box by cause, for "
        f"{number_of(len(effects.change), 'detection')} of "
        f"{one.model}: " + "; ".join(f"{row['group']} {percent(row['value'])}" for row in means),
        _spec([place for place, _ in drawn], dots, means, marks),
    )


def _spec(
    names: Sequence[str],
    dots: list[dict[str, Any]],
    means: list[dict[str, Any]],
    marks: list[dict[str, Any]],
) -> dict[str, Any]:
    axis = {"labelLimit": 130, "labelPadding": 6}
    y = {"field": "group", "type": "nominal", "sort": list(names), "title": None, "axis": axis}
    legend = {"title": None, "columns": 1, "labelLimit": 320, "symbolOpacity": 1}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(KINDS), "range": [PALETTE[1], PALETTE[0]]},
        "legend": {**legend, "orient": "top"},
    }
    shape = {
        "field": "what",
        "type": "nominal",
        "scale": {"domain": list(LINES), "range": ["diamond", "square"]},
        "legend": {**legend, "orient": "bottom", "symbolStrokeColor": GREY, "symbolStrokeWidth": 2},
    }

    def layer(rows: list[dict[str, Any]], mark: dict[str, Any], field: str, **more: Any) -> Any:
        x = shares(field, "share of attribution inside the box")
        return {"data": {"values": rows}, "mark": mark, "encoding": {"y": y, "x": x, **more}}

    ends = [row for row in means if "low" in row]
    tip = [{"field": "group"}, {"field": "value", "format": ".1%"}, {"field": "n"}]
    stroke = {"type": "tick", "thickness": 1.5, "opacity": 0.55, "bandSize": 18}
    dot = {"type": "point", "filled": True, "size": 70, "opacity": 1}
    layers = [
        layer(dots, stroke, "share", color=colour),
        layer(ends, {"type": "rule", "strokeWidth": 2}, "low", x2={"field": "high"}, color=colour),
        layer(means, dot, "value", color=colour, tooltip=tip),
        layer(
            marks,
            {"type": "point", "size": 90, "strokeWidth": 2, "stroke": GREY, "opacity": 1},
            "share",
            shape=shape,
            tooltip=[{"field": "what"}, {"field": "share", "format": ".1%"}],
        ),
    ]
    return chart(layers, height=38 * len(names) + 10)


def exhibits(one: InsideShares) -> tuple[Exhibit, ...]:
    """Those with the least and the most inside, mistakes then control, each beside its map."""
    picked: list[int] = []
    for mistake, most in PICKED:
        of = one.effects.mistake == mistake
        order = np.flatnonzero(of)[np.argsort(one.effects.change[of], kind="stable")].tolist()
        picked += dict.fromkeys([*order[:most], *order[::-1][:most]])
    return tuple(_exhibit(one, one.found[which]) for which in picked)


def _exhibit(one: InsideShares, found: Attribution) -> Exhibit:
    predictions, row = one.predictions, found.row
    tags = predictions.tags
    name = predictions.model_classes[int(tags["own_label"][row])]
    box = tuple(float(tags[corner][row]) for corner in ("x0", "y0", "x1", "y1"))
    kind = "wrong" if found.cause else "right"
    said = f"{name} {float(tags['score'][row]):.2f}"
    heat = _heat(found.map)
    sample = str(predictions.ids[row])
    inside = f"{percent(found.share, 0)} inside the box"
    return Exhibit(
        title=f"{name}, {found.cause or 'correct'}: {inside}",
        model=one.model,
        data=predictions.data,
        pictures=(
            Picture(sample, "detection", (said,), None, (Mark(kind, box, said),)),
            Picture(
                sample,
                "attribution",
                (inside, f"the box covers {percent(found.area)} of the image"),
                None,
                # white, because red is lost in the colours of a map
                (Mark("truth", box, ""),),
                heat,
            ),
        ),
    )


def _heat(values: NDArray[np.float64]) -> Heat:
    """|values| against the largest hundredth of them: a single cell cannot hide the rest."""
    size = np.abs(values)
    most = float(np.quantile(size, 0.99)) or float(size.max()) or 1.0
    rows = np.round(np.clip(size / most, 0, 1), 3).tolist()
    return Heat(tuple(tuple(row) for row in rows))
