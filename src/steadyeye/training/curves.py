"""The curves of a training: loss, what the held examples say, learning rate."""

from collections.abc import Sequence
from typing import Any

from steadyeye.core.format import number_of, percent
from steadyeye.core.report_types import Figure
from steadyeye.report.charts.lines import lines
from steadyeye.report.charts.style import PALETTE, chart, shares
from steadyeye.training.metrics_log import History

POINTS = 400  # of a curve of losses, at most

STEP = {"field": "step", "type": "quantitative", "title": "step", "axis": {"format": "d"}}
SHARES = ("accuracy", "ap", "ap50", "map")


def figures(went: History) -> list[Figure]:
    """Loss, what the held examples say, and the learning rate where it falls."""
    if not went.losses:
        return []
    figures = [_loss(went)]
    names = [name for name in numbers(went) if name in SHARES]
    if went.rounds and names:
        figures.append(_draw_judgements(went, names))
    if len({each.rate for each in went.rounds}) > 1:
        figures.append(_rate(went))
    return figures


def _loss(went: History) -> Figure:
    rows = curve(went.losses, "training, smoothed")
    starts = [(0, went.start)] if went.start else []
    judged = [*starts, *((each.step, each.held) for each in went.rounds)]
    rows += [
        {"step": step, "loss": held["loss"], "of": "held-out"}
        for step, held in judged
        if held.get("loss") is not None
    ]
    names = list(dict.fromkeys(row["of"] for row in rows))
    line = {
        "mark": {"type": "line", "tooltip": True},
        "encoding": {
            "x": STEP,
            "y": {"field": "loss", "type": "quantitative", "title": "loss"},
            **lines(names, "of"),
        },
    }
    dots = {
        "transform": [{"filter": "datum.of == 'held-out'"}],
        "mark": {"type": "point", "filled": True, "tooltip": True},
        "encoding": {key: to for key, to in line["encoding"].items() if key != "strokeDash"},
    }
    return Figure(
        name="training_loss",
        caption="Training loss (moving mean over steps), and loss on the held-out data after "
        f"each round.{_describe_best(went)}",
        alt=f"Training loss from {went.losses[0]:.3g} to {went.losses[-1]:.3g} over "
        f"{number_of(went.step, 'step')}; the table has the rounds.",
        spec={**chart([line, dots, *_best_mark(went)]), "data": {"values": rows}},
    )


def _draw_judgements(went: History, names: Sequence[str]) -> Figure:
    rows = [
        {"step": step, "value": held[name], "of": name_measure(name)}
        for step, held in [(0, went.start), *((r.step, r.held) for r in went.rounds)]
        for name in names
        if held.get(name) is not None
    ]
    line = {
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": STEP,
            "y": shares("value", "held-out data"),
            **lines([name_measure(name) for name in names], "of"),
        },
    }
    return Figure(
        name="training_judged",
        caption="Metrics on the held-out data, before the first step and after each round."
        + _describe_best(went),
        alt=f"{', '.join(map(name_measure, names))} on the held-out data by step.",
        spec={**chart([line, *_best_mark(went)]), "data": {"values": rows}},
    )


def _rate(went: History) -> Figure:
    starts = [0, *(each.step for each in went.rounds)]
    rows = [{"step": s, "rate": r.rate} for s, r in zip(starts, went.rounds, strict=False)]
    rows.append({"step": went.rounds[-1].step, "rate": went.rounds[-1].rate})
    y = {"field": "rate", "type": "quantitative", "title": "learning rate"}
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "color": PALETTE[0]},
        "encoding": {
            "x": STEP,
            "y": {**y, "scale": {"type": "log"}, "axis": {"format": "~g", "tickCount": 4}},
        },
    }
    return Figure(
        name="training_rate",
        caption="Learning rate by step.",
        alt=f"The learning rate falls from {rows[0]['rate']:g} to {rows[-1]['rate']:g}.",
        spec={**chart([line], height=160), "data": {"values": rows}},
    )


def _best_mark(went: History) -> list[dict[str, Any]]:
    if went.best is None:
        return []
    rule = {"type": "rule", "strokeDash": [4, 4], "color": "#888888"}
    return [
        {
            "data": {"values": [{"step": went.best.step}]},
            "mark": rule,
            "encoding": {"x": {"field": "step", "type": "quantitative"}},
        }
    ]


def _describe_best(went: History) -> str:
    return (
        ""
        if went.best is None
        else f" Dashed: the weights that were kept, step {went.best.step:,}."
    )


def curve(losses: Sequence[float], of: str) -> list[dict[str, Any]]:
    """The losses as rows of at most `POINTS` means over steps in a row."""
    width = max(1, -(-len(losses) // POINTS), min(len(losses) // 20, 20))
    return [
        {"step": first + len(part), "loss": sum(part) / len(part), "of": of}
        for first in range(0, len(losses), width)
        if (part := losses[first : first + width])
    ]


def numbers(went: History) -> list[str]:
    """The numbers that the report shows: the watched one first, no counts."""
    every = went.rounds[-1].held if went.rounds else went.start
    rest = [name for name in every if name not in (went.watched, "n")]
    return [went.watched, *rest]


def name_measure(name: str) -> str:
    """A number of `Task.judge` as one says it."""
    return name.upper() if name in ("ap", "ap50") else name


def format_measure(name: str, value: float | None) -> str:
    """Its value: a percentage, or four digits; `—` for None."""
    if value is None:
        return "—"
    return percent(value) if name in SHARES else f"{value:.4g}"
