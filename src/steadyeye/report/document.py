"""What a report says, before it has a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.charts.style import percent
from steadyeye.core.results import find, reach
from steadyeye.core.types import Evaluated, Result, Section
from steadyeye.degradation.curves import operators

WORDS = (
    "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
)

READING = (
    (
        "pm_k",
        "anchor",
        "a frame of a video, with its neighbours, the frames just before and after "
        "it, which show nearly the same.",
    ),
    ("pm_k", "accuracy", "the share of anchors the model gets right."),
    (
        "pm_k",
        "pm-k",
        "the share of anchors for which it is right on the anchor and on every "
        "neighbour up to k frames away.",
    ),
    ("pm_k", "drop", "the difference: what the model gets right once but not steadily."),
    ("flip_rate", "flip rate", "how often its answer changes from one frame to the next."),
    (
        "degraded_accuracy",
        "level",
        "how far an operator has gone, from 0, the image itself, to 30.",
    ),
    (
        "degraded_accuracy",
        "degraded accuracy",
        "the share of images the model still gets right, on average over all levels and "
        "operators; where only those count that it gets right at level 0, a model that nothing "
        "could harm would have 100 %.",
    ),
    (
        "degraded_rank",
        "degraded rank",
        "how many classes the model puts before the true one, on average; 0 is best.",
    ),
    (
        "degraded_probability",
        "degraded probability",
        "what it gives to the true class, on average.",
    ),
    (
        "failure_points",
        "failure point",
        "the first level at which accuracy falls below a threshold.",
    ),
)
"""(metric it goes with, term, what it means)."""

ONE_VIDEO = (
    "Where all anchors come from one video, an interval holds within that video only: it says "
    "nothing about other footage."
)


@dataclass(frozen=True)
class Document:
    """A report: `headline` is one sentence a model and source, `commands` repeat the runs.

    `provenance`: run folder → its record (job, versions, commit).
    """

    title: str
    headline: tuple[str, ...]
    evaluated: Sequence[Evaluated]
    sections: Sequence[Section]
    provenance: Mapping[str, Mapping[str, Any]]
    commands: tuple[str, ...]

    @property
    def reading(self) -> tuple[tuple[str, str], ...]:
        """The terms of the numbers that are there, and what they mean."""
        names = {name.partition("(")[0] for one in self.evaluated for name in one.results}
        return tuple((term, meaning) for metric, term, meaning in READING if metric in names)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What must be read beside the numbers, not below a fold."""
        methods = [r.interval for one in self.evaluated for r in one.results.values()]
        one_video = (ONE_VIDEO,) if any("one video only" in method for method in methods) else ()
        return (*one_video, *filter(None, map(_not_predicted, self.evaluated)))


def _not_predicted(one: Evaluated) -> str:
    errors = one.predictions.errors[~one.predictions.valid]
    if not len(errors):
        return ""
    return (
        f"{one.predictions.model}: {len(errors):,} of {len(one.predictions):,} samples of "
        f"{one.predictions.data} were not predicted and are left out; the first: {errors[0]}."
    )


def headline(evaluated: Sequence[Evaluated]) -> tuple[str, ...]:
    """One sentence a model and source: how often it is right, and how often that breaks."""
    several = len({one.predictions.data for one in evaluated}) > 1
    return tuple(_sentence(one, several) for one in evaluated)


def _sentence(one: Evaluated, several: bool) -> str:
    name = one.predictions.model + (f" on {one.predictions.data}" if several else "")
    degraded = find(one.results, "degraded_accuracy")
    if degraded and degraded.value is not None:
        return _degraded(name, degraded, find(one.results, "failure_points"))
    if points := find(one.results, "failure_points"):
        return _searched(name, points)
    original, perturbed = find(one.results, "accuracy"), find(one.results, "pm_k")
    if original and perturbed and original.value is not None and perturbed.value is not None:
        k = reach(perturbed)
        return (
            f"{name} is right on {percent(original.value)} of anchors, on every frame within ±{k} "
            f"for {percent(perturbed.value)}: {_broken(original.value, perturbed.value)}."
        )
    if original and original.value is not None:
        return f"{name} is right on {percent(original.value)} of {original.n:,} images."
    flips = find(one.results, "flip_rate")
    if flips and flips.value is not None:
        return f"{name} changes its answer on {percent(flips.value)} of consecutive frames."
    return f"{name} was run on {len(one.predictions):,} samples."


def numbers(one: Evaluated) -> tuple[Result, ...]:
    """The results that are one number each; the others are told in sections of their own."""
    return tuple(r for r in one.results.values() if r.value is not None or not r.cells)


def _searched(name: str, points: Result) -> str:
    """Under which operator it fails first."""
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


def _degraded(name: str, degraded: Result, points: Result | None) -> str:
    """How much survives, and what does most harm."""
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
