"""The input and output of a probe, and the source that most probes need: targets × steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from steadyeye.core import model_stages
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Detector, Image, Labels, Model, Sample, Source, Tag
from steadyeye.explain.mining.causes import SCORE
from steadyeye.explain.targets import COLUMNS, Target, tags

Sealed = Callable[[str, Source], Predictions]
"""`(name, source) -> Predictions` of the detector on a source, sealed in the same run."""

LOWEST = 0.001
"""The score threshold that probes set for detectors that allow it."""

Step = Mapping[str, Tag]

Change = Callable[[Image, Target, Step], Image]
"""`(image, target, step) -> image`, of any size; it must not write into the image."""

Measure = Callable[[Image, Target, Step], Mapping[str, Tag]]
"""`(changed image, target, step) -> values` that become tags, with the names of `unmeasured`."""


class ProbeError(UsageError):
    """A probe cannot be made for a detector or its data; other probes may."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A detector on data, and the detections to be explained: mistakes first, then the control.

    `predictions`, `reference_predictions`: sealed; their row i is sample i of `source` and
    `reference`; both None without a reference, when the control is from the data itself. `score`:
    threshold of confident detections.
    """

    model: Detector
    source: Source
    predictions: Predictions
    reference: Source | None
    reference_predictions: Predictions | None
    targets: tuple[Target, ...]
    seed: int
    sealed: Sealed
    score: float = SCORE

    def sample(self, target: Target) -> Sample:
        """The sample of a target, with its unchanged image."""
        if target.cause or self.reference is None:
            return self.source[target.row]
        return self.reference[target.row]


@dataclass(frozen=True, eq=False)
class Probe:
    """A source of changed images; `model`: the model to run, if it is not the detector itself.

    `shard`: rows per shard, small if a row takes long, so that a stop loses little.
    """

    source: Source
    model: Model | Detector | None = None
    shard: int | None = None


def lower_threshold(model: Detector) -> Detector:
    """The detector with a score threshold of `LOWEST`; unchanged if it cannot be lowered.

    A probe measures changes of a score: a score below the recipe's threshold would count as gone,
    and a background with detections below it as empty.
    """
    threshold = model.recipe.get("threshold")
    if threshold is None or float(threshold) <= LOWEST:
        return model
    return model_stages.lower_threshold(model, LOWEST)


def cutoff(model: Detector, predictions: Predictions) -> float:
    """The score below which a detector returns nothing, 0 if there is none.

    It is that of its recipe, otherwise the lowest score of `predictions`, because detectors without
    a threshold return many low scores.
    """
    threshold = model.recipe.get("threshold")
    if threshold is not None:
        return float(threshold)
    raw = predictions.raw_detections
    return float(raw.score.min()) if raw is not None and len(raw.score) else 0.0


@dataclass(frozen=True, eq=False)
class ProbeGrid:
    """A `Source` of targets × steps, the steps of a target following each other.

    `steps`: the tags of each step, whose names are the same in all; step 0 should be the unchanged
    image. `change`: makes the image of a step. `settings`: other settings of the images, as plain
    values, stored with the predictions. `chosen`: the targets; all of the subject if None. `about`:
    further tags of a target, with the same names for all. `measure`: the measurement of each image,
    with `unmeasured` as its values if it failed.
    """

    subject: Subject
    probe: str
    steps: Sequence[Step]
    change: Change
    settings: Mapping[str, Any] = field(default_factory=dict)
    chosen: tuple[Target, ...] | None = None
    notes: tuple[str, ...] = ()
    measure: Measure | None = None
    unmeasured: Mapping[str, Tag] = field(default_factory=dict)
    about: Callable[[Target], Step] | None = None
    # detections are over the detector's own classes
    classes: ClassVar[Classes | None] = None

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of the probe."""
        return self.subject.targets if self.chosen is None else self.chosen

    @property
    def name(self) -> str:
        """The data and the probe, `davis+patch_shuffle`."""
        return f"{self.subject.source.name}+{self.probe}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The tags, and the probe's own name for its analysis to need."""
        more = self._about(self.targets[0]) if self.targets else {}
        return (*COLUMNS, *self.steps[0], *more, *self.unmeasured, self.probe)

    def _about(self, target: Target) -> Step:
        return self.about(target) if self.about else {}

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the data, the targets, the steps, the settings and the seed."""
        subject = self.subject
        return fingerprint(
            subject.source.fingerprint,
            subject.reference.fingerprint if subject.reference else "",
            self.probe,
            repr(self.targets),
            repr([dict(step) for step in self.steps]),
            repr(dict(self.settings)),
            str(subject.seed),
        )

    @property
    def ids(self) -> Sequence[str]:
        """Target ids with the prefix `control/` for the control, and the number of the step."""
        return [_id(target, step) for target in self.targets for step in range(len(self.steps))]

    @property
    def truths(self) -> Sequence[Labels]:
        """No labels."""
        return [()] * len(self)

    def missing(self) -> Sequence[str]:
        """The files that the data or the reference lack."""
        reference = self.subject.reference
        return [*self.subject.source.missing(), *(reference.missing() if reference else ())]

    def __len__(self) -> int:
        return len(self.targets) * len(self.steps)

    def __getitem__(self, index: int) -> Sample:
        target_number, number = divmod(index, len(self.steps))
        target, step = self.targets[target_number], self.steps[number]
        sample = self.subject.sample(target)
        video = str(sample.tags.get("video", sample.id))
        measure = self.measure
        return replace(
            sample,
            id=_id(target, number),
            image=lambda: self.change(sample.image(), target, step),
            truth=(),
            group=target.id,
            tags={
                **tags(target, sample.id, video),
                **step,
                **self._about(target),
                **self.unmeasured,
            },
            measure=None if measure is None else lambda image: measure(image, target, step),
            boxes=None,
            size=None,
            masks=None,
            # the data's key identifies the unchanged image
            key=None,
        )


def _id(target: Target, step: int) -> str:
    return f"{'' if target.cause else 'control/'}{target.id}@{step:03d}"
