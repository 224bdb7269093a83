"""Compares a base model with the fine-tuned one: on held-out data, and on data of the user.

The base is the user's model, mapped by its class map to the trained classes. The network with a new
head, with which training starts, is not the base.

::

    held/base, held/tuned              both as sealed runs over the held examples
    then/base, then/tuned              runs on other data, as `steadyeye run` writes them
    then/base-degraded, then/tuned-degraded    sweeps, where operators were named
    then/report.html, results.json, .csv       of all of them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.claims import Claim, above, below, first
from steadyeye.core.errors import UsageError
from steadyeye.core.format import WITHIN, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import parse
from steadyeye.core.stats.trials import Trials
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.metrics.map import outcomes
from steadyeye.report import build
from steadyeye.report.comparison.before_after import Gain, amount, gain
from steadyeye.report.render.document import Document
from steadyeye.report.sections import sections
from steadyeye.runner.collect import tables
from steadyeye.runner.job import Job
from steadyeye.runner.run import Watcher, run
from steadyeye.runner.sweep import metrics, operators
from steadyeye.runner.task import class_map_of
from steadyeye.runner.validate import Built, Plan, check, of_objects
from steadyeye.training.protocol import Example, Examples

HELD = "held"
FILES = ("report.html", "results.json", "results.csv")
THRESHOLDS = "0.9,0.5,0.1"
ANALYSES = ("gains", "degradation_gains")
NO_COMPARISON = "The base model does not have these classes, so there is no comparison"


@dataclass(frozen=True)
class Measuring:
    """The data and settings with which both models are measured.

    `data`: specs. `operators`: a list of operators for additional sweeps; `levels`: of them, by
    default all. `class_map`: a file that maps the base's classes to the data's; the fine-tuned
    model has its trained classes. `seed`: of the operators. `batch`, `workers`, `cache`: as in a
    job.
    """

    data: tuple[str, ...]
    operators: str | None = None
    levels: str | None = None
    class_map: str | None = None
    seed: int = 0
    batch: int = 0
    workers: int = 0
    cache: str = ""


def check_base(base: str, how: Measuring) -> None:
    """Raises `UsageError` if the base cannot be measured so; called before the training.

    `base`: its spec.
    """
    _check_jobs({"base": base}, how, None)


def measure(base: str, tuned: Place, how: Measuring, out: Place, watcher: Watcher) -> Document:
    """Measures both models on the data and writes the report into `out`; returns it.

    `base`: a spec; `tuned`: the folder that `finetune` wrote. A stopped call is resumed by the same
    call. Raises `UsageError` if a model does not fit the data.
    """
    # all checks come before the first run
    plans = _check_jobs({"base": base, "tuned": _name_tuned(tuned)}, how, out)
    runs = {name: run(plan, watcher) for name, plan in plans.items()}
    folders: Sequence[Place] = list(runs.values())
    content = build.document(folders)
    for name, folder in runs.items():
        sources = [task.source for task in plans[name].tasks]
        build.store_pictures(folder, sources, content)
    build.save(content, folders, [out / file for file in FILES])
    return content


def findings(content: Document) -> tuple[str, ...]:
    """The findings of the report before and after training, one line each."""
    return tuple(section.title for section in sections(content.evaluated, ANALYSES))


def _jobs(models: Mapping[str, str], how: Measuring, out: Place | None) -> dict[str, Job]:
    """A job for each model, and one more for its sweep."""
    jobs = {}
    for name, model in models.items():
        plain = Job(
            models=(model,),
            data=how.data,
            out=str(out / name) if out is not None else "",
            class_map=how.class_map if name == "base" else None,
            seed=how.seed,
            batch=how.batch,
            workers=how.workers,
            cache=how.cache,
        )
        jobs[name] = plain
        if how.operators:
            jobs[f"{name}-degraded"] = _sweep(plain, how)
    return jobs


def _sweep(plain: Job, how: Measuring) -> Job:
    sweep_operators = operators(how.operators or "all", gradients=False)
    every = f"0:{max(operator.last for operator in sweep_operators)}"
    return replace(
        plain,
        operators=how.operators,
        levels=how.levels or every,
        metrics=metrics("right", THRESHOLDS),
        out=plain.out and f"{plain.out}-degraded",
    )


def _check_jobs(models: Mapping[str, str], how: Measuring, out: Place | None) -> dict[str, Plan]:
    """The plans of all jobs; each model, which a sweep shares, and the data are built once."""
    built: Built = {}
    plans = {}
    for name, job in _jobs(models, how, out).items():
        try:
            plans[name] = check(job, built=built)
        except UsageError as error:
            model_name = "the base model" if name.startswith("base") else "the fine-tuned model"
            message = str(error).replace("--class-map", "--then-class-map")
            raise UsageError(f"{model_name} cannot be measured: {message}") from error
    return plans


@dataclass(frozen=True, eq=False)
class HeldSource:
    """A `Source` of held-out examples, over the trained classes."""

    examples: Examples
    items: tuple[Example, ...]

    @property
    def name(self) -> str:
        """The data from which they are held out."""
        return f"{self.examples.name}, held out"

    @property
    def classes(self) -> Classes:
        """The trained classes."""
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
        """The id of each example."""
        return [example.id for example in self.items]

    @cached_property
    def truths(self) -> Sequence[Labels]:
        """The labels of each example."""
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
class HeldOutComparison:
    """The held-out metric of the base and of the fine-tuned model; `gain` is None without a base.

    `why`: a remark on the base, such as why there is none, its number of classes, or classes that
    it does not have.
    """

    gain: Gain | None
    why: str

    @property
    def claim(self) -> Claim | None:
        """The claim about the training: that the metric rose, or fell."""
        if self.gain is None or self.gain.difference is None:
            return None
        gap, p = self.gain.difference, self.gain.p
        text = f"{self.gain.metric} on the held-out data: {self._numbers}"
        rose = above(f"Fine-tuning raised {text}", gap, p=p)
        return first([rose, below(f"Fine-tuning lowered {text}", gap, p=p)])

    @property
    def title(self) -> str:
        """The claim if it is supported; otherwise a question with the numbers."""
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
        """Both numbers and their difference with its interval; then their limits."""
        if self.gain is None:
            return (self.why,)
        own_gain = self.gain
        limit = f", {WITHIN}" if self._interval.endswith(WITHIN) else ""
        return (
            f"On {own_gain.after.n:,} held-out examples the base model has {own_gain.metric} "
            f"{percent(own_gain.before.value)} and the fine-tuned model "
            f"{percent(own_gain.after.value)}: {amount(own_gain)}, 95\u202f% interval{limit}.",
            "The checkpoint was chosen on the same examples, which favours the fine-tuned model; "
            "for unbiased values measure both on other data.",
            *([self.why] if self.why else []),
        )

    @property
    def method(self) -> tuple[str, ...]:
        """The method of the interval in a sentence; empty without a base."""
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


def compare_held_out(
    base: str, tuned: Place, validation: Examples, how: Job, watcher: Watcher
) -> HeldOutComparison:
    """Both models on the held-out data, paired.

    `base`: the user's spec. `tuned`: the folder of the fine-tuned model. `how`: the class map of
    the base, workers and batch. Examples with classes that the base does not have count as wrong.
    """
    specs = base, _name_tuned(tuned)
    models = [plugins.build("models", parse(spec)) for spec in specs]
    whole = HeldSource(validation, validation.items)
    try:
        reached, why = _select_reachable(base, models[0], whole, how)
    except UsageError as error:
        return HeldOutComparison(None, f"{NO_COMPARISON}: {error}.")
    if reached is None:
        return HeldOutComparison(None, f"{NO_COMPARISON}.")
    sides = (("base", reached, how.class_map), ("tuned", whole, None))
    before, after = (
        _predict(
            replace(how, models=(spec,), data=(source.name,), class_map=mapped, out=""),
            (model, source),
            tuned / HELD / name,
            watcher,
        )
        for (name, source, mapped), spec, model in zip(sides, specs, models, strict=True)
    )
    if detects(models[1]):
        return HeldOutComparison(gain("mAP", outcomes(before), outcomes(after)), why)
    among = (
        f"Both models choose among the {len(validation.classes)} trained classes; other classes of "
        "the base model do not count."
    )
    gained = gain("accuracy", _trials(before, validation), _trials(after, validation))
    return HeldOutComparison(gained, f"{among} {why}" if why else among)


def _name_tuned(tuned: Place) -> str:
    """The spec of a trained model by its folder."""
    return f"torch(path={str(tuned)!r})"


def _select_reachable(
    base: str, model: Any, whole: HeldSource, how: Job
) -> tuple[HeldSource | None, str]:
    """The held-out examples with a class of the base, and a remark on the others.

    A detector is run on all of them: its detections without a class of the data count as false
    positives.
    """
    members = class_map_of(how, model, whole).members
    known_labels = {label for label, own in enumerate(members) if own}
    if not known_labels:
        return None, ""
    lost = [name for label, name in enumerate(whole.classes.names) if label not in known_labels]
    if not lost or detects(model):
        return whole, ""
    reachable = tuple(item for item in whole.items if known_labels.intersection(item.labels))
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
    """Whether each held-out example is right, in order."""
    right = set(table.ids[table.right].tolist())
    success = np.array([example.id in right for example in validation.items], dtype=np.bool_)
    return Trials(success, np.array([example.video for example in validation.items], np.str_))
