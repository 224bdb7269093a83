"""Profiles and failure points under degradation before and after training further."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.degradation.curves import MEAN, statistic
from steadyeye.degradation.failure_points import (
    FailurePoint,
    FailureShift,
    accuracy_at_zero,
    accuracy_loss,
    measure_failure_shifts,
)
from steadyeye.report.charts.specs import SCHEMA, draw_bands, lines, shares
from steadyeye.report.comparison.before_after import (
    READING,
    Step,
    TrainingGains,
    adjust_gains,
    augmentation,
    caveats,
    changes,
    dumbbells,
    gain,
    numbers,
    steps,
    tables,
)
from steadyeye.report.comparison.leaderboards import common

HALF = 0.5  # the failure point that is told first, if it was asked for
DRAWN = 6  # operators that are drawn
WIDTH, HEIGHT, COLUMNS = 235, 150, 3


@needs("truth", "operator", "level", "profile")
def degradation_gains(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models that were trained further beside what they were, in sweeps of the same images.

    Accuracy of the images themselves and under degradation, the share kept of what each model has
    right at level 0, profiles, and how far failure points moved. None where no model was trained
    from another one that is there.
    """
    paired = [(step, _pair(step)) for step in steps(evaluated)]
    found = [(step, _measure_gains(step, pair), _list_shifts(step, pair)) for step, pair in paired]
    if not found:
        return None
    told = [each for _, each, _ in found]
    shown = tables("Before and after, under degradation", told)
    shown += tuple(_shifts(each, shifts) for _, each, shifts in found if shifts)
    return Section(
        topic=Topic.TRAINING,
        place=9,
        # what augmentation alone did is told first
        title=_title(*next((each for each in found if each[0].augmented), found[0]))
        + (f"; {len(found) - 1} more below" if len(found) > 1 else ""),
        text=(
            *(line for each in found for line in _sentences(*each)),
            *dict.fromkeys(line for step, _, _ in found for line in caveats(step)),
        ),
        method=(
            "Accuracy under degradation is the mean over operators of the mean over their "
            "levels. Retained accuracy counts the images that a model has right at level 0; "
            "these differ from model to model. Failure points count the same images. A failure "
            "point beyond the last level counts as one level beyond it, and its shift is marked "
            f"≥ or ≤. {READING}",
        ),
        tables=shown,
        figures=(
            dumbbells("degradation_gains", told),
            *filter(None, (_profiles(step) for step, _, _ in found)),
        ),
    )


def _pair(step: Step) -> tuple[Predictions, Predictions]:
    before, after = common([step.before.predictions, step.after.predictions])
    return before, after


def _measure_gains(step: Step, pair: tuple[Predictions, Predictions]) -> TrainingGains:
    before, after = pair

    def average_degraded(images: str) -> list[Any]:
        return [statistic(each, each.right, images) for each in (before, after)]

    found = (
        gain("accuracy", accuracy_at_zero(before), accuracy_at_zero(after)),
        gain("accuracy under degradation", *average_degraded("all")),
        gain("drop", accuracy_loss(before), accuracy_loss(after)),
        gain("retained accuracy", *average_degraded("right")),
    )
    return TrainingGains(*step.names, adjust_gains(found))


def _list_shifts(step: Step, pair: tuple[Predictions, Predictions]) -> list[FailureShift]:
    """The failure points that both were asked for."""
    asked = [one.bound_metrics.get("failure_points") for one in (step.before, step.after)]
    result = step.after.results.get("failure_points")
    if result is None or None in asked:
        return []
    thresholds = tuple(float(cell.name.removeprefix("below ")) for cell in result.cells[0].cells)
    # a metric is asked for with its parameters
    metric = step.after.bound_metrics["failure_points"].metric
    images = metric.keywords.get("images") if isinstance(metric, partial) else None
    return measure_failure_shifts(*pair, thresholds, images or "right")


def _first(step: Step, shifts: Sequence[FailureShift]) -> FailureShift | None:
    """The failure point that is told first: of what it was augmented with, at one half."""
    at = [each for each in shifts if each.before.threshold == HALF] or list(shifts)
    own = [each for each in at if each.before.operator in augmentation(step.after.predictions)]
    return next(iter(own or (at if len(at) == 1 else [])), None)


def _title(step: Step, told: TrainingGains, shifts: Sequence[FailureShift]) -> str:
    first = _first(step, shifts)
    said = changes([told.gains[0], told.gains[3]])
    if first is not None:
        said = f"{_point(first)} {_by(first)}; {said}"
    return f"{told.after} and {told.before} under degradation: {said}"


def _sentences(step: Step, told: TrainingGains, shifts: Sequence[FailureShift]) -> list[str]:
    lines = [f"{told.after} compared with {told.before}: {numbers(told.gains)}."]
    first = _first(step, shifts)
    if first is not None:
        whose = "the operator of the augmentation, " if augmentation(step.after.predictions) else ""
        lines.append(
            f"Under {first.before.operator}, {whose}accuracy falls below "
            f"{percent(first.before.threshold, 0)} at {_level(first.before)} before training "
            f"and at {_level(first.after)} after: the failure point {_by(first)} (95 % interval "
            f"{_ends(first)})."
        )
    return lines


def _point(found: FailureShift) -> str:
    return f"the {percent(found.before.threshold, 0)} failure point under {found.before.operator}"


def _by(found: FailureShift) -> str:
    """By how far it moved, in words."""
    if found.value is None:
        return "is beyond the last level before and after"
    if not found.value and not found.open and max(-found.low, found.high) <= 1:
        return "did not move"
    unit = "level" if abs(found.value) == 1 else "levels"
    unsure = ", no clear shift" if found.low <= 0 <= found.high else ""
    return f"moved {_format_bound(found)}{_format_signed(found.value)} {unit}{unsure}"


def _format_signed(value: int) -> str:
    return f"{value:+d}".replace("-", "−").replace("+0", "0")


def _ends(found: FailureShift) -> str:
    return f"{_format_signed(found.low)} to {_format_signed(found.high)}"


def _level(point: FailurePoint) -> str:
    return "no level" if point.level is None else f"level {point.level}"


def _shifts(told: TrainingGains, shifts: Sequence[FailureShift]) -> Table:
    rows = [
        (
            each.before.operator,
            percent(each.before.threshold, 0),
            _within(each.before),
            _within(each.after),
            "—" if each.value is None else _format_bound(each) + _format_signed(each.value),
            _ends(each),
            f"{each.n:,}",
            each.method,
        )
        for each in shifts
    ]
    header = (
        "operator",
        "below",
        "before",
        "after",
        "shift (levels)",
        "95 % interval",
        "n",
        "method",
    )
    return Table(f"Failure points of {told.before} and {told.after}", header, tuple(rows))


def _format_bound(found: FailureShift) -> str:
    return ("≤ " if found.before.level is None else "≥ ") if found.open else ""


def _within(point: FailurePoint) -> str:
    low = "beyond" if point.low is None else f"{point.low}"
    high = "beyond" if point.high is None else f"{point.high}"
    level = "not reached" if point.level is None else f"{point.level}"
    return f"{level} ({low}–{high})"


def _profiles(step: Step) -> Figure | None:
    """Both profiles: on average and under what was augmented with, or under every operator."""
    found = [find(one.results, "degraded_accuracy") for one in (step.before, step.after)]
    if None in found:
        return None
    names = _choose_operators([each.name for each in found[1].cells], step)  # type: ignore[union-attr]
    rows = [
        {
            "model": model,
            "operator": cell.name,
            "level": int(level.name.removeprefix("level ")),
            **{end: _round_value(getattr(level, end)) for end in ("value", "low", "high")},
        }
        for model, result in zip(step.names, found, strict=True)
        for cell in (result.cells if result else ())
        if cell.name in names
        for level in cell.cells
    ]
    return Figure(
        name="degradation_gains_profiles",
        caption="Accuracy by level before and after training, with 95 % intervals.",
        alt=f"Accuracy by level under {', '.join(names)} for {' and '.join(step.names)}.",
        spec=_spec(rows, step.names, names),
    )


def _choose_operators(names: Sequence[str], step: Step) -> list[str]:
    own = [name for name in names if name in augmentation(step.after.predictions)]
    others = [name for name in names if name not in {MEAN, *own}]
    mean = [MEAN] if MEAN in names else []
    return [*mean, *own, *others][:DRAWN]


def _round_value(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _spec(
    rows: Sequence[Mapping[str, Any]], models: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    x = {"field": "level", "type": "quantitative", "title": "", "axis": {"tickCount": 4}}
    channels = lines(models, "model")
    band = draw_bands(len(models), x=x, y=shares("low", ""), color=channels["color"])
    line = {
        "mark": {"type": "line", "tooltip": True},
        "encoding": {"x": x, "y": shares("value", ""), **channels},
    }
    header = {"labelAnchor": "start"}
    facet = {"field": "operator", "type": "nominal", "title": "", "sort": names, "header": header}
    return {
        "$schema": SCHEMA,
        "data": {"values": list(rows)},
        "facet": facet,
        "columns": COLUMNS,
        "spacing": 12,
        # or the last row has axes below charts that are not there
        "resolve": {"axis": {"x": "independent"}},
        "spec": {"width": WIDTH, "height": HEIGHT, "layer": [band, line]},
    }
