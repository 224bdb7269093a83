"""The chart of a video along time: answers as coloured bands, confidence below them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyeye.core.format import clock, number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure
from steadyeye.report.charts.style import chart, colour
from steadyeye.report.charts.timeline_strips import Strip, strip

CLASSES = 6  # as many as the palette has colours beside grey
OTHER = "other"
ROW = 96  # pixels of a model: its name, its answers, its confidence
SECONDS = "format(datum.value % 60, datum.value % 1 ? '04.1f' : '02d')"
AXIS = {
    "labelExpr": f"floor(datum.value / 60) + ':' + {SECONDS}",
    "grid": False,
    "labelOverlap": True,
    "labelFlush": True,
    "tickCount": 6,
}
X = {"type": "quantitative", "title": None, "axis": AXIS}


def bands(tables: Sequence[Predictions], video: str, number: int) -> Figure:
    """The figure of one video, a row a model; `number`: of how many figures it is, from 0.

    The six answers given for the longest have colours of their own, the others are grey.
    """
    strips = [strip(predictions, video) for predictions in tables]
    named = _choose_answers(tables, strips)
    layers = [_answers(tables, strips, named), *_confidence(strips), _cuts(tables, video)]
    layers.append(_names(tables))
    frames = max(each.frames for each in strips)
    coarse = (
        f" Each step is the most frequent prediction in {number_of(frames, 'frame')}."
        if frames > 1
        else ""
    )
    return Figure(
        name=f"timeline_{number + 1}",
        caption=f"{video}: predictions and confidence over time (minutes:seconds).{coarse}",
        alt=f"Runs of equal predictions in {video} for {', '.join(p.model for p in tables)}; "
        "the table has the numbers.",
        spec=chart(layers, height=ROW * len(tables)),
    )


def _choose_answers(tables: Sequence[Predictions], strips: Sequence[Strip]) -> list[str]:
    """The answers that have a colour of their own: those given for the longest."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for predictions, each in zip(tables, strips, strict=True):
        for stretch in each.stretches:
            seconds[_name(predictions, stretch.answer)] += stretch.stop - stretch.start
    return [name for name, _ in sorted(seconds.items(), key=lambda s: (-s[1], s[0]))[:CLASSES]]


def _name(predictions: Predictions, answer: int) -> str:
    return predictions.own_name(answer)


def _y(field: str, models: int) -> dict[str, Any]:
    scale = {"domain": [0, models], "reverse": True, "nice": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def _answers(
    tables: Sequence[Predictions], strips: Sequence[Strip], named: list[str]
) -> dict[str, Any]:
    rows = []
    for i, (predictions, each) in enumerate(zip(tables, strips, strict=True)):
        for stretch in each.stretches:
            name = _name(predictions, stretch.answer)
            shown = {"shown": name if name in named else OTHER, "answer": name}
            when = {"from": round(stretch.start, 3), "to": round(stretch.stop, 3)}
            clocks = {"starts": clock(stretch.start), "model": predictions.model}
            rows.append({**shown, **when, **clocks, "top": i + 0.22, "bottom": i + 0.52})
    colours = colour([*named, *([""] * (CLASSES - len(named))), OTHER], "shown", "")
    # blanks hold the place of missing classes, so that grey stays the colour of the others
    there = [*named, *([OTHER] if any(row["shown"] == OTHER for row in rows) else [])]
    colours["legend"] = {**colours["legend"], "values": there}
    return {
        "data": {"values": rows},
        "mark": {"type": "rect", "tooltip": True},
        "encoding": {
            "x": {**X, "field": "from"},
            "x2": {"field": "to"},
            "y": _y("top", len(tables)),
            "y2": {"field": "bottom"},
            "color": colours,
            "tooltip": [{"field": key, "type": "nominal"} for key in ("answer", "starts", "model")],
        },
    }


def _confidence(strips: Sequence[Strip]) -> list[dict[str, Any]]:
    rows = [
        {
            "second": round(point.second, 3),
            "height": round(float(i) + 0.97 - 0.4 * point.confidence, 4),
            "base": i + 0.97,
            "part": f"{i} {point.scene}",
        }
        for i, each in enumerate(strips)
        for point in each.points
        if point.confidence is not None
    ]
    if not rows:
        return []
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "area", "color": "#8a8f98", "opacity": 0.45, "line": False},
            "encoding": {
                "x": {**X, "field": "second"},
                "y": _y("height", len(strips)),
                "y2": {"field": "base"},
                "detail": {"field": "part", "type": "nominal"},
            },
        }
    ]


def _cuts(tables: Sequence[Predictions], video: str) -> dict[str, Any]:
    tags = tables[0].tags
    here = np.asarray(tags["video"]) == video
    scenes, seconds = np.asarray(tags["scene"])[here], np.asarray(tags["seconds"])[here]
    starts = [float(seconds[scenes == scene].min()) for scene in np.unique(scenes)[1:]]
    return {
        "data": {"values": [{"second": round(start, 3)} for start in starts]},
        "mark": {"type": "rule", "opacity": 0.7, "strokeWidth": 1},
        "encoding": {"x": {**X, "field": "second"}},
    }


def _names(tables: Sequence[Predictions]) -> dict[str, Any]:
    rows = [{"model": p.model, "place": i + 0.11} for i, p in enumerate(tables)]
    return {
        "data": {"values": rows},
        "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": 12},
        "encoding": {
            "x": {"value": 2},
            "y": _y("place", len(tables)),
            "text": {"field": "model", "type": "nominal"},
        },
    }
