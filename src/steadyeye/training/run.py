"""Fine-tunes a model: checks the job before the first step, trains, writes and reports."""

import json
import platform
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.difference import describe_difference, drop_notes
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.spec import parse
from steadyeye.core.storage.files import clear_folder, encode, encode_record, place, write_file
from steadyeye.core.storage.run_lock import check_out, hold_run
from steadyeye.core.types import Source
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.predictions.json_record import read_record, write_record
from steadyeye.report.render.document import Document
from steadyeye.report.render.html import render_html
from steadyeye.runner import data_changes, run
from steadyeye.runner.job import Job
from steadyeye.runner.run import log
from steadyeye.runner.threads import cores
from steadyeye.runner.validate import distinct_ids, present
from steadyeye.training import before_after, checkpoint, loop, metrics_log, report
from steadyeye.training.augmentation import Augmentation, augmentation, mirror_images
from steadyeye.training.batches import Lesson
from steadyeye.training.before_after import HeldOutComparison, Measuring, compare_held_out
from steadyeye.training.classification import Learning, classification, find_gradient
from steadyeye.training.detection import check_detector, detection, library
from steadyeye.training.engine import MOMENTUM, first
from steadyeye.training.hyperparameters import Course, TrainingRecipe, training_recipe
from steadyeye.training.job import Tuning
from steadyeye.training.loop import DivergedError, LossWatcher, train
from steadyeye.training.lr_search import RateSearch, search
from steadyeye.training.metrics_log import History
from steadyeye.training.protocol import Examples, TrainingTask
from steadyeye.training.selection import Data, data

CHECKPOINTS, HISTORY, SEARCH, THEN = "checkpoints", "history.json", "search", "then"

DAMAGED = (
    "restore it from a copy, or choose another --out; weights and checkpoints stay as they are"
)


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A training whose parts were all checked.

    `sources`: the user's specs of the labelled data.
    """

    job: Tuning
    out: Path
    recipe: TrainingRecipe
    course: Course
    data: Data
    augmentation: Augmentation | None
    lesson: Lesson
    measuring: Measuring | None
    sources: Mapping[str, Source]


@dataclass(frozen=True, eq=False)
class Tuned:
    """A finished training: its folder, its record, and its history.

    `comparison`: the base and the fine-tuned model on the held-out data; None without stored
    weights, and in all processes except the first.
    """

    out: Path
    record: Mapping[str, Any]
    history: History
    comparison: HeldOutComparison | None
    gains: Document | None


class TrainingWatcher(loop.LossWatcher, run.Watcher, Protocol):
    """Receives messages of a training, and of the runs that follow it."""


def check(job: Tuning) -> TrainingPlan:
    """The plan of a training, after all checks that are possible before the first step."""
    out, measuring = place(job.out), job.measuring
    if not isinstance(out, Path):
        raise UsageError(f"'{job.out}' is on remote storage; give a local folder for --out")
    check_out(out)
    spec = parse(job.model)
    if spec.kwargs.get("runtime") == "cuda":
        raise UsageError("training uses the GPUs it finds; leave runtime='cuda' out of --model")
    model = plugins.build("models", spec)
    # before the data are read, which may take long
    check_detector(model) if detects(model) else find_gradient(model)
    recipe = training_recipe(_kind(model), model.name)
    course = job.course(recipe)
    operators = augmentation(job.augment, job.seed) if job.augment else None
    if operators is not None and detects(model):
        operators.check_boxes()
    sources = {text: _source(text) for text in filter(None, (job.data, job.val))}
    val = None if job.val is None else sources[job.val]
    chosen_data = data(sources[job.data], val, replace(job.selection, boxed=detects(model)))
    if measuring is not None:
        before_after.check_base(job.model, measuring)
    task = _task(model, job, chosen_data.train)
    augment = mirror_images(operators, job.seed) if job.mirror else operators
    lesson = Lesson(
        task,
        chosen_data.train,
        chosen_data.validation,
        augment,
        job.workers or cores(),
        operators.move_boxes if operators is not None and detects(model) else None,
    )
    return TrainingPlan(
        job, out, recipe, course, chosen_data, operators, lesson, measuring, sources
    )


def finetune(plan: TrainingPlan, watcher: TrainingWatcher) -> Tuned:
    """Trains as planned, resumes a stopped training, and writes the results.

    Raises `UsageError` if the folder holds another job or another process writes into it, and
    `DivergedError` after the best earlier weights are written.
    """
    with hold_run(plan.out) if first() else nullcontext():
        if first():
            clear_folder(plan.out)
        for text, source in plan.sources.items():
            # with other images it would be another training
            data_changes.refuse_changed(plan.out, {"spec": text, "name": source.name})
        parts = (plan.job, plan.recipe, plan.course, plan.data, plan.augmentation)
        record = write_training_record(plan.out, describe_training(*parts, plan.lesson.task))
        if first():
            for text, source in plan.sources.items():
                data_changes.keep(plan.out, text, source)
        _log(plan.out, "finetune", **_surroundings(plan))
        started = time.perf_counter()
        course, start = plan.course, None
        if plan.job.searches_rate:
            rate_search = _search_rate(plan, watcher)
            course, start = replace(course, rate=rate_search.rate), rate_search.start
            record = write_training_record(plan.out, {**record, "search": rate_search.record()})
        try:
            went = train(plan.lesson, course, plan.out / CHECKPOINTS, watcher, start)
        except DivergedError as error:
            _write_diverged(plan, record, str(error), watcher)
            raise
        seconds = round(time.perf_counter() - started, 3)
        _log(plan.out, "trained", step=went.step, ended=went.ended, seconds=seconds)
        both = _write(plan, record, went, watcher) if first() else None
    measured = None
    if plan.measuring is not None and first():
        folder = plan.out / THEN
        measured = before_after.measure(plan.job.model, plan.out, plan.measuring, folder, watcher)
    return Tuned(plan.out, record, went, both, measured)


def announcement(plan: TrainingPlan) -> str:
    """The training in one line."""
    train, validation, course = plan.data.train, plan.data.validation, plan.course
    long = number_of(course.epochs, "epoch", "epochs")
    if course.iterations:
        long = number_of(course.iterations, "step")
    return (
        f"training on {number_of(len(train.items), 'example')} of "
        f"{number_of(len(train.classes), 'class')}, held out {len(validation.items):,}: {long} in "
        f"batches of {course.batch}, {course.optimizer}, {course.precision}"
    )


def _kind(model: Any) -> str:
    """The kind of a model's training recipe."""
    if not detects(model):
        return "classifier"
    return "transformer" if library(model) == "transformers" else "detector"


def _source(text: str) -> Source:
    source: Source = plugins.build("sources", parse(text))
    distinct_ids(text, source)
    present(text, source)
    return source


def _task(model: Any, job: Tuning, learned: Examples) -> TrainingTask:
    if detects(model):
        for flag in ("multi_label", "mirror"):
            if getattr(job, flag):
                raise UsageError(
                    f"--{flag.replace('_', '-')} applies to classifiers only; leave it out"
                )
        return detection(model, job.model, learned, job.from_scratch, job.seed)
    how = Learning(several=job.multi_label, from_scratch=job.from_scratch, seed=job.seed)
    return classification(model, job.model, learned, how)


def _search_rate(plan: TrainingPlan, watcher: LossWatcher) -> RateSearch:
    """The result of the search for the learning rate."""
    tried = search(plan.lesson, plan.course, plan.out / SEARCH, watcher)
    watcher.say(f"learning rate {tried.rate:g}: best of {len(tried.tried)} after {tried.steps:,}")
    return tried


def _write_diverged(
    plan: TrainingPlan, record: dict[str, Any], why: str, watcher: TrainingWatcher
) -> None:
    """Writes the last good checkpoint, with the reason why training ended."""
    _log(plan.out, "diverged", why=why)
    file = checkpoint.last_good(plan.out / CHECKPOINTS)
    if file is None or not first():
        return
    went = metrics_log.read(checkpoint.read(file).history)
    _write(plan, record, replace(went, ended=f"stopped: {why.partition(';')[0]}"), watcher)


def _write(
    plan: TrainingPlan, record: Mapping[str, Any], went: History, watcher: TrainingWatcher
) -> HeldOutComparison | None:
    """Writes the history, the best weights as a model, the comparison, and the report."""
    comparison = None
    write_file(plan.out / HISTORY, encode_record(went.record()))
    if went.best is not None:
        state = checkpoint.read(checkpoint.path(plan.out / CHECKPOINTS, went.best.step))
        about = {**plan.lesson.task.record(), "augmentation": record["augment"]}
        checkpoint_format.write(plan.out, about, state.module)
        # both models choose among the trained classes, so that they are comparable
        how = Job(
            class_map=plan.job.then_class_map,
            class_list="closed",
            workers=plan.job.workers,
            seed=plan.job.seed,
        )
        comparison = compare_held_out(plan.job.model, plan.out, plan.data.validation, how, watcher)
    text = render_html(report.document(plan.out, record, went, comparison), lambda *_: None)
    write_file(plan.out / "report.html", text.encode())
    return comparison


def _surroundings(plan: TrainingPlan) -> dict[str, Any]:
    """The hardware and libraries, as far as they affect speed; checkpoints have torch's threads."""
    return {
        "threads": torch.get_num_threads(),
        "workers": plan.lesson.workers,
        "cores": cores(),
        "gpus": torch.cuda.device_count(),
        "machine": platform.platform(),
    }


def _log(out: Path, event: str, **facts: Any) -> None:
    if first():
        log(out, event, **facts)


def describe_training(
    job: Tuning,
    recipe: TrainingRecipe,
    course: Course,
    data: Data,
    augmentation: Augmentation | None,
    task: TrainingTask,
) -> dict[str, Any]:
    """All settings that are needed to repeat a training, as plain values."""
    about = task.record()
    return {
        "kind": "finetune",
        "job": job.record(),
        "base": about["base"],
        "recipe": {
            "from": recipe.source,
            **course.record(),
            "batch normalisation": f"momentum {MOMENTUM} at least",
        },
        "data": data.record(),
        "augment": augmentation.record() if augmentation is not None else None,
        "task": {key: value for key, value in about.items() if key != "base"},
        "provenance": provenance(),
    }


def write_training_record(out: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Writes run.json and returns it, with the entries of a stopped training.

    Raises `UsageError` if the folder holds another training, or something else.
    """
    path, run = out / "run.json", dict(content)
    if path.is_file():
        before = read_record(path, DAMAGED)
        _check_same(out, before, json.loads(encode(content)))
        if before["provenance"] != content["provenance"]:
            # the recorded versions made the first steps; both are listed
            run |= {"provenance": before["provenance"], "continued_with": provenance()}
        if "search" in before:
            run = {**run, "search": before["search"]}
    elif any(out.glob("*.json")):
        raise UsageError(
            f"'{out}' holds other files than those of a training; choose another --out"
        )
    if first():
        write_record(path, run)
    return run


def _check_same(out: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    if before.get("kind") != "finetune":
        raise UsageError(f"'{out}' holds a run of another kind; choose another --out")
    usual = {"job": json.loads(encode(Tuning().record()))}
    for part in ("job", "base", "recipe", "data", "augment", "task"):
        old, new = before.get(part), after[part]
        if isinstance(old, dict) and isinstance(new, dict):
            # settings that an earlier version did not record had their defaults
            defaults = usual.get(part, {})
            old = drop_notes({key: old.get(key, defaults.get(key)) for key in new})
            new = drop_notes(new)
        if old != new:
            raise UsageError(
                f"'{out}' holds another training: its {describe_difference(part, old, new)}; "
                "choose another --out"
            )
