"""What a report says, before it has a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.charts.style import percent
from steadyeye.core.results import find, reach
from steadyeye.core.types import Evaluated, Section

WORDS = (
    "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
)

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
