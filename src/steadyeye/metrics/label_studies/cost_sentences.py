"""The cost of a question, in words and tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from steadyeye.core.format import interval, number_of, percent, points
from steadyeye.metrics.label_studies.cost import (
    LATE,
    PILOT,
    DecisionCost,
    Pilot,
    SceneCost,
    WidthCost,
    is_answered,
)
from steadyeye.metrics.label_studies.sentences import say_sets
from steadyeye.metrics.label_studies.study import LabelStudy

CANDIDATES = {
    "pm_k": "sets with one prediction on all frames",
    "drop": "sets with several predictions",
    "accuracy": "sets with a prediction",
    "false_positive_rate": "images with a detection above the score",
    "image_error_rate": "images",
}
"""Metric → words for the sets that can count, from which labels are sampled."""
COUNT = {
    "pm_k": "are right",
    "drop": "are right on the anchor",
    "accuracy": "are right",
    "false_positive_rate": "have a false positive",
    "image_error_rate": "have an error",
}
"""Metric → words for the sets that count."""
ENDS = ("lower end", "estimate", "upper end")
"""The rows of a pilot: its interval and its estimate."""
SAME = "1×"
CLEAR = 1.5  # times fewer labels; below it a study promises nothing


@dataclass(frozen=True)
class CostTable:
    """A table with its heading, and the sentences below it; the first `numbers` columns align."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int
    notes: tuple[str, ...]


def build_decision_table(
    study: LabelStudy, costs: Sequence[DecisionCost], names: Sequence[str] = ()
) -> CostTable:
    """Labels until decided, a row for each value; `names`: names of the rows, if they have any."""
    power = percent(0.9, 0)
    columns = (
        "distance (pp)",
        study.question.name,
        "median labels",
        f"labels in {percent(LATE, 0)} of studies",
        "fixed sample",
        "fewer",
    )
    rows = [
        (
            points(cost.distance),
            percent(cost.value),
            f"{cost.median:,}",
            f"≤ {cost.late:,}",
            f"{cost.fixed:,}",
            say_ratio(cost.median, cost.fixed),
        )
        for cost in costs
    ]
    notes = (
        _say_candidates(study),
        f"The fixed sample is drawn from all {say_sets(study)}. Its size is chosen for the "
        f"distance, with {power} power.",
    )
    return _build(f"Labels until {study.question} is decided", columns, rows, names, notes)


def build_width_table(
    study: LabelStudy, costs: Sequence[WidthCost], names: Sequence[str] = ()
) -> CostTable:
    """Labels until the interval is narrow, a row for each share; `names`: names of the rows."""
    columns = ("among these", study.question.name, "labels", "uniform sample", "fewer")
    rows = [
        (
            percent(cost.among),
            percent(cost.value),
            f"{cost.labels:,}",
            f"{cost.uniform:,}",
            say_ratio(cost.labels, cost.uniform),
        )
        for cost in costs
    ]
    notes = (
        _say_candidates(study),
        f"The uniform sample is drawn from all {say_sets(study)}.",
    )
    heading = f"Labels until {study.question.name} has an interval of {_say_target(study)}"
    return _build(heading, columns, rows, names, notes)


def _build(
    heading: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    names: Sequence[str],
    notes: tuple[str, ...],
) -> CostTable:
    if any(row[-1] == SAME for row in rows):
        notes += (f"{SAME}: less than {CLEAR:g} times fewer labels, which is no promise.",)
    if not names:
        return CostTable(heading, columns, tuple(rows), len(columns), notes)
    notes += ("The value in each row is that of a whole number of sets.",)
    longer = tuple((*row, name) for row, name in zip(rows, names, strict=True))
    return CostTable(heading, (*columns, "pilot"), longer, len(columns), notes)


def say_ratio(labels: int, others: int) -> str:
    """The factor of saved labels: `2.5×`; `1×` below a factor of 1.5."""
    ratio = others / max(labels, 1)
    return SAME if 0.95 <= ratio < CLEAR else f"{ratio:.1f}×"


def say_unknown(study: LabelStudy) -> str:
    """A sentence: each row is an assumption, and a pilot would replace it."""
    return (
        f"Each row assumes a value of {study.question.name}, which nobody knows without labels. A "
        f"pilot of {PILOT} labels estimates it: stop `steadyeye label` after {PILOT}, export them "
        "with `steadyeye review-export`, and give their folder as --labels."
    )


def say_pilot(study: LabelStudy, pilot: Pilot) -> str:
    """The estimate of a pilot, in words."""
    metric, share = study.question.metric, pilot.interval
    among = (share.value or 0.0) * len(study.sets) / study.countable
    labels = number_of(pilot.labels, "label")
    text = (
        f"After {labels} {percent(among)} of the {study.countable:,} {CANDIDATES[metric]} "
        f"{COUNT[metric]}: {study.question.name} of these {say_sets(study)} is "
        f"{percent(share.value)} (95 % interval {interval(share.low, share.high)})"
    )
    if pilot.unknown:
        text += f"; nobody could label {pilot.unknown:,} of them"
    return f"{text}."


def say_pilot_decision(study: LabelStudy, pilot: Pilot, costs: Sequence[DecisionCost]) -> str:
    """The cost of a decision, estimated by a pilot; `costs`: one for each of `ENDS`."""
    if is_answered(pilot, costs):
        return f"The labels decide {study.question}: it takes 0 more labels."
    low, value, high = costs
    counted = ", those of the pilot included" if pilot.start[0] else ""
    text = (
        f"At the estimate half of the studies of {study.question} end after "
        f"{number_of(value.median, 'label')}, {percent(LATE, 0)} after {value.late:,}{counted}. At "
        f"the ends of the interval half of them end after {low.median:,} and {high.median:,}."
    )
    low_end, _, high_end = pilot.right
    if low_end < study.threshold <= high_end:
        text += (
            f" The interval includes what is required. The nearer {study.question.name} is to it, "
            f"the more labels it takes, up to all {study.countable:,}."
        )
    return text + _say_few(study, pilot)


def say_pilot_width(study: LabelStudy, pilot: Pilot, costs: Sequence[WidthCost]) -> str:
    """The cost of a width, estimated by a pilot; `costs`: one for each of `ENDS`."""
    numbers = [cost.labels for cost in costs]
    return (
        f"{_say_target(study)} take about {number_of(numbers[1], 'label')} at the "
        f"estimate, {numbers[0]:,} and {numbers[2]:,} at the ends of the interval."
    ) + _say_few(study, pilot)


def say_scenes(study: LabelStudy, cost: SceneCost) -> str:
    """The number of scenes that need a label, in words."""
    scenes = number_of(cost.most, "scene")
    sets = say_sets(study)
    about = f"{study.countable:,} of these {sets} can count, in {scenes}. One label a scene"
    if study.question.share is None:
        return (
            f"{about}, the largest first: {_say_target(study)} take "
            f"{number_of(cost.least, 'label')}."
        )
    return (
        f"{about}, the largest first: {study.question} takes at least "
        f"{number_of(cost.least, 'label')} and at most {cost.most:,}."
    )


def _say_few(study: LabelStudy, pilot: Pilot) -> str:
    """A warning if a pilot has few labels; otherwise empty."""
    if pilot.labels >= min(PILOT, study.countable):
        return ""
    labels = number_of(pilot.labels, "label")
    return f" The pilot has {labels}; {PILOT} or more estimate the cost better."


def _say_target(study: LabelStudy) -> str:
    """The half-width at which a study stops, `±5 percentage points`."""
    return f"±{(study.stop.target or 0.0) * 100:g} percentage points"


def _say_candidates(study: LabelStudy) -> str:
    return (
        f"Labels are drawn from the {study.countable:,} {CANDIDATES[study.question.metric]}, of "
        f"{say_sets(study)}."
    )
