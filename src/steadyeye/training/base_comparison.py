"""The base and the model trained from it on the held examples: what training changed.

The base is what the user had: the model as given, through its class map onto the classes that were
learned. The network with a new head, with which training starts, is not the base.

::

    held/base, held/tuned    both as sealed runs over the held examples
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.claims import Claim, above, below, first
from steadyeye.core.errors import UsageError
from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import parse
from steadyeye.core.stats.trials import Trials
from steadyeye.core.storage.files import Place
from steadyeye.core.types import WITHIN, Classes, Labels, Sample
from steadyeye.metrics.map import outcomes
from steadyeye.report.comparison.before_after import Gain, amount, gain, share
from steadyeye.runner.collect import tables
from steadyeye.runner.job import Job
from steadyeye.runner.run import Watcher, run
from steadyeye.runner.task import class_map_of
from steadyeye.runner.validate import of_objects
from steadyeye.training.protocol import Example, Examples

FOLDER = "held"


@dataclass(frozen=True, eq=False)
class HeldSource:
    """A `Source` of held examples, over the classes that are learned."""

    examples: Examples
    items: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The data they are held out of."""
        return f"{self.examples.name}, held out"

    @property
    def classes(self) -> Classes:
        """The classes that are learned."""
        return self.examples.classes

    @property
    def columns(self) -> tuple[str, ...]:
        """Labels and video, and boxes where all have them."""
        boxed = all(example.boxes is not None for example in self.items)
        return ("truth", "video", *(["boxes"] if boxed else []))

    @property
    def fingerprint(self) -> str:
        """That of the examples."""
        return self.examples.fingerprint

    @property
    def notes(self) -> tuple[str, ...]:
        """How they were chosen."""
        return self.examples.notes

    @cached_property
    def ids(self) -> Sequence[str]:
        """The id of each."""
        return [example.id for example in self.items]

    @cached_property
    def truths(self) -> Sequence[Labels]:
        """The labels of each."""
        return [example.labels for example in self.items]

    def missing(self) -> Sequence[str]:
        """Nothing: they were read while training."""
        return ()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Sample:
        example = self.items[index]
        return Sample(
            example.id,
            example.image,
            truth=example.labels,
            tags={"video": example.video},
            boxes=example.boxes,
            verified=example.verified,
        )


@dataclass(frozen=True)
class Beside:
    """The held number of the base and of the trained model; `gain` is None without a base.

    `why`: what there is to say of the base, such as why there is none, among how many classes it
    chooses, or which of them it cannot name.
    """

    gain: Gain | None
    why: str

    @property
    def claim(self) -> Claim | None:
        """What may be asserted of the training: that the number rose, or fell."""
        if self.gain is None or self.gain.difference is None:
            return None
        gap, p = self.gain.difference, self.gain.p
        text = f"{self.gain.metric} on the held-out data: {self._numbers}"
        return first(
            [
                above(f"Fine-tuning raised {text}", gap, p=p),
                below(f"Fine-tuning lowered {text}", gap, p=p),
            ]
        )

    @property
    def title(self) -> str:
        """The claim where it is supported; else the numbers, with a question."""
        if self.claim is not None:
            return self.claim.text
        if self.gain is None:
            return "Result of training; the base model cannot be compared"
        return (
            f"Did fine-tuning help? No clear change in {self.gain.metric} on the held-out data: "
            f"{self._numbers}"
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Both numbers and their difference with its interval; then what limits them."""
        if self.gain is None:
            return (self.why,)
        own_gain = self.gain
        limit = f", {WITHIN}" if self._interval.endswith(WITHIN) else ""
        return (
            f"On {own_gain.after.n:,} held-out examples the base model has {own_gain.metric} "
            f"{share(own_gain.before.value)} and the fine-tuned model "
            f"{share(own_gain.after.value)}: {amount(own_gain)}, 95\u202f% interval{limit}.",
            "The checkpoint was chosen on the same examples, which favours the fine-tuned model; "
            "for unbiased values measure both on other data.",
            *([self.why] if self.why else []),
        )

    @property
    def method(self) -> tuple[str, ...]:
        """How the interval was computed, in a sentence; none without a base."""
        if self.gain is None:
            return ()
        return (f"The interval: {self._interval.removesuffix(f', {WITHIN}')}.",)

    @property
    def _interval(self) -> str:
        assert self.gain is not None, "asked for before"
        own_gain = self.gain
        return own_gain.difference.method if own_gain.difference else own_gain.after.interval

    @property
    def _numbers(self) -> str:
        assert self.gain is not None, "asked for before"
        return f"{percent(self.gain.before.value)} before, {percent(self.gain.after.value)} after"


def beside(base: str, tuned: Place, validation: Examples, how: Job, watcher: Watcher) -> Beside:
    """Both models on the held examples, paired.

    `base`: the spec that the user gave. `tuned`: the folder of the trained model. `how`: the class
    map of the base, workers and batch. Examples whose classes the base cannot name count as wrong.
    """
    models = plugins.build("models", parse(base)), _load_tuned(tuned)
    whole = HeldSource(validation, validation.items)
    try:
        reached, why = _select_reachable(base, models[0], whole, how)
    except UsageError as error:
        return Beside(
            None, f"The base model does not have these classes, so there is no comparison: {error}."
        )
    if reached is None:
        return Beside(
            None, "The base model does not have these classes, so there is no comparison."
        )
    specs = base, f"torch(path={str(tuned)!r})"
    sides = (("base", reached, how.class_map), ("tuned", whole, None))
    before, after = (
        _predict(
            replace(how, models=(spec,), data=(source.name,), class_map=mapped, out=""),
            (model, source),
            tuned / FOLDER / name,
            watcher,
        )
        for (name, source, mapped), spec, model in zip(sides, specs, models, strict=True)
    )
    if detects(models[1]):
        return Beside(gain("mAP", outcomes(before), outcomes(after)), why)
    among = (
        f"Both models choose among the {len(validation.classes)} trained classes; other classes of "
        "the base model do not count."
    )
    sentence = f"{among} {why}" if why else among
    return Beside(
        gain("accuracy", _trials(before, validation), _trials(after, validation)), sentence
    )


def _load_tuned(tuned: Place) -> Any:
    return plugins.build("models", parse(f"torch(path={str(tuned)!r})"))


def _select_reachable(
    base: str, model: Any, whole: HeldSource, how: Job
) -> tuple[HeldSource | None, str]:
    """The held examples with a class that the base can name, and what is to be said of others.

    A detector is asked about all of them: what it finds counts against it where it is of no class.
    """
    members = class_map_of(how, model, whole).members
    known_labels = {label for label, own in enumerate(members) if own}
    if not known_labels:
        return None, ""
    lost = [name for label, name in enumerate(whole.classes.names) if label not in known_labels]
    if not lost or detects(model):
        return whole, ""
    reachable = tuple(
        example for example in whole.items if known_labels.intersection(example.labels)
    )
    rest = len(whole) - len(reachable)
    why = (
        f"The base model does not have {', '.join(lost)}: it counts as wrong on {rest:,} "
        "held-out examples."
    )
    return (HeldSource(whole.examples, reachable), why) if reachable else (None, "")


def _predict(job: Job, pair: tuple[Any, HeldSource], out: Place, watcher: Watcher) -> Predictions:
    model, source = pair
    plan = of_objects(replace(job, out=str(out)), [model], [(source.name, source)])
    ((_, table),) = tables([run(plan, watcher)])
    return table


def _trials(table: Predictions, validation: Examples) -> Trials:
    """Whether each held example is right, in the order of the examples."""
    right = set(table.ids[table.right].tolist())
    videos = np.array([example.video for example in validation.items], dtype=np.str_)
    return Trials(
        np.array([example.id in right for example in validation.items], dtype=np.bool_), videos
    )
