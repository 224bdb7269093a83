"""Figures and pictures of probes: mistakes and the control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Exhibit, Figure, Heat, Mark, Picture, Section, Table, Topic
from steadyeye.explain.attributions import CONTROL, Attribution, InsideShares, groups
from steadyeye.explain.effects import ProbeEffects, mean
from steadyeye.report.charts.specs import (
    GREY,
    PALETTE,
    chart,
    dot,
    layer,
    map_names,
    names_of,
    quantity,
    shares,
)
from steadyeye.report.probe_wording import (
    ProbedModel,
    by_cause,
    by_class,
    claim,
    order_classes,
    question,
)

SHOWN = 12
"""Classes in a figure; the table has all."""

ROW = 30
"""Pixels per class."""

KINDS = ("confident mistake", "correct detection")

NEXT = 3
"""Changed images next to the original."""


@dataclass(frozen=True)
class ProbeNames:
    """The names of a probe in its section.

    `doing`: what it does, in the title. `done`: the same in a caption, after "when". `figure`:
    prefix of the names of figures. `tag`: tag of the step, which names a picture.
    """

    doing: str
    done: str
    figure: str
    tag: str


def build_section(
    models: Sequence[ProbedModel],
    names: ProbeNames,
    place: int,
    text: Sequence[str],
    more_tables: Callable[[ProbedModel], Sequence[Table]] = lambda _: (),
) -> Section:
    """The section of a probe: whether mistakes change less than correct detections.

    `place`: order in its topic. `more_tables`: further tables of a model, after the table by cause.
    """
    title = claim(names.doing, models)
    return Section(
        topic=Topic.WHY,
        place=place,
        title=title.text if title else question(names.doing, models),
        claim=title,
        text=tuple(text),
        tables=tuple(
            table
            for model in models
            for table in (by_cause(model), *more_tables(model), by_class(model))
        ),
        figures=tuple(
            figure(model, f"{names.figure}-{i}", names.done) for i, model in enumerate(models)
        ),
        exhibits=tuple(exhibit for model in models for exhibit in exhibits(model, names.tag)),
    )


def figure(model: ProbedModel, name: str, doing: str) -> Figure:
    """The change of every target, by class, with mean and interval.

    `doing`: the change, for the caption. The first row is of all classes together. As Lau et al.
    2021, Figures 6 and 7.
    """
    effects = model.effects
    labels = order_classes(effects)
    names = ["all classes", *(model.predictions.model_classes[label] for label in labels[:SHOWN])]
    masks = [np.ones(len(effects.change), dtype=np.bool_)]
    masks += [effects.label == label for label in labels[:SHOWN]]
    dots, means = [], []
    for place, mask in zip(names, masks, strict=True):
        for kind, of in zip(KINDS, (effects.mistake, ~effects.mistake), strict=True):
            dots += [
                {"class": place, "kind": kind, "change": round(float(value), 4)}
                for value in effects.change[mask & of]
            ]
            means += _mean(effects, place, kind, mask & of)
    more = f" Drawn: {SHOWN} of {number_of(len(labels), 'class')}." if len(labels) > SHOWN else ""
    return Figure(
        name,
        f"{model.model}: |Δ probability| of each detection when {doing}; dots with lines are "
        f"means with 95 % intervals.{more}",
        f"Change in probability by class ({len(names) - 1}) and for all classes, for confident "
        f"mistakes and correct detections of {model.model}, when {doing}.",
        _spec(names, dots, means),
    )


def _mean(
    effects: ProbeEffects, place: str, kind: str, mask: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    change = mean(effects, mask)
    if change.value is None:
        return []
    row = {"class": place, "kind": kind, "value": change.value, "n": change.n}
    return [row if change.low is None else {**row, "low": change.low, "high": change.high}]


def _spec(
    names: Sequence[str], dots: list[dict[str, Any]], means: list[dict[str, Any]]
) -> dict[str, Any]:
    y = {"field": "class", "type": "nominal", "sort": list(names), "title": None}
    offset = {"field": "kind", "type": "nominal", "sort": list(KINDS)}
    legend = {"title": None, "orient": "top", "columns": 1, "symbolOpacity": 1}
    colour = map_names("kind", KINDS, [PALETTE[1], PALETTE[0]], legend)
    shared = {"y": y, "yOffset": offset, "color": colour}

    tip = [{"field": "class"}, {"field": "kind"}]
    ends = [row for row in means if "low" in row]
    mean_tip = [*tip, {"field": "value", "format": ".3f"}, {"field": "n"}]
    stroke = {**shared, "x": _change("change"), "tooltip": [*tip, {"field": "change"}]}
    span = {**shared, "x": _change("low"), "x2": {"field": "high"}}
    # so that a kind is read without colour too
    form = map_names("kind", KINDS, ["triangle-up", "circle"], legend)
    middle = {**shared, "shape": form, "x": _change("value"), "tooltip": mean_tip}
    layers = [
        layer("tick", stroke, dots, thickness=1.5, opacity=0.35, bandSize=9),
        layer("rule", span, ends, strokeWidth=2),
        dot(middle, means, size=55),
    ]
    return chart(layers, height=ROW * len(names))


def _change(field: str) -> dict[str, Any]:
    """The channel of a change in probability, 0…1."""
    return quantity(field, "|Δ probability|", scale={"domain": [0, 1]}, axis={"tickCount": 5})


def exhibits(model: ProbedModel, tag: str) -> tuple[Exhibit, ...]:
    """The mistakes that change least and most, then those of the control, with changed images.

    `tag`: tag of the step, which names a picture. The steps shown are evenly spaced.
    """
    return tuple(_exhibit(model, target, tag) for target in _pick(model.effects))


def _pick(effects: ProbeEffects) -> list[int]:
    """The three mistakes with the least and the most change, then two of each from the control."""
    picked: list[int] = []
    for of, most in ((effects.mistake, 3), (~effects.mistake, 2)):
        order = np.flatnonzero(of)[np.argsort(effects.change[of], kind="stable")].tolist()
        picked += dict.fromkeys([*order[:most], *order[::-1][:most]])
    return picked


def _exhibit(model: ProbedModel, target: int, tag: str) -> Exhibit:
    effects = model.effects
    changed = effects.changed[target]
    apart = np.unique(np.linspace(0, len(changed) - 1, NEXT).round().astype(np.intp))
    rows = [int(effects.plain[target]), *changed[apart].tolist()]
    name = model.predictions.model_classes[effects.label[target]]
    cause = str(effects.cause[target]) or "correct"
    called = [str(model.predictions.tags[tag][row]) for row in rows[1:]]
    return Exhibit(
        title=f"{name}, {cause}: changes by {effects.change[target]:.2f}",
        model=model.model,
        data=model.predictions.data,
        pictures=tuple(
            _picture(model, row, f"{tag} {text}" if text else "original", name, cause)
            for row, text in zip(rows, ["", *called], strict=True)
        ),
        wide=True,
    )


def _picture(model: ProbedModel, row: int, called: str, name: str, cause: str) -> Picture:
    predictions, matches = model.predictions, model.effects.matches
    kind = "right" if cause == "correct" else "wrong"
    marks: tuple[Mark, ...] = ()
    line = f"no {name} there"
    at = int(matches.row[row])
    if at >= 0:
        assert predictions.detections is not None, "a probe is asked of a detector"
        line = f"{name} {matches.probability[row]:.2f}"
        box = tuple(float(value) for value in predictions.detections.boxes[at])
        marks = (Mark(kind, box, line),)
    return Picture(str(predictions.ids[row]), called, (line,), None, marks)


LINES = ("uniform map", "box only")


def draw_attribution(model: InsideShares, name: str, way: str) -> Figure:
    """The share of every target, by cause, with means and areas. Lau et al. 2021, Figure 7."""
    effects = model.effects
    causes = groups(effects)
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for place, mask in causes:
        inside = mean(effects, mask)
        if inside.value is None:
            continue
        names = {"group": place, "kind": KINDS[place == CONTROL]}
        dots += [{**names, "share": round(float(v), 4)} for v in effects.change[mask]]
        for line, values in zip(LINES, (model.area, model.even), strict=True):
            marks.append({"group": place, "what": line, "share": mean(effects, mask, values).value})
        ends = {} if inside.low is None else {"low": inside.low, "high": inside.high}
        means.append({**names, "value": inside.value, "n": inside.n, **ends})
    return Figure(
        name,
        f"{model.model}, {way}: each stroke is one detection, dots with lines are means with 95 % "
        "intervals. Open diamond: mean for a uniform map, the area of the box. Open square: "
        "mean for a detection that depends evenly on its box and on nothing else.",
        "Share of attribution inside the box by cause, for "
        f"{number_of(len(effects.change), 'detection')} of "
        f"{model.model}: " + "; ".join(f"{row['group']} {percent(row['value'])}" for row in means),
        _attribution_spec([place for place, _ in causes], dots, means, marks),
    )


def _attribution_spec(
    names: Sequence[str],
    dots: list[dict[str, Any]],
    means: list[dict[str, Any]],
    marks: list[dict[str, Any]],
) -> dict[str, Any]:
    y = names_of("group", list(names), labelLimit=130, labelPadding=6)
    legend = {"title": None, "columns": 1, "labelLimit": 320, "symbolOpacity": 1}
    colour = map_names("kind", KINDS, [PALETTE[1], PALETTE[0]], {**legend, "orient": "top"})
    stroke = {"symbolStrokeColor": GREY, "symbolStrokeWidth": 2}
    below = {**legend, "orient": "bottom", **stroke}
    shape = map_names("what", LINES, ["diamond", "square"], below)

    def place(field: str, **more: Any) -> dict[str, Any]:
        return {"y": y, "x": shares(field, "share of attribution inside the box"), **more}

    ends = [row for row in means if "low" in row]
    tip = [{"field": "group"}, {"field": "value", "format": ".1%"}, {"field": "n"}]
    line_tip = [{"field": "what"}, {"field": "share", "format": ".1%"}]
    open_mark = {"size": 90, "strokeWidth": 2, "stroke": GREY, "opacity": 1}
    layers = [
        layer("tick", place("share", color=colour), dots, thickness=1.5, opacity=0.55, bandSize=18),
        layer("rule", place("low", x2={"field": "high"}, color=colour), ends, strokeWidth=2),
        dot(place("value", color=colour, tooltip=tip), means, size=70),
        layer("point", place("share", shape=shape, tooltip=line_tip), marks, **open_mark),
    ]
    return chart(layers, height=38 * len(names) + 10)


def show_attributions(model: InsideShares) -> tuple[Exhibit, ...]:
    """The detections with the least and the most attribution inside, each next to its map."""
    return tuple(
        _show_attribution(model, model.attributions[target]) for target in _pick(model.effects)
    )


def _show_attribution(model: InsideShares, attribution: Attribution) -> Exhibit:
    predictions, row = model.predictions, attribution.row
    tags = predictions.tags
    name = predictions.model_classes[int(tags["own_label"][row])]
    box = tuple(float(tags[corner][row]) for corner in ("x0", "y0", "x1", "y1"))
    kind = "wrong" if attribution.cause else "right"
    label = f"{name} {float(tags['score'][row]):.2f}"
    heat = _heat(attribution.map)
    sample = str(predictions.ids[row])
    inside = f"{percent(attribution.share, 0)} inside the box"
    return Exhibit(
        title=f"{name}, {attribution.cause or 'correct'}: {inside}",
        model=model.model,
        data=predictions.data,
        pictures=(
            Picture(sample, "detection", (label,), None, (Mark(kind, box, label),)),
            Picture(
                sample,
                "attribution",
                (inside, f"the box covers {percent(attribution.area)} of the image"),
                None,
                # white, because red is lost in the colours of a map
                (Mark("truth", box, ""),),
                heat,
            ),
        ),
    )


def _heat(values: NDArray[np.float64]) -> Heat:
    """|values| scaled by their 99th percentile, so that a single cell cannot hide the rest."""
    size = np.abs(values)
    most = float(np.quantile(size, 0.99)) or float(size.max()) or 1.0
    rows = np.round(np.clip(size / most, 0, 1), 3).tolist()
    return Heat(tuple(tuple(row) for row in rows))
