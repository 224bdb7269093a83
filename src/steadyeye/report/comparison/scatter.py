"""The chart of models around a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadyeye.core.report_types import Figure
from steadyeye.core.stats.intervals import Interval
from steadyeye.metrics.testbed.published_models import K, PublishedModels
from steadyeye.metrics.testbed.testbed_fit import (
    PLAIN,
    Line,
    Space,
    predict_share,
    prediction_band,
)
from steadyeye.report.charts.specs import GREY, PALETTE, chart, colour, dot, layer

STEPS = 60
OWN = PALETTE[3]
"""The colour of the line through the user's own models."""
# the probit and the logit axis end where no published model and hardly a measured share lies
EDGE = 0.005
SHARES = {"probit": "cumulativeNormal(datum.value)", "logit": "1 / (1 + exp(-datum.value))"}
"""A Vega expression of the share at a tick."""
TICKS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Cross:
    """A model with the intervals of both its shares."""

    model: str
    original: Interval
    perturbed: Interval


def figure(models: PublishedModels, line: Line, crosses: Sequence[Cross], source: str) -> Figure:
    """Published models, their line with its prediction band, and the user's models as crosses.

    The axes are those of the line's space, in which it is straight; ticks are shares either way.
    """
    space = line.space
    x, y = (_axis(space, *axis) for axis in (("x", "accuracy on anchors"), ("y", f"pm-{K}")))
    grey = [
        {"model": model, "x": a, "y": p, "accuracy": f"{o:.1%}", "pm-10": f"{s:.1%}"}
        for model, a, p, o, s in zip(
            models.models,
            _scale_shares(space, models.original),
            _scale_shares(space, models.perturbed),
            models.original,
            models.perturbed,
            strict=True,
        )
    ]
    tips = [{"field": field} for field in ("model", "accuracy", "pm-10")]
    place = {"x": x, "y": y, "tooltip": tips}
    background = layer("circle", place, grey, color=GREY, opacity=0.4, size=18)
    names = [cross.model for cross in crosses]
    layers = [*_line(models, line, x, y), background, *_crosses(crosses, space, x, y)]
    return Figure(
        name=f"published_models_{space.name}",
        caption=(
            f"pm-{K} by accuracy, axes in {space.name} space. Grey: published models on "
            f"{models.title}, {source}. Line: least squares; band: 95 % prediction band. "
            f"Dashed: pm-{K} equal to accuracy. Crosses: your models with 95 % intervals."
        ),
        alt=(
            f"{len(models)} published models along a line below the diagonal, in {space.name} "
            f"space, and {', '.join(names)}; the table has the values."
        ),
        spec=chart(layers, height=360),
    )


def draw_own_line(
    own: Line, crosses: Sequence[Cross], k: int, published: tuple[PublishedModels, Line] | None
) -> Figure:
    """The user's models as crosses and the line through them, with the published line if any.

    `crosses`: accuracy and pm-k of each model. `published`: the published models and their line,
    in the same space and of the same k.
    """
    space = own.space
    x, y = (_axis(space, *axis) for axis in (("x", "accuracy on anchors"), ("y", f"pm-{k}")))
    values = [cross.original.value or 0.0 for cross in crosses]
    shares = _span_shares(space, min(values), max(values))
    expected = predict_share(own, shares)
    # a line that leaves the axes ends there: along an edge it would be another line
    inside = (expected >= EDGE) & (expected <= 1 - EDGE)
    columns = (_scale_shares(space, column[inside]) for column in (shares, expected))
    rows = [{"x": a, "y": b} for a, b in zip(*columns, strict=True)]
    background = _line(*published, x, y) if published else [_draw_diagonal(space, x, y)]
    layers = [
        *background,
        *_crosses(crosses, space, x, y, f"pm-{k}"),
        layer("line", {"x": x, "y": y}, rows, color=OWN, strokeWidth=3, strokeDash=[8, 4]),
    ]
    count = len(published[0]) if published else 0
    grey = f" Grey: the line of {count} published models and its prediction band." if count else ""
    names = ", ".join(cross.model for cross in crosses)
    return Figure(
        name=f"own_line_{space.name}",
        caption=(
            f"pm-{k} by accuracy, axes in {space.name} space. Crosses: your models with 95 % "
            f"intervals. Pink, dashed: the line through them.{grey} Grey, dashed: pm-{k} equal to "
            "accuracy."
        ),
        alt=f"{names} and the line through them, in {space.name} space; the table has the values.",
        spec=chart(layers, height=360),
    )


def _span_shares(space: Space, low: float, high: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Shares in even steps of the scale, from a little below `low` to a little above `high`."""
    first, last = space.to(np.clip(np.array([low, high]), EDGE, 1 - EDGE))
    margin = max(0.5 * (last - first), 0.25)
    return np.clip(space.back(np.linspace(first - margin, last + margin, STEPS)), EDGE, 1 - EDGE)


def _draw_diagonal(space: Space, x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    corners = [{"x": end, "y": end} for end in _scale_shares(space, np.array([0.0, 1.0]))]
    place = {"x": x, "y": y}
    return layer("line", place, corners, strokeDash=[4, 4], color=GREY, strokeWidth=1)


def _line(
    models: PublishedModels, line: Line, x: dict[str, Any], y: dict[str, Any]
) -> list[dict[str, Any]]:
    """The diagonal, the band and the line, over the accuracies the published models have."""
    first, last = line.space.to(np.array([models.original.min(), models.original.max()]))
    shares = line.space.back(np.linspace(first, last, STEPS))
    low, high = prediction_band(line, shares)
    values = [
        {"x": a, "y": m, "low": b, "high": t}
        for a, m, b, t in zip(
            *(
                _scale_shares(line.space, column)
                for column in (shares, predict_share(line, shares), low, high)
            ),
            strict=True,
        )
    ]
    band = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    return [
        _draw_diagonal(line.space, x, y),
        layer("area", band, values, color=GREY, opacity=0.22),
        layer("line", {"x": x, "y": y}, values, color=GREY, strokeWidth=2),
    ]


def _crosses(
    crosses: Sequence[Cross],
    space: Space,
    x: dict[str, Any],
    y: dict[str, Any],
    perturbed: str = f"pm-{K}",
) -> list[dict[str, Any]]:
    values = [
        {
            "model": cross.model,
            **_ends("x", cross.original, space),
            **_ends("y", cross.perturbed, space),
            "accuracy": f"{cross.original.value or 0:.1%}",
            perturbed: f"{cross.perturbed.value or 0:.1%}",
        }
        for cross in crosses
    ]
    tips = [{"field": field} for field in ("model", "accuracy", perturbed)]
    hue = colour([cross.model for cross in crosses], "model", "")
    across = {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y, "color": hue}
    along = {"x": x, "y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}, "color": hue}
    return [
        layer("rule", across, values, strokeWidth=2),
        layer("rule", along, values, strokeWidth=2),
        dot({"x": x, "y": y, "color": hue, "tooltip": tips}, values, size=90),
    ]


def _ends(name: str, share: Interval, space: Space) -> dict[str, float]:
    ends = np.array([share.value, share.low, share.high], dtype=np.float64)
    return dict(zip((name, f"{name}_low", f"{name}_high"), _scale_shares(space, ends), strict=True))


def _axis(space: Space, field: str, title: str) -> dict[str, Any]:
    channel: dict[str, Any] = {"field": field, "type": "quantitative", "title": title}
    if space is PLAIN:
        return channel | {"axis": {"format": ".0%"}, "scale": {"domain": [0, 1]}}
    ticks = space.to(np.array(TICKS)).tolist()
    label = f"format({SHARES[space.name]}, '.0%')"
    ends = _scale_shares(space, np.array([0.0, 1.0]))
    return channel | {
        "axis": {"values": ticks, "labelExpr": label},
        "scale": {"domain": ends, "nice": False, "zero": False},
    }


def _scale_shares(space: Space, shares: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """Shares on the scale of a space; but in the plain one those at an end are at its edge."""
    inside = np.clip(shares, 0, 1) if space is PLAIN else np.clip(shares, EDGE, 1 - EDGE)
    return [float(share) for share in space.to(inside)]
