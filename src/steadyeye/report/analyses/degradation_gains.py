"""Profiles and failure points under degradation before and after training further."""

from collections.abc import Sequence
from functools import partial

from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find, read_parameter
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Evaluated, needs
from steadyeye.degradation.curves import MEAN, statistic
from steadyeye.degradation.failure_points import (
    FailurePoint,
    FailureShift,
    accuracy_at_zero,
    accuracy_loss,
    measure_failure_shifts,
)
from steadyeye.report.charts.specs import draw_profiles, list_levels, shares
from steadyeye.report.comparison.before_after import (
    READING,
    Step,
    TrainingGains,
    adjust_gains,
    augmentation,
    caveats,
    changes,
    dumbbells,
    find_shared,
    gain,
    numbers,
    steps,
    tables,
)
from steadyeye.report.comparison.leaderboards import common

HALF = 0.5  # the failure point that is told first, if it was asked for
DRAWN = 6  # operators that are drawn
HEIGHT = 150  # of a chart, in pixels


@needs("truth", "operator", "level", "profile")
def degradation_gains(evaluated: Sequence[Evaluated]) -> Section | None:
    """Fine-tuned models compared with their base models on the same degraded images.

    Accuracy of the images themselves and under degradation, the retained share of the images that
    each model has right at level 0, profiles, and shifts of failure points. None if no model was
    trained from another model of the report.
    """
    measured = [
        (step, _measure_gains(step, pair), _list_shifts(step, pair))
        for step in steps(evaluated)
        for pair in (common([step.before.predictions, step.after.predictions]),)
    ]
    if not measured:
        return None
    gains = [item for _, item, _ in measured]
    parts = tables("Before and after training, under degradation", gains)
    parts += tuple(_shifts(item, shifts) for _, item, shifts in measured if shifts)
    return Section(
        topic=Topic.TRAINING,
        place=9,
        # what augmentation alone did is told first
        title=_title(*next((item for item in measured if item[0].augmented), measured[0]))
        + (f"; {len(measured) - 1} more below" if len(measured) > 1 else ""),
        text=(
            *(line for item in measured for line in _sentences(*item)),
            *dict.fromkeys(line for step, _, _ in measured for line in caveats(step)),
        ),
        method=(
            "Accuracy under degradation is the mean over operators of the mean over their "
            "levels. Retained accuracy counts the images that a model has right at level 0; "
            "these differ from model to model. Failure points count the same images. A failure "
            "point beyond the last level counts as one level beyond it, and its shift is marked "
            f"≥ or ≤. {READING}",
        ),
        tables=parts,
        figures=(
            dumbbells("degradation_gains", gains),
            *filter(None, (_profiles(step) for step, _, _ in measured)),
        ),
    )


def _measure_gains(step: Step, pair: Sequence[Predictions]) -> TrainingGains:
    def average_degraded(images: str) -> list[Statistic]:
        return [statistic(table, table.right, images) for table in pair]

    gains = (
        gain("accuracy", *map(accuracy_at_zero, pair)),
        gain("accuracy under degradation", *average_degraded("all")),
        gain("drop", *map(accuracy_loss, pair)),
        gain("retained accuracy", *average_degraded("right")),
    )
    return TrainingGains(*step.names, adjust_gains(gains))


def _list_shifts(step: Step, pair: Sequence[Predictions]) -> list[FailureShift]:
    """The shifts of the failure points that both models have."""
    shared = find_shared(step.before, step.after, "failure_points")
    if not shared:
        return []
    result, metric = step.after.results[shared], step.after.bound_metrics[shared].metric
    thresholds = tuple(float(cell.name.removeprefix("below ")) for cell in result.cells[0].cells)
    # a metric is asked for with its parameters, and has them in its name beside another of its kind
    images = metric.keywords.get("images") if isinstance(metric, partial) else None
    images = read_parameter(result, "images") or images or "right"
    return measure_failure_shifts(pair[0], pair[1], thresholds, images)


def _first(step: Step, shifts: Sequence[FailureShift]) -> FailureShift | None:
    """The failure point that comes first: under the operator of the augmentation, at one half."""
    at = [shift for shift in shifts if shift.before.threshold == HALF] or list(shifts)
    own = [shift for shift in at if shift.before.operator in augmentation(step.after.predictions)]
    return next(iter(own or (at if len(at) == 1 else [])), None)


def _title(step: Step, gains: TrainingGains, shifts: Sequence[FailureShift]) -> str:
    first = _first(step, shifts)
    text = changes([gains.gains[0], gains.gains[3]])
    if first is not None:
        threshold, operator = percent(first.before.threshold, 0), first.before.operator
        text = f"the {threshold} failure point under {operator} {_by(first)}; {text}"
    return f"{gains.after} and {gains.before} under degradation: {text}"


def _sentences(step: Step, gains: TrainingGains, shifts: Sequence[FailureShift]) -> list[str]:
    lines = [f"{gains.after} compared with {gains.before}: {numbers(gains.gains)}."]
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


def _by(shift: FailureShift) -> str:
    """The size of the shift, in words."""
    if shift.value is None:
        return "is beyond the last level before and after"
    if not shift.value and not shift.open and max(-shift.low, shift.high) <= 1:
        return "did not move"
    unit = "level" if abs(shift.value) == 1 else "levels"
    unsure = ", no clear shift" if shift.low <= 0 <= shift.high else ""
    return f"moved {_format_bound(shift)}{_format_signed(shift.value)} {unit}{unsure}"


def _format_signed(value: int) -> str:
    return f"{value:+d}".replace("-", "−").replace("+0", "0")


def _ends(shift: FailureShift) -> str:
    return f"{_format_signed(shift.low)} to {_format_signed(shift.high)}"


def _level(point: FailurePoint) -> str:
    return "no level" if point.level is None else f"level {point.level}"


def _shifts(gains: TrainingGains, shifts: Sequence[FailureShift]) -> Table:
    rows = [
        (
            shift.before.operator,
            percent(shift.before.threshold, 0),
            _within(shift.before),
            _within(shift.after),
            "—" if shift.value is None else _format_bound(shift) + _format_signed(shift.value),
            _ends(shift),
            f"{shift.n:,}",
            shift.method,
        )
        for shift in shifts
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
    return Table(f"Failure points of {gains.before} and {gains.after}", header, tuple(rows))


def _format_bound(shift: FailureShift) -> str:
    return ("≤ " if shift.before.level is None else "≥ ") if shift.open else ""


def _within(point: FailurePoint) -> str:
    low = "beyond" if point.low is None else f"{point.low}"
    high = "beyond" if point.high is None else f"{point.high}"
    level = "not reached" if point.level is None else f"{point.level}"
    return f"{level} ({low}–{high})"


def _profiles(step: Step) -> Figure | None:
    """Both profiles: the mean and the operator of the augmentation, or every operator."""
    results = [find(entry.results, "degraded_accuracy") for entry in (step.before, step.after)]
    if None in results:
        return None
    names = _choose_operators([part.name for part in results[1].cells], step)  # type: ignore[union-attr]
    rows = [
        row
        for model, result in zip(step.names, results, strict=True)
        for row in (list_levels(result, model) if result else ())
        if row["operator"] in names
    ]
    channels = shares("value", "accuracy"), shares("low", "accuracy")
    return Figure(
        name="degradation_gains_profiles",
        caption="Accuracy by level before and after training, with 95 % intervals.",
        alt=f"Accuracy by level under {', '.join(names)} for {' and '.join(step.names)}.",
        spec=draw_profiles(rows, step.names, names, HEIGHT, channels),
    )


def _choose_operators(names: Sequence[str], step: Step) -> list[str]:
    own = [name for name in names if name in augmentation(step.after.predictions)]
    others = [name for name in names if name not in {MEAN, *own}]
    mean = [MEAN] if MEAN in names else []
    return [*mean, *own, *others][:DRAWN]
