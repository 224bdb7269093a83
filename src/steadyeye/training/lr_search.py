"""Searches the learning rate: each rate starts from the same weights and is validated."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import write_file
from steadyeye.core.storage.text_files import read_json
from steadyeye.training.batches import EpochSteps, Lesson
from steadyeye.training.engine import first
from steadyeye.training.hyperparameters import RATES, Constant, Course
from steadyeye.training.loop import DivergedError, LossWatcher, train
from steadyeye.training.metrics_log import read_measures, write_measures

PART = 10
"""A trial takes a tenth of the training, and at least one epoch."""


@dataclass(frozen=True)
class Trial:
    """A learning rate with its result.

    `loss`: the mean over the trial's examples; `measures`: the validation at its end; empty with a
    `fault`, if the loss or a weight was not finite.
    """

    rate: float
    loss: float | None
    measures: Mapping[str, float | None]
    losses: tuple[float, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class RateSearch:
    """`steps`: of each trial; `start`: the validation before; `rate`: the best one."""

    steps: int
    start: Mapping[str, float | None]
    tried: tuple[Trial, ...]
    rate: float

    def record(self) -> dict[str, Any]:
        """As plain values, for run.json."""
        return {**asdict(self), "tried": [write_measures(asdict(trial)) for trial in self.tried]}


def read(record: Mapping[str, Any]) -> Trial:
    """A trial from its plain values."""
    return Trial(**{**read_measures(record), "losses": tuple(record["losses"])})


def search(
    lesson: Lesson,
    course: Course,
    folder: Path,
    watcher: LossWatcher,
    rates: Sequence[float] = RATES,
) -> RateSearch:
    """The rate whose trial has the best criterion; ties go to the least loss.

    `folder`: of the trials, each stored when it is done, so that a stopped search is resumed. Each
    starts from the same weights, with the same order, at a constant rate. Raises `UsageError` if
    every loss diverged.
    """
    whole = EpochSteps(len(lesson.learn.items), course)
    steps = min(max(whole.epoch, whole.total // PART), whole.total)
    tried: list[Trial] = []
    start: Mapping[str, float | None] | None = None
    for rate in rates:
        trial = replace(
            course, rate=rate, iterations=steps, round=steps, schedule=Constant(), patience=None
        )
        content = _run_trial(lesson, trial, folder / f"lr-{rate:g}", watcher, start)
        start = content["start"] or start
        tried.append(read(content["tried"]))
    sound = [outcome for outcome in tried if not outcome.fault]
    if not sound or start is None:
        raise UsageError(
            f"the loss is not finite at any learning rate from {max(rates):g} to "
            f"{min(rates):g}; check the labels, and images that may be broken"
        )
    task = lesson.task
    best = max(sound, key=lambda outcome: _goodness(outcome.measures, task.criterion, task.lower))
    return RateSearch(steps, start, tuple(tried), best.rate)


def _run_trial(
    lesson: Lesson,
    course: Course,
    folder: Path,
    watcher: LossWatcher,
    start: Mapping[str, float | None] | None,
) -> dict[str, Any]:
    """A trial and its first validation, read if it was made before."""
    file = folder / "trial.json"
    if file.is_file():
        record: dict[str, Any] = read_json(file, "trial of a learning rate")
        if not isinstance(record, dict):
            raise UsageError(f"the trial '{file}' is no object of JSON; delete it to repeat it")
        return record
    folder.mkdir(parents=True, exist_ok=True)
    try:
        went = train(lesson, course, folder / "checkpoints", watcher, start)
        last = went.rounds[-1]
        tried = Trial(course.rate, last.loss, last.measures, went.losses)
        start = went.start
    except DivergedError as error:
        watcher.say(f"learning rate {course.rate:g}: {error}")
        tried = Trial(course.rate, None, {}, fault=str(error).partition(";")[0])
    content = {"start": start, "tried": write_measures(asdict(tried))}
    if first():
        write_file(file, json.dumps(content).encode())
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return content


def _goodness(
    measures: Mapping[str, float | None], criterion: str, lower: bool
) -> tuple[float, float]:
    value, loss = measures[criterion] or 0.0, measures.get("loss")
    return (-value if lower else value, float("-inf") if loss is None else -loss)
