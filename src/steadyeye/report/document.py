"""What a report says, before it has a form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core.sections import Section
from steadyeye.core.types import Evaluated, Result

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
        "classes",
        "among how many the model chooses its answer. Chance alone is right once in as many.",
    ),
    (
        "pm_k",
        "pm-k",
        "the share of anchors for which it is right on the anchor and on every "
        "neighbour up to k frames away.",
    ),
    (
        "conditional_robustness",
        "conditional robustness",
        "of the frames exactly k away from an anchor that is right, the share that is right.",
    ),
    (
        "random_neighbour",
        "random neighbour",
        "the share of anchors for which it is right on a neighbour drawn at random: what nearness "
        "alone costs, where pm-k takes the worst of them.",
    ),
    ("pm_k", "drop", "the difference: what the model gets right once but not steadily."),
    (
        "effective_robustness",
        "effective robustness",
        "pm-10 minus the pm-10 that published models of the same accuracy have, in percentage "
        "points: 0 is as they are, above 0 steadier.",
    ),
    ("flip_rate", "flip rate", "how often its answer changes from one frame to the next."),
    (
        "self_consistency",
        "self-consistency",
        "the share of frames for which it gives every frame up to k frames away the same answer; "
        "right or wrong, as no labels are needed.",
    ),
    (
        "dwell_time",
        "dwell time",
        "how long an answer holds, half of them longer and half of them shorter; answers that a "
        "scene's end cuts off count as holding at least that long.",
    ),
    (
        "confidence_jump",
        "confidence jump",
        "by how much its confidence changes from one frame to the next, on average.",
    ),
    (
        "map",
        "mAP",
        "average precision of a detector, averaged over classes: 100 % would be every object found "
        "and nothing else.",
    ),
    (
        "map_without_ood",
        "mAP without OOD",
        "the same with detections forgiven that lie on an object of no class the model has.",
    ),
    ("mar", "mAR", "the share of objects found at all, averaged over how exactly."),
    (
        "pm_k_map",
        "pm-k mAP",
        "mAP over the frame within ±k of each anchor on which the detector does worst.",
    ),
    ("localization", "localization", "the same with all classes made one."),
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
    "Where all frames come from one video, an interval holds within that video only: it says "
    "nothing about other footage."
)


@dataclass(frozen=True)
class Document:
    """A report: `headline` is one sentence a model and source, `commands` repeat the runs.

    `provenance`: run folder → its record (job, versions, commit). `left_out`: one line on the
    sections whose packages are not installed, "" where there are none.
    """

    title: str
    headline: tuple[str, ...]
    evaluated: Sequence[Evaluated]
    sections: Sequence[Section]
    provenance: Mapping[str, Mapping[str, Any]]
    commands: tuple[str, ...]
    left_out: str = ""

    @property
    def has_numbers(self) -> bool:
        """Whether any result is one number; a search for failure points has none."""
        return any(numbers(one) for one in self.evaluated)

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


def numbers(one: Evaluated) -> tuple[Result, ...]:
    """The results that are one number each; the others are told in sections of their own."""
    return tuple(r for r in one.results.values() if r.value is not None or not r.cells)
