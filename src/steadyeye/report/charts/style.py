"""Colours and axes that all charts share."""

from collections.abc import Mapping, Sequence
from typing import Any

# Okabe and Ito's palette, distinct to colour-blind readers, on light and on dark ground
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
GREY = "#8a8a8a"
"""Of what is no model's: seen on light and on dark ground."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


def shares(field: str, title: str) -> dict[str, Any]:
    """A quantitative channel of shares, 0…1, shown as percentages."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "axis": {"format": ".0%"},
        "scale": {"domain": [0, 1]},
    }


def rows_of(field: str) -> dict[str, Any]:
    """A channel of names down the side, in the order of the data; a name may have several lines."""
    return {
        "field": field,
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelExpr": "split(datum.label, '\\n')", "labelLimit": 190, "ticks": False},
    }


def colour(names: Sequence[str], field: str, title: str) -> dict[str, Any]:
    """A colour channel with a fixed colour for each of `names`.

    How many columns of its legend fit is for the page to say.
    """
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    legend = {"title": title or None, "orient": "bottom", "symbolOpacity": 1}
    scale = {"domain": list(names), "range": colours}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def chart(layers: Sequence[dict[str, Any]], height: int = 320) -> dict[str, Any]:
    """A layered chart as wide as its container."""
    return {"$schema": SCHEMA, "width": "container", "height": height, "layer": list(layers)}


MOST = 7
"""As many as the palette has colours."""

BELOW: Mapping[str, Any] = {"title": None, "orient": "bottom", "symbolOpacity": 1}
"""A legend below its chart; how many of its columns fit is for the page to say."""


def choose_drawn(values: Mapping[str, float | None], most: int = MOST) -> list[str]:
    """The names with the largest values, at most `most`, in the order they were given."""
    best = sorted(values, key=lambda name: -(values[name] or 0.0))[:most]
    return [name for name in values if name in set(best)]


def describe_omitted(values: Mapping[str, float | None], most: int = MOST) -> str:
    """What a caption says of the models that are not drawn; empty where all are."""
    if len(values) <= most:
        return ""
    return f" Drawn: the {most} most accurate of {len(values)} models; the table has all."
