"""How much of what detections rest on lies inside their boxes: words, table, figure, pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.charts.style import PALETTE, SCHEMA, interval, percent, points, shares
from steadyeye.core.intervals import Interval
from steadyeye.core.sections import Exhibit, Figure, Heat, Mark, Picture, Table
from steadyeye.core.table import Predictions
from steadyeye.probing.attributions import Attribution
from steadyeye.probing.effects import Effects, difference, mean
from steadyeye.probing.matching import matched

CONTROL = "correct (control)"
PICKED = ((True, 3), (False, 2))
"""Of mistakes and of the control, how many with the least and with the most inside are shown."""


@dataclass(frozen=True, eq=False)
class Told:
    """A model with the attributions of its targets; those without any map are left out, counted.

    `effects`: the shares inside the box as effects of the probe.
    """

    predictions: Predictions
    found: tuple[Attribution, ...]
    effects: Effects

    @property
    def model(self) -> str:
        """The detector."""
        return str(self.predictions.probe["model"])

    @property
    def area(self) -> NDArray[np.float64]:
        """(m,) the area of each box as a share of its image."""
        return np.array([each.area for each in self.found])

    @property
    def beyond(self) -> Effects:
        """The shares less the areas: what a map all alike would not explain."""
        return replace(self.effects, change=self.effects.change - self.area)


def told(predictions: Predictions, attributions: Sequence[Attribution]) -> Told:
    """The attributions of a model, those that have any."""
    found = tuple(each for each in attributions if np.isfinite(each.share))
    rows = np.array([each.row for each in found], dtype=np.intp)
    cause = np.array([each.cause for each in found], dtype=np.str_)
    video = np.array([each.video for each in found], dtype=np.str_)
    image = np.array([each.image for each in found], dtype=np.str_)
    # the control's images are others, even where they are called the same
    apart = (cause == "") & (predictions.probe.get("reference") is not None)
    effects = Effects(
        plain=rows,
        changed=(),
        change=np.array([each.share for each in found]),
        vanished=np.array([each.gone for each in found]),
        cause=cause,
        label=np.asarray(predictions.tags["own_label"])[rows],
        cluster=np.char.add(np.where(apart, "control/", ""), video),
        of="images" if np.array_equal(video, image) else "videos",
        lost=len(set(_targets(predictions))) - len(found),
        found=matched(predictions),
    )
    return Told(predictions, found, effects)


def cell(found: Interval) -> str:
    """A share with its interval, `41.0 % (30.2–52.8 %)`."""
    return f"{percent(found.value)} ({interval(found.low, found.high)})"


def apart(found: Interval) -> str:
    """A difference in percentage points with its interval, `−12.0 (−20.1 to −4.0)`."""
    if found.low is None or found.high is None:
        return f"{points(found.value)} (—)"
    return f"{points(found.value)} ({points(found.low)} to {points(found.high)})"


def table(one: Told) -> Table:
    """Mistakes, each of their causes, and the control: share inside, area, and the one less."""
    effects = one.effects
    body = []
    for name, which in groups(effects):
        inside = mean(effects, which)
        body.append(
            (
                name,
                f"{inside.n:,}",
                f"{len(np.unique(effects.cluster[which])):,} {effects.of}",
                cell(inside),
                cell(mean(effects, which, one.area)),
                apart(mean(effects, which, one.beyond.change)),
                inside.method,
            )
        )
    both = difference(effects)
    cells = ("mistakes − control", f"{both.n:,}", "—", apart(both), "—")
    body.append((*cells, apart(difference(one.beyond)), both.method))
    header = ("", "n", "images", "inside the box", "area of the box", "inside − area", "interval")
    return Table(f"{one.model}: Σ|attribution| inside the box", header, tuple(body), open=True)


def groups(effects: Effects) -> list[tuple[str, NDArray[np.bool_]]]:
    """Mistakes together, each of their causes where there are several, and the control."""
    causes = sorted(set(effects.cause.tolist()) - {""})
    rows = [("mistakes", effects.mistake)] if len(causes) != 1 else []
    rows += [(cause, effects.cause == cause) for cause in causes]
    return [*rows, (CONTROL, ~effects.mistake)]


def figure(one: Told, name: str, way: str) -> Figure:
    """The share of every target, by cause, with means and areas. Lau et al. 2021, Figure 10."""
    effects = one.effects
    drawn = groups(effects)
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    areas: list[dict[str, Any]] = []
    for place, which in drawn:
        kind = "correct detection" if place == CONTROL else "confident mistake"
        inside = mean(effects, which)
        if inside.value is None:
            continue
        said = {"group": place, "kind": kind}
        dots += [{**said, "share": round(float(v), 4)} for v in effects.change[which]]
        areas.append({**said, "area": mean(effects, which, one.area).value})
        ends = {} if inside.low is None else {"low": inside.low, "high": inside.high}
        means.append({**said, "value": inside.value, "n": inside.n, **ends})
    return Figure(
        name,
        f"{one.model}, {way}: each stroke is one detection, the dot with its line the mean and its "
        "95 % interval, the open diamond the mean area of the boxes: the share that a map all "
        "alike would have.",
        f"By cause, the share of attribution inside the box for {len(effects.change)} detections "
        f"of {one.model}: " + "; ".join(f"{row['group']} {percent(row['value'])}" for row in means),
        _spec([place for place, _ in drawn], dots, means, areas),
    )


def _spec(
    names: Sequence[str],
    dots: list[dict[str, Any]],
    means: list[dict[str, Any]],
    areas: list[dict[str, Any]],
) -> dict[str, Any]:
    kinds = ["confident mistake", "correct detection"]
    axis = {"labelLimit": 130, "labelPadding": 6}
    y = {"field": "group", "type": "nominal", "sort": list(names), "title": None, "axis": axis}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": kinds, "range": [PALETTE[1], PALETTE[0]]},
        "legend": {"title": None, "orient": "top", "columns": 1, "labelLimit": 320},
    }

    def layer(rows: list[dict[str, Any]], mark: dict[str, Any], field: str, **more: Any) -> Any:
        x = shares(field, "share of attribution inside the box")
        return {
            "data": {"values": rows},
            "mark": mark,
            "encoding": {"y": y, "x": x, "color": colour, **more},
        }

    tip = [{"field": "group"}, {"field": "value", "format": ".1%"}, {"field": "n"}]
    layers = [
        layer(dots, {"type": "tick", "thickness": 1.5, "opacity": 0.35, "bandSize": 18}, "share"),
        layer(
            [row for row in means if "low" in row],
            {"type": "rule", "strokeWidth": 2},
            "low",
            x2={"field": "high"},
        ),
        layer(
            means, {"type": "point", "filled": True, "size": 70, "opacity": 1}, "value", tooltip=tip
        ),
        layer(areas, {"type": "point", "shape": "diamond", "size": 90, "strokeWidth": 2}, "area"),
    ]
    return {"$schema": SCHEMA, "width": "container", "height": {"step": 38}, "layer": layers}


def exhibits(one: Told) -> tuple[Exhibit, ...]:
    """Those with the least and the most inside, mistakes then control, each beside its map."""
    picked: list[int] = []
    for mistake, most in PICKED:
        of = one.effects.mistake == mistake
        order = np.flatnonzero(of)[np.argsort(one.effects.change[of], kind="stable")].tolist()
        picked += dict.fromkeys([*order[:most], *order[::-1][:most]])
    return tuple(_exhibit(one, one.found[which]) for which in picked)


def _exhibit(one: Told, found: Attribution) -> Exhibit:
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
            Picture(sample, "what it says", (said,), None, (Mark(kind, box, said),)),
            Picture(
                sample,
                "what that rests on",
                (inside, f"the box covers {percent(found.area, 0)} of the image"),
                None,
                (Mark(kind, box, ""),),
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


def _targets(predictions: Predictions) -> list[tuple[str, str]]:
    tags = predictions.tags
    return list(zip(tags["cause"].tolist(), tags["target"].tolist(), strict=True))
