"""The training loop: steps in a fixed order, validation rounds, and checkpoints to resume from."""

import math
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from torch import nn

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.stop_signals import STOPS, leave_closed_terminal
from steadyeye.training import batches as training_batches
from steadyeye.training import checkpoint, hyperparameters, metrics_log
from steadyeye.training.batches import EpochSteps, ImageCache, Lesson
from steadyeye.training.engine import Engine, surroundings
from steadyeye.training.hyperparameters import Course
from steadyeye.training.metrics_log import History, TrainingRound

SMOOTHED = 20
"""Steps over which the shown loss is averaged."""


class LossWatcher(Protocol):
    """Receives the progress of a training; `steadyeye.cli.progress` has some."""

    def begin(self, name: str, rows: int, done: int = 0) -> Callable[[int], None]:
        """Starts the progress of `rows` images, `done` before; returns a function for more."""
        ...

    def show_loss(self, name: str, loss: float) -> None:
        """The loss of the training `name`, smoothed over the latest steps."""
        ...

    def say(self, line: str) -> None:
        """Shows a message."""
        ...


class DivergedError(UsageError):
    """A loss or a weight is not finite; earlier checkpoints are kept."""


def train(
    lesson: Lesson,
    course: Course,
    folder: Path,
    watcher: LossWatcher,
    start: Mapping[str, float | None] | None = None,
) -> History:
    """Trains a copy of the task's module; returns its history.

    `folder`: of checkpoints; training resumes from the latest, with the same result as without a
    stop, on a CPU bit for bit. `start`: the validation before the first step, if known. Raises
    `DivergedError`, and `KeyboardInterrupt` after the checkpoint of the interrupted step.
    """
    with surroundings():
        return _Training(lesson, course, folder, watcher).run(start)


class _Training:
    """A training in progress."""

    def __init__(self, lesson: Lesson, course: Course, folder: Path, watcher: LossWatcher) -> None:
        self.lesson, self.course, self.folder, self.watcher = lesson, course, folder, watcher
        self.steps = EpochSteps(len(lesson.learn.items), course)
        self.engine = Engine(lesson.task.module, course)
        self.images = ImageCache(lesson.task.fit)
        self.losses: list[float] = []

    def run(self, start: Mapping[str, float | None] | None) -> History:
        """Trains to the end, from the latest checkpoint if there is one."""
        history = self._resume()
        if history is None:
            task = self.lesson.task
            begin = self._judgement(0) if start is None else start
            history = History(task.criterion, task.lower, begin)
        if history.ended:
            return history
        name = self.folder.resolve().parent.name
        whole = self.steps.images(self.steps.total)
        advance = self.watcher.begin(name, whole, self.steps.images(history.step))
        with interruptible() as interrupted, closing(self._feed(history.step)) as fed:
            for step, inputs in fed:
                self._step(step, history, inputs)
                latest = self.losses[-SMOOTHED:]
                self.watcher.show_loss(name, sum(latest) / len(latest))
                if judged := self.steps.ends_round(step + 1):
                    history = self._judge_round(history)
                stop = interrupted()
                if judged or stop or (step + 1) % self.course.every == 0:
                    self._save(history)
                advance(self.steps.size(step))
                if history.ended:
                    break
                if stop:
                    raise KeyboardInterrupt
        return history

    def _resume(self) -> History | None:
        if self.engine.rank == 0:
            checkpoint.clear(self.folder)
            state = checkpoint.latest(self.folder, self.watcher.say)
        self.engine.together()
        if self.engine.rank > 0:
            state = checkpoint.latest(self.folder, self.watcher.say)
        if state is None:
            return None
        for setting, now, before in self.engine.restore(state):
            self.watcher.say(f"{setting}: {before} before, now {now}; the last bits may differ")
        history = metrics_log.read(state.history)
        self.losses = list(history.losses)
        if not history.ended:
            self.watcher.say(f"continuing after step {state.step:,} of {self.steps.total:,}")
        return history

    def _feed(self, first: int) -> Generator[tuple[int, list[Any]], None, None]:
        """The input of this process at each step."""
        parts = (
            (step, step // self.steps.epoch, training_batches.share_batch(batch, *self.place)[0])
            for step, batch in self.steps.batches(first)
        )
        return training_batches.read_training_batches(
            self.lesson, self.images, parts, self.course.batch
        )

    @property
    def place(self) -> tuple[int, int]:
        """The index of this process and the number of processes."""
        return self.engine.rank, self.engine.ranks

    def _step(self, step: int, history: History, inputs: Sequence[Any]) -> None:
        loss = self.engine.step(
            step,
            self._rate(step, history),
            lambda module: self.lesson.task.loss(module, inputs),
            training_batches.share_batch(self.steps.batch(step), *self.place)[1],
        )
        if not math.isfinite(loss):
            raise self._describe_divergence(f"the loss is {loss}", step)
        self.losses.append(loss)

    def _rate(self, step: int, history: History) -> float:
        schedule, first = self.course.schedule, self.course.rate
        return hyperparameters.learning_rate(schedule, first, step, history.values)

    def _judge_round(self, history: History) -> History:
        """The history after the round that ends now."""
        done = len(self.losses)
        first = history.rounds[-1].step if history.rounds else 0
        sizes = [self.steps.size(step) for step in range(first, done)]
        losses = self.losses[first:]
        ended = TrainingRound(
            step=done,
            epoch=done / self.steps.epoch,
            rate=self._rate(done - 1, history),
            loss=sum(x * n for x, n in zip(losses, sizes, strict=True)) / sum(sizes),
            measures=self._judgement(done),
        )
        now = replace(history, losses=tuple(self.losses), rounds=(*history.rounds, ended))
        self.watcher.say(sentence(now))
        if hyperparameters.is_over(now.values, self.course.patience):
            ended_early = f"{now.criterion} no better in {self.course.patience} rounds"
            return replace(now, ended=f"stopped early: {ended_early}")
        if done == self.steps.total:
            return replace(now, ended=f"all {number_of(done, 'step')} are done")
        return now

    def _judgement(self, step: int) -> Mapping[str, float | None]:
        task, size = self.lesson.task, self.course.batch

        def judge(module: nn.Module) -> Mapping[str, float]:
            prepared = training_batches.read_held_batches(self.lesson, self.images, size)
            with closing(prepared) as batches:
                return task.judge(module, batches)

        values = self.engine.judge_module(step, judge)
        if not math.isfinite(values[task.criterion]):
            fault = f"{task.criterion} on the held-out data is not a number"
            raise self._describe_divergence(fault, step - 1)
        return {key: value if math.isfinite(value) else None for key, value in values.items()}

    def _save(self, history: History) -> None:
        if not self.engine.sound():
            raise self._describe_divergence("a weight is no finite number", len(self.losses) - 1)
        if self.engine.rank == 0:
            now = replace(history, losses=tuple(self.losses))
            checkpoint.save(self.folder, self.engine.state(now.record()))

    def _describe_divergence(self, fault: str, step: int) -> DivergedError:
        step = max(step, 0)
        ids = [self.lesson.learn.items[i].id for i in self.steps.batch(step)]
        file = checkpoint.last_good(self.folder)
        state = f"the last good checkpoint is {file}" if file else "there is no checkpoint yet"
        return DivergedError(
            f"{fault} in epoch {step // self.steps.epoch + 1}, step {step + 1:,}; {state}; "
            f"lower --lr, or look at the batch: {', '.join(ids)}"
        )


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Defers Ctrl-C until the step is finished; a second one interrupts it.

    So are SIGTERM and SIGHUP if they interrupt, as on the command line.

    The yielded function tells whether there was one. Only in the main thread; no effect elsewhere.
    """
    interrupted = threading.Event()
    first: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        leave_closed_terminal()
        if interrupted.is_set():
            before[number](number, frame)
        interrupted.set()
        first.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield interrupted.is_set
        return
    handlers = {number: signal.getsignal(number) for number in STOPS}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, remember)
    try:
        yield interrupted.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if first:
            # only now do the earlier handlers receive it
            signal.raise_signal(first[0])


def sentence(history: History) -> str:
    """The result of the latest round, in words."""
    latest = history.rounds[-1]
    measures = ", ".join(
        f"{name} {value:.4f}"
        for name, value in latest.measures.items()
        if value is not None and name != "n"
    )
    best = " (best so far)" if history.best == latest else ""
    return (
        f"epoch {latest.epoch:.4g}, step {latest.step:,}: loss {latest.loss:.4f} at rate "
        f"{latest.rate:.3g}; held out: {measures}{best}"
    )
