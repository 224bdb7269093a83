"""The results of workers, and the driver that receives them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steadyeye.core.abilities import cacheable
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place
from steadyeye.predictions.schema import to_arrow
from steadyeye.predictions.shard_store import Cell, encode_table, write_content
from steadyeye.runner import classify
from steadyeye.runner.cache.lookup import list_problems
from steadyeye.runner.engines.work_order import Order, build_task
from steadyeye.runner.infer import attach_cache
from steadyeye.runner.task import Task
from steadyeye.runner.threads import WorkerThread

SEEN_WITHIN = 90.0  # seconds that a network disk may take to show what another machine wrote


@dataclass(frozen=True)
class Done:
    """The outcome of a shard: written by its worker, or its file's content, or the error.

    `took`: as of `Stopwatch.take_sums`. `notes`: notes for the user.
    """

    shard: int
    content: bytes = b""
    error: str = ""
    took: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class ShardComputer:
    """Where a worker computes the shards of one cell: the model and the source, built once."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._task: Task | None = None
        self._worker = WorkerThread(lambda: False, prefetches=order.prefetches)

    def compute(self, number: int) -> Done:
        """Computes a shard, and writes it where this process reaches the folder of the driver."""
        try:
            task = self._task or self._build_task()
            cell = Cell(place(self.order.out), self.order.identity)
            rows = classify.predict(task, cell.span(number), self._worker)
            assert rows is not None, "nothing stops it"
            content = encode_table(to_arrow(rows))
            stopwatch = self._worker.stopwatch
            if self.order.is_reachable():
                with stopwatch.time_stage("write"):
                    write_content(cell, number, content)
                content = b""
            return Done(number, content, took=stopwatch.take_sums(), notes=self._notes())
        except UsageError as error:
            return Done(number, error=str(error))

    def _build_task(self) -> Task:
        task, shared = build_task(self.order), self.order.answers
        self._task = attach_cache(task, shared.join() if shared else None)
        return self._task

    def _notes(self) -> tuple[str, ...]:
        shared = self.order.answers
        if shared is None or self._task is None:
            return ()
        if self._task.cache is None:
            refusal = (
                f"the cache '{shared.folder}' is a file of one machine: workers on other machines "
                "do not use it"
            )
            return (refusal,) if cacheable(self._task.model) else ()
        store = self._task.cache.store
        store.finish()
        return list_problems(store)


class Driver:
    """The driver's side: receives the results of the workers for the shards of a cell.

    `advance` is called with the rows of each finished shard, those finished before first,
    `report_times` with the sums of its stopwatch, and `say` with each note once. `written`: shards
    that workers wrote themselves; `sent`: bytes of those that came through this process.
    """

    def __init__(
        self,
        cell: Cell,
        advance: Callable[[int], None],
        report_times: Callable[[Mapping[str, float]], None],
        say: Callable[[str], None],
    ) -> None:
        self.cell, self.advance, self.report_times, self.say = cell, advance, report_times, say
        self.written = self.sent = 0
        self._notes: set[str] = set()
        finished = set(cell.list_finished())
        self.left = [number for number in range(cell.shards) if number not in finished]
        advance(sum(len(cell.span(number)) for number in finished))

    def take(self, done: Done) -> None:
        """Receives a shard. Raises `UsageError` with the worker's reason if it failed."""
        if done.error:
            raise UsageError(done.error)
        for note in sorted(set(done.notes) - self._notes):
            self.say(note)
            self._notes.add(note)
        if done.content:
            write_content(self.cell, done.shard, done.content)
            self.sent += len(done.content)
        else:
            self.written += 1
        self.report_times(done.took)
        self.advance(len(self.cell.span(done.shard)))

    def close(self) -> None:
        """Waits until all files of the workers are visible; deletes what dead ones left.

        Raises `UsageError` if a shard does not appear.
        """
        deadline = time.monotonic() + SEEN_WITHIN
        while lost := set(self.left) - set(self.cell.list_finished()):
            if time.monotonic() > deadline:
                raise UsageError(
                    f"{number_of(len(lost), 'shard')} that workers wrote to '{self.cell.folder}' "
                    "are not visible here; check that it is the same folder on every node, then "
                    "run again"
                )
            time.sleep(0.5)
        if isinstance(self.cell.folder, Path):
            for left in self.cell.folder.glob(".*.tmp"):
                left.unlink(missing_ok=True)
