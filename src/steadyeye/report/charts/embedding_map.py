"""The map of two sets of regions: coloured by cause, with what is there on hover."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Figure, Picture
from steadyeye.core.seeds import stream
from steadyeye.explain.embedding.blind_spots import Blindness
from steadyeye.explain.embedding.projection import layout
from steadyeye.report.charts.specs import BELOW, PALETTE, chart

DRAWN = 500
"""Regions of either set on a map, which every reader's browser can still draw."""

THUMBNAILS = 400
"""Pictures a page carries for one map: about 1 MB."""

COLOURS = {
    "reference": PALETTE[6],
    "right": PALETTE[2],
    "misclassification": PALETTE[1],
    "out of distribution": PALETTE[3],
    "background": PALETTE[0],
    "unverified": PALETTE[4],
    "missed": PALETTE[5],
    "mistake": PALETTE[1],
}
TOOLTIP = {
    "image": "image",
    "says": "prediction",
    "is": "label",
    "cause": "cause",
    "spot": "where",
    "sample": "region",
}
"""Field → title; the tooltip draws what is titled image as one."""

CHOSEN = {True: "sparse in the reference data", False: "far from the reference data, a hint"}
"""What a chosen region is, by whether that is beyond chance."""
ELSEWHERE = "elsewhere"


def name_cause(cause: str) -> str:
    """A cause in words; "right" for none."""
    return cause.replace("_", " ") or "right"


def map_figure(found: Blindness, name: str) -> Figure:
    """A map of both sets, at most `DRAWN` of each, those first where the reference is thin."""
    places = _choose_drawn(found)
    laid = layout(found.points[places])
    tags, score = found.predictions.tags, found.predictions.tags["score"]
    number = np.cumsum(~found.reference) - 1
    values, what = [], CHOSEN[found.proven]
    for place, (x, y) in zip(places.tolist(), laid.place.tolist(), strict=True):
        row, other = found.rows[place], int(number[place])
        of_reference = bool(found.reference[place])
        thin = not of_reference and bool(found.chosen[other])
        values.append(
            {
                "x": round(x, 3),
                "y": round(y, 3),
                "sample": str(found.predictions.ids[row]),
                "cause": "reference" if of_reference else name_cause(str(tags["cause"][row])),
                "where": what if thin else ELSEWHERE,
                "says": f"{tags['said'][row]}, {percent(float(score[row]), 0)}",
                "is": str(tags["true"][row]),
                "spot": "" if of_reference else _spot(found, other),
            }
        )
    return Figure(
        name=name,
        caption=(
            f"{laid.name} of the features: {len(values):,} of "
            f"{number_of(len(found.rows), 'region')}. Regions near each other have similar "
            "features; the axes have no meaning."
            + (f" Diamonds: {what}." if found.chosen.any() else "")
            + " Hover for the picture."
        ),
        alt=(
            f"A {laid.name} map of {number_of(int(found.reference[places].sum()), 'region')} of "
            f"the reference data and {int((~found.reference[places]).sum()):,} of the tested data, "
            "coloured by cause."
        ),
        spec=_spec(values, what),
        data=found.predictions.data,
        thumbnails=tuple(
            Picture(sample=str(found.predictions.ids[row]), title="", lines=(), small=True)
            for row in found.rows[places[:THUMBNAILS]]
        ),
    )


def _choose_drawn(found: Blindness) -> NDArray[np.intp]:
    """Places of what is drawn, those first that have a thumbnail."""
    rng = stream(0, "map", found.predictions.fingerprint)
    others = np.flatnonzero(~found.reference)
    wrong = found.tag("cause") != ""
    # mistakes before the rest, and by chance among equals
    order = np.lexsort((rng.random(len(others)), ~wrong))
    thin, rest = order[found.chosen[order]], order[~found.chosen[order]]
    # where there is more than enough of both, three of five points are of where it is thin
    part = max(3 * DRAWN // 5, DRAWN - len(rest))
    data = others[np.concatenate([thin[:part], rest])[:DRAWN]]
    reference = rng.permutation(np.flatnonzero(found.reference))[:DRAWN]
    # a third of the thumbnails shows the reference, or more where the data needs fewer
    mine = min(len(data), max(THUMBNAILS - len(reference), 2 * THUMBNAILS // 3))
    data = rng.permutation(data)
    return np.concatenate([data[:mine], reference, data[mine:]])


def _spot(found: Blindness, other: int) -> str:
    spot = int(found.spot[other])
    ratio = float(np.exp(found.thinness.ratio[other]))
    where = f"{found.noun} {spot + 1}, " if spot >= 0 else ""
    return f"{where}density ratio {ratio:.1f}"


def _spec(values: list[dict[str, Any]], what: str) -> dict[str, Any]:
    """The chart; `what`: how the legend calls the chosen regions."""
    reference, thin = "datum.cause === 'reference'", f"datum.where === '{what}'"
    shapes = {what: "diamond", ELSEWHERE: "circle"}
    layers = [
        _layer(values, reference, 30, 0.45, shapes),
        _layer(values, f"!({reference}) && !({thin})", 45, 0.8, shapes),
        _layer(values, thin, 90, 0.9, shapes),
    ]
    there = [
        any(each["cause"] == "reference" for each in values),
        any(each["cause"] != "reference" and each["where"] == ELSEWHERE for each in values),
        any(each["where"] != ELSEWHERE for each in values),
    ]
    return {
        # an empty layer would warn in the reader's console
        **chart([one for one, filled in zip(layers, there, strict=True) if filled], height=460),
        "data": {"values": values},
        "datasets": {"thumbnails": []},
        "transform": [
            {
                "lookup": "sample",
                "from": {"data": {"name": "thumbnails"}, "key": "sample", "fields": ["image"]},
            },
            # a tooltip would ask for a picture called null
            {"calculate": "isValid(datum.image) ? datum.image : ''", "as": "image"},
        ],
    }


def _layer(
    values: list[dict[str, Any]], test: str, size: int, opacity: float, shapes: dict[str, str]
) -> dict[str, Any]:
    """The points that pass a test; all layers share their colours and shapes."""
    causes = [cause for cause in COLOURS if any(each["cause"] == cause for each in values)]
    axis = {"axis": None, "scale": {"zero": False, "nice": False}, "type": "quantitative"}
    return {
        "transform": [{"filter": test}],
        "mark": {"type": "point", "filled": True, "size": size, "opacity": opacity},
        "encoding": {
            "x": {"field": "x", **axis},
            "y": {"field": "y", **axis},
            "color": {
                "field": "cause",
                "type": "nominal",
                "scale": {"domain": causes, "range": [COLOURS[cause] for cause in causes]},
                "legend": BELOW,
            },
            "shape": {
                "field": "where",
                "type": "nominal",
                "scale": {"domain": list(shapes), "range": list(shapes.values())},
                "legend": {
                    **BELOW,
                    # by itself black, which is unreadable on a dark ground
                    "symbolFillColor": PALETTE[6],
                    "symbolStrokeColor": PALETTE[6],
                },
            },
            "tooltip": [
                {"field": field, "type": "nominal", "title": title}
                for field, title in TOOLTIP.items()
            ],
        },
    }
