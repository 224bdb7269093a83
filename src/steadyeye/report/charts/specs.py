"""Shared parts of Vega-Lite charts: colours, axes, lines, legends."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.format import interval, percent
from steadyeye.core.report_types import Table
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.paired import Difference
from steadyeye.core.types import Result

# Okabe and Ito's palette, distinct to colour-blind readers, on light and on dark ground
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
GREY = "#8a8a8a"
"""The colour of published data, visible on light and dark backgrounds."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WHOLE = {"tickMinStep": 1, "format": "d", "labelExpr": "datum.value % 1 ? '' : datum.label"}
"""An axis of whole numbers: Vega places ticks of short axes at halves, which the format would
round."""
SIGNED = {
    **WHOLE,
    "format": "+d",
    "labelExpr": "datum.value % 1 ? '' : datum.value ? datum.label : '0'",
}
"""An axis of whole numbers with signs."""
BELOW: Mapping[str, Any] = {"title": None, "orient": "bottom", "symbolOpacity": 1}
"""A legend below its chart; the page sets its number of columns."""


def quantity(field: str, title: str, **more: Any) -> dict[str, Any]:
    """A quantitative channel; `more`: its axis and its scale."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def shares(field: str, title: str) -> dict[str, Any]:
    """A quantitative channel of shares, 0…1, shown as percentages."""
    return quantity(field, title, axis={"format": ".0%"}, scale={"domain": [0, 1]})


def names_of(field: str, names: Sequence[str] | None, **axis: Any) -> dict[str, Any]:
    """A channel of names down the side, in order; None: in that of the data. `axis`: its labels."""
    return {"field": field, "type": "nominal", "sort": names, "title": None, "axis": axis}


def rows_of(field: str) -> dict[str, Any]:
    """A channel of names down the side, in the order of the data; a name may have several lines."""
    label = "split(datum.label, '\\n')"
    # a rule may stand at the left edge
    return names_of(field, None, labelExpr=label, labelLimit=190, labelPadding=6, ticks=False)


def map_names(
    field: str, names: Sequence[str], values: Sequence[Any], legend: Mapping[str, Any]
) -> dict[str, Any]:
    """A channel that shows each of `names` by its value, such as a colour, a shape or a dash."""
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def colour(names: Sequence[str], field: str, title: str) -> dict[str, Any]:
    """A colour channel with a fixed colour for each of `names`.

    The page sets the number of columns of its legend.
    """
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    return map_names(field, names, colours, {**BELOW, "title": title or None})


def chart(
    layers: Sequence[dict[str, Any]], height: int = 320, values: Sequence[Any] | None = None
) -> dict[str, Any]:
    """A layered chart as wide as its container; `values`: the rows of layers without their own."""
    spec = {"$schema": SCHEMA, "width": "container", "height": height, "layer": list(layers)}
    return spec if values is None else {**spec, "data": {"values": values}}


def layer(
    mark: str, encoding: Mapping[str, Any], values: Sequence[Any] | None = None, **style: Any
) -> dict[str, Any]:
    """A layer of a chart: a mark with its style, and the channels that place it.

    `values`: the rows it draws; None: those of the chart.
    """
    rows = {} if values is None else {"data": {"values": values}}
    return {**rows, "mark": {"type": mark, **style}, "encoding": encoding}


def dot(
    encoding: Mapping[str, Any], values: Sequence[Any] | None = None, **style: Any
) -> dict[str, Any]:
    """A layer of filled points."""
    return layer("point", encoding, values, **{"filled": True, "size": 60, "opacity": 1, **style})


MOST = 7
"""The number of colours of the palette."""


def choose_drawn(values: Mapping[str, float | None]) -> list[str]:
    """The names with the largest values, at most `MOST`, in the order they were given."""
    best = sorted(values, key=lambda name: -(values[name] or 0.0))[:MOST]
    return [name for name in values if name in set(best)]


def describe_omitted(values: Mapping[str, float | None]) -> str:
    """The caption's sentence on models that are not shown; empty if all are."""
    if len(values) <= MOST:
        return ""
    return f" Drawn: the {MOST} most accurate of {len(values)} models; the table has all."


DASHES = ((1, 0), (7, 3), (2, 2), (10, 3, 2, 3), (4, 5), (1, 4), (14, 4))
"""One dash per colour of the palette, for readers who cannot distinguish the colours."""
STROKES: Mapping[str, Any] = {
    "symbolType": "stroke",
    "symbolSize": 800,
    "symbolStrokeWidth": 2.5,
    "symbolFillColor": "transparent",
    "rowPadding": -8,
}
"""Legend symbols that are line segments, long enough to show a dash."""
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down", "triangle-left")
"""One shape per colour of the palette, for points without a line."""


DISTANCE: Mapping[str, Any] = quantity("k", "distance k from the anchor (frames)", axis=WHOLE)
"""The channel of the distance k."""


def fields_of(number: Result | Interval | Difference) -> dict[str, float | None]:
    """The fields of a row that hold a number and the ends of its interval."""
    return {"value": number.value, "low": number.low, "high": number.high}


def list_cells(result: Result, **names: str) -> list[dict[str, Any]]:
    """The rows of a curve: `names`, k, value, low and high of each cell of a result."""
    return [{**names, "k": k, **fields_of(cell)} for k, cell in enumerate(result.cells)]


def build_curve_table(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Mapping[str, str]]
) -> Table:
    """Curves as a table, one row per distance. `columns`: heading → the names of its rows."""

    def cell(names: Mapping[str, str], k: int) -> str:
        for row in rows:
            if row["k"] == k and all(row[key] == name for key, name in names.items()):
                return f"{percent(row['value'])} ({interval(row['low'], row['high'])})"
        return "—"

    distances = sorted({row["k"] for row in rows})
    body = tuple((f"{k}", *(cell(names, k) for names in columns.values())) for k in distances)
    return Table(title, ("k", *columns), body)


def draw_bands(bands: int, **channels: Any) -> dict[str, Any]:
    """Areas from the field that the channel `y` names up to the field "high".

    `bands`: number of overlapping bands; with more bands each is fainter, so that lines stay
    readable.
    """
    opacity = min(0.15, 0.3 / max(bands, 1))
    return layer("area", {**channels, "y2": {"field": "high"}}, opacity=opacity)


def lines(
    names: Sequence[str],
    field: str,
    colours: Sequence[str] = PALETTE,
    dashes: Sequence[Sequence[int]] = DASHES,
) -> dict[str, Any]:
    """The channels `color` and `strokeDash` of lines named by `field`, with one legend for both.

    With more names than `colours` or `dashes` these repeat.
    """
    painted = [colours[i % len(colours)] for i in range(len(names))]
    return {
        "color": {**line_colour(names, field), "scale": {"domain": [*names], "range": painted}},
        "strokeDash": dash(names, field, dashes),
    }


def line_colour(names: Sequence[str], field: str) -> dict[str, Any]:
    """The channel `color` of lines whose dash has another meaning."""
    hue = colour(names, field, "")
    return {**hue, "legend": {**hue["legend"], **STROKES}}


def dash(
    names: Sequence[str], field: str, dashes: Sequence[Sequence[int]] = DASHES
) -> dict[str, Any]:
    """The channel `strokeDash` of lines named by `field`; by default the first is solid."""
    patterns = [list(dashes[i % len(dashes)]) for i in range(len(names))]
    scale = {"domain": list(names), "range": patterns}
    return {**line_colour(names, field), "scale": scale}


def shape(names: Sequence[str], field: str) -> dict[str, Any]:
    """The channel `shape` of points named by `field`, with a grey legend below the chart."""
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(names))]
    grey = {"symbolFillColor": GREY, "symbolStrokeColor": GREY, "symbolSize": 80}
    return map_names(field, names, shapes, {**BELOW, **grey})


def draw_crossed(
    models: Sequence[str],
    kind: str,
    kinds: Sequence[str],
    place: Mapping[str, Any],
    points: str = "true",
) -> list[dict[str, Any]]:
    """The layers of lines for each of `models` and each of `kinds`, readable in grey.

    Several models differ in colour and dash, and the kinds in the shape of points on the lines;
    the kinds of a single model differ in dash. `kind`: the field that holds the kind; that of the
    model is "model". `place`: the channels x and y. `points`: a Vega expression, which rows have a
    point.
    """
    if len(models) < 2:
        channels = {"color": line_colour(models, "model"), "strokeDash": dash(kinds, kind)}
        return [layer("line", {**place, **channels}, tooltip=True, point=points == "true")]
    channels = lines(models, "model")
    dots = {**place, "color": channels["color"], "shape": shape(kinds, kind)}
    return [
        layer("line", {**place, **channels, "detail": {"field": kind}}, tooltip=True),
        {"transform": [{"filter": points}], **dot(dots, tooltip=True)},
    ]


def list_levels(result: Result, model: str) -> list[dict[str, Any]]:
    """The rows of profiles: model, operator, level, value, low and high, of each cell in a cell."""
    return [
        {
            "model": model,
            "operator": operator.name,
            "level": int(cell.name.removeprefix("level ")),
            **{
                end: None if value is None else round(value, 4)
                for end, value in fields_of(cell).items()
            },
        }
        for operator in result.cells
        for cell in operator.cells
    ]


def draw_profiles(
    rows: Sequence[Mapping[str, Any]],
    models: Sequence[str],
    operators: Sequence[str],
    height: int,
    channels: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Profiles: one chart per operator, three in a row, with a line and a band per model.

    `rows`: of `list_levels`. `operators`: in order. `height`: pixels of a chart. `channels`: y of
    the values, and of the lower ends of their intervals.
    """
    x = quantity("level", "level", axis={"tickCount": 4})
    value, low = channels
    hues = lines(models, "model")
    band = draw_bands(len(models), x=x, y=low, color=hues["color"])
    line = layer("line", {"x": x, "y": value, **hues}, tooltip=True)
    return {
        "$schema": SCHEMA,
        "data": {"values": list(rows)},
        "facet": {
            "field": "operator",
            "type": "nominal",
            "title": "",
            "sort": list(operators),
            "header": {"labelAnchor": "start"},
        },
        "columns": 3,
        "spacing": 12,
        # or the last row has axes below charts that are not there
        "resolve": {"axis": {"x": "independent"}},
        "spec": {"width": 235, "height": height, "layer": [band, line]},
    }
