"""The one sentence a model and source with which a report begins."""

from collections.abc import Mapping, Sequence

import numpy as np

from steadyeye.charts.style import duration, percent
from steadyeye.classes.class_map import of_destinations
from steadyeye.classes.partners import sentence
from steadyeye.core.results import find, reach
from steadyeye.core.table import Predictions
from steadyeye.core.types import Classes, Evaluated, Result
from steadyeye.degradation.curves import operators

WORDS = (
    "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
)


def headline(evaluated: Sequence[Evaluated]) -> tuple[str, ...]:
    """One sentence a model and source: how often it is right, and how often that breaks.

    Nothing of probes, whose images were made to be wrong about.
    """
    plain = [one for one in evaluated if not one.predictions.probe]
    several = len({one.predictions.data for one in plain}) > 1
    return tuple(_sentence(one, several) for one in plain)


def _sentence(one: Evaluated, several: bool) -> str:
    name = one.predictions.model + (f" on {one.predictions.data}" if several else "")
    told = (tell(name, one.results) for tell in TELLERS)
    said = next(filter(None, told), f"{name} was run on {len(one.predictions):,} samples.")
    lost = _partnerless(one.predictions)
    return f"{said} {lost[0].upper()}{lost[1:]}." if lost else said


def _partnerless(table: Predictions) -> str | None:
    """Which classes that occur in the data no class of the model stands for."""
    if table.reach is None:
        return None
    occurs = np.asarray(table.truth.any(axis=0))
    there = [name for name, some in zip(table.classes, occurs, strict=True) if some]
    to = {own: int(label) for own, label in enumerate(table.reach) if label >= 0}
    found = of_destinations(Classes(table.model_classes), Classes(table.classes), to, "")
    return sentence(found, there)


def _steady(name: str, results: Mapping[str, Result]) -> str | None:
    """How often it is right, and how often that breaks."""
    original, perturbed = find(results, "accuracy"), find(results, "pm_k")
    if original is None or original.value is None:
        return None
    if perturbed is None or perturbed.value is None:
        return f"{name} is right on {percent(original.value)} of {original.n:,} images."
    return (
        f"{name} is right on {percent(original.value)} of anchors, on every frame within "
        f"±{reach(perturbed)} for {percent(perturbed.value)}: "
        f"{_broken(original.value, perturbed.value)}."
    )


def _detected(name: str, results: Mapping[str, Result]) -> str | None:
    """How well it detects, and how much worse on the worst frames."""
    plain, worst = find(results, "map"), find(results, "pm_k_map")
    if plain is None or plain.value is None:
        return None
    if worst is None or worst.value is None:
        return f"{name} has a mAP of {percent(plain.value)} on {plain.n:,} images."
    return (
        f"{name} has a mAP of {percent(plain.value)} on anchors, and of {percent(worst.value)} on "
        f"the worst frame within ±{reach(worst)} of each."
    )


def _flips(name: str, results: Mapping[str, Result]) -> str | None:
    """How often the answer changes, without labels."""
    flips = find(results, "flip_rate")
    if flips is None or flips.value is None:
        return None
    return f"{name} changes its answer on {percent(flips.value)} of consecutive frames."


def _wavers(name: str, results: Mapping[str, Result]) -> str | None:
    """How long an answer holds along whole videos, and where all answers nearby are the same."""
    dwell, same = find(results, "dwell_time"), find(results, "self_consistency")
    if dwell is None or not dwell.n:
        return None
    (between,) = (cell for cell in dwell.cells if cell.name == "between changes, seconds")
    if between.value is None:
        return f"{name} never changes its answer within a scene."
    said = f"{name} changes its answer every {duration(between.value)}"
    if same is None or same.value is None:
        return f"{said}."
    return (
        f"{said}; around {percent(same.value)} of frames it keeps to one answer for "
        f"±{reach(same)} frames."
    )


def _searched(name: str, results: Mapping[str, Result]) -> str | None:
    """Under which operator it fails first."""
    points = find(results, "failure_points")
    if points is None:
        return None
    every = [
        (point.value, operator.name, point)
        for operator in points.cells
        for point in operator.cells[len(operator.cells) // 2 :][:1]
        if point.value is not None
    ]
    told = f"{len(points.cells)} operators, {', '.join(points.notes)}"
    if not every:
        return f"{name} fails under none of {told}."
    level, operator, point = min(every, key=lambda each: each[:2])
    threshold = percent(float(point.name.removeprefix("below ")), 0)
    return f"{name} falls below {threshold} first under {operator}, by level {level:.0f}; {told}."


def _degraded(name: str, results: Mapping[str, Result]) -> str | None:
    """How much survives, and what does most harm."""
    degraded, points = find(results, "degraded_accuracy"), find(results, "failure_points")
    if degraded is None or degraded.value is None:
        return None
    every = operators(degraded)
    whose = "what it had right" if every[0].cells[0].value == 1 else "all images"
    # what is aimed at the model itself says little of the world
    blind = [cell for cell in every if cell.name != "gradient_descent"] or every
    worst = min(blind, key=lambda cell: cell.value or 0)
    sentence = (
        f"{name} is right on {percent(degraded.value)} of {whose}, on average over {len(every)} "
        f"operator{'s' if len(every) > 1 else ''} and all levels; what harms it most is "
        f"{worst.name}, with {percent(worst.value)}"
    )
    half = [
        point
        for cell in (points.cells if points else ())
        if cell.name == worst.name
        for point in cell.cells
        if point.name == "below 0.5" and point.value is not None
    ]
    return sentence + (f", half lost by level {half[0].value:.0f}." if half else ".")


def _broken(original: float, perturbed: float) -> str:
    """How many of the anchors that are right break, as `one in six breaks`."""
    if original == 0:
        return "it gets none right that could break"
    lost = (original - perturbed) / original
    if lost == 0:
        return "none breaks"
    if lost == 1:
        return "every one breaks"
    if lost > 0.45:
        return f"{percent(lost, 0)} of those break"
    each = round(1 / lost)
    return f"one in {WORDS[each - 1] if each <= len(WORDS) else each} breaks"


# the first that has something to say is heard
TELLERS = (_degraded, _searched, _detected, _steady, _wavers, _flips)
