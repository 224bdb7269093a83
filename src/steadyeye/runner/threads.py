"""The threads of a run: each takes whole shards from decoding to the finished file.

`WorkerThread` is what one of them works with, `share` hands them the shards of a cell.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import pairwise
from types import TracebackType
from typing import Any, Generic, TypeVar

from steadyeye.core.abilities import Samples, Stepwise
from steadyeye.core.types import Source
from steadyeye.predictions.schema import Rows, to_arrow
from steadyeye.predictions.shard_store import Cell, write_table

AHEAD = 4  # images that wait for the model at most, so that memory stays flat

STAGES = ("decode", "cache", "prepare", "infer", "write")
"""Seconds of: images decoded (and degraded), keys and answers looked up and stored, images fitted
to the network, the network, and shards written."""

COUNTS = ("hits", "errors")
"""Samples whose answer was in the cache, and samples that failed."""

Value = TypeVar("Value")


class Stopwatch:
    """Seconds a stage and counts of the work of one thread; not shared between threads."""

    def __init__(self) -> None:
        self._sums = dict.fromkeys((*STAGES, *COUNTS), 0.0)
        self._parallel = 0.0  # seconds that another thread worked for this one

    def count(self, name: str, amount: float) -> None:
        """Adds to a stage or a count."""
        self._sums[name] += amount

    @contextmanager
    def time_stage(self, stage: str) -> Iterator[None]:
        """Adds the seconds of the block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.count(stage, time.perf_counter() - started)

    @contextmanager
    def time_remainder(self, stage: str) -> Iterator[None]:
        """Adds the seconds of the block that no stage within it has counted."""
        before = self._seconds() - self._parallel
        started = time.perf_counter()
        try:
            yield
        finally:
            inner = self._seconds() - self._parallel - before
            self.count(stage, max(time.perf_counter() - started - inner, 0.0))

    def add_parallel(self, other: "Stopwatch") -> None:
        """Adds the time of another thread that worked for this one."""
        self._parallel += other._seconds()
        for name, amount in other._sums.items():
            self.count(name, amount)

    def take_sums(self) -> Mapping[str, float]:
        """The sums since the last call, by the names in `STAGES` and `COUNTS`."""
        sums, self._sums = self._sums, dict.fromkeys(self._sums, 0.0)
        self._parallel = 0.0
        return sums

    def _seconds(self) -> float:
        return sum(self._sums[stage] for stage in STAGES)


class Sums:
    """Times and counts of the shards of a cell, summed over the threads."""

    def __init__(self, report: Callable[[Mapping[str, float]], None]) -> None:
        self.total = dict.fromkeys((*STAGES, *COUNTS), 0.0)
        self._report = report
        self._lock = threading.Lock()

    def add(self, sums: Mapping[str, float]) -> None:
        """Adds the sums of a shard, and reports the total."""
        with self._lock:
            for name, amount in sums.items():
                self.total[name] += amount
            self._report(dict(self.total))

    def record(self) -> dict[str, Any]:
        """The sums for the log: seconds a stage, and counts."""
        stages = {stage: round(self.total[stage], 3) for stage in STAGES}
        return {"stages": stages, **{count: int(self.total[count]) for count in COUNTS}}


class Prefetch(Generic[Value]):
    """A call that a second thread makes from now on; without one, it is made when it is due."""

    def __init__(
        self, call: Callable[[Stopwatch], Value], executor: ThreadPoolExecutor | None
    ) -> None:
        self._call, self._stopwatch = call, Stopwatch()
        self._future: Future[Value] | None = None
        if executor is not None:
            self._future = executor.submit(call, self._stopwatch)

    def result(self, stopwatch: Stopwatch) -> Value:
        """What the call returned, or raised; the time that it took goes to `stopwatch`."""
        if self._future is None:
            return self._call(stopwatch)
        value = self._future.result()
        stopwatch.add_parallel(self._stopwatch)
        return value


class WorkerThread:
    """The tools of one thread of a run, as a context manager.

    `stopped`: whether it should end at the next batch. `stopwatch`: of its own work and of the
    work that is prefetched for it. `prefetched`: by the index of its sample, what was begun beyond
    the last span, for the span that begins there if this thread has it next.
    """

    def __init__(self, stopped: Callable[[], bool], prefetches: bool) -> None:
        self.stopped = stopped
        self.stopwatch = Stopwatch()
        self.prefetched: Mapping[int, Any] = {}
        self._source: Source | None = None
        self._samples: Samples | None = None
        # one thread, as a video is decoded in its order by one decoder
        self._executor = ThreadPoolExecutor(1) if prefetches else None

    @property
    def prefetches(self) -> bool:
        """Whether a second thread works ahead of this one."""
        return self._executor is not None

    def open_samples(self, source: Source) -> Samples:
        """The samples of a source for this thread alone, which may keep what the next one needs."""
        if self._samples is None or self._source is not source:
            self._source = source
            self._samples = source.begin_pass() if isinstance(source, Stepwise) else source
        return self._samples

    def start(self, call: Callable[[Stopwatch], Value]) -> Prefetch[Value]:
        """Begins a call in the second thread, after all that were begun there before."""
        return Prefetch(call, self._executor)

    def take_prefetched(self) -> Mapping[int, Any]:
        """The calls that the previous span began beyond its end; only once."""
        prefetched, self.prefetched = self.prefetched, {}
        return prefetched

    def __enter__(self) -> "WorkerThread":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.prefetched = {}
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


Predict = Callable[[range, WorkerThread], Rows | None]
"""`(span, worker) -> Rows`, or None where `worker.stopped()` turned true on the way."""

BEHIND = 8
"""Shards that a worker may have on their way to the disk: a disk syncs several at a time."""

ROWS_BEHIND = 4096
"""Rows in them, unless a shard alone has more: what is on its way takes memory."""

Finish = Callable[[], None]

Work = Callable[[int, WorkerThread], Finish | None]
"""`(shard, worker) -> finish`: what is left to do with a shard, None where nothing is."""


def complete(
    cell: Cell,
    predict: Predict,
    workers: int,
    advance: Callable[[int], None],
    report_times: Callable[[Mapping[str, float]], None] = lambda _: None,
) -> None:
    """Computes the shards of a cell that are not there yet.

    `workers`: threads, 0 for one a core. `advance` is called with the rows of each finished shard,
    those finished before first, and `report_times` with the sums of its stopwatch. An error or an
    interrupt stops the other threads at their next batch; finished shards stay.
    """
    finished = set(cell.list_finished())
    advance(sum(len(cell.span(shard)) for shard in finished))

    def work(shard: int, worker: WorkerThread) -> Finish | None:
        rows = predict(cell.span(shard), worker)
        if rows is None:
            return None
        took = dict(worker.stopwatch.take_sums())

        def finish() -> None:
            started = time.perf_counter()
            write_table(cell, shard, to_arrow(rows))
            report_times(took | {"write": time.perf_counter() - started})
            advance(len(rows.ids))

        return finish

    share(cell, work, workers)


def share(cell: Cell, work: Work, workers: int) -> None:
    """Hands the shards of a cell that are not there yet to threads: `work(shard, worker)`.

    What it returns is called by another thread while this one works on, so that none waits for a
    disk; at most `BEHIND` a worker, of `ROWS_BEHIND` together, are on their way. Where there are
    two processors a worker, each worker has a second thread that decodes ahead. An error or an
    interrupt turns `worker.stopped()` true for the other threads and is raised here.
    """
    finished = set(cell.list_finished())
    left = [shard for shard in range(cell.shards) if shard not in finished]
    count = max(min(workers or cores(), len(left)), 1)
    turns, stop = Turns(left, count), threading.Event()
    most = min(max(ROWS_BEHIND // len(cell.span(0)), 1), BEHIND) if left else 1

    def loop(number: int) -> None:
        behind: deque[Future[None]] = deque()
        with WorkerThread(stop.is_set, prefetches=cores() >= 2 * count) as worker:
            while not stop.is_set() and (shard := turns.next(number)) is not None:
                finish = work(shard, worker)
                if finish:
                    behind.append(writers.submit(finish))
                while behind and (behind[0].done() or len(behind) >= most):
                    behind.popleft().result()
        for future in behind:
            future.result()

    with ThreadPoolExecutor(most * count) as writers, ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(loop, number) for number in range(count)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            raise


class Turns:
    """Assigns shards to workers in stretches of consecutive ones, each shard once.

    A worker that goes through a video or a tar from its first frame to its last decodes and reads
    nothing twice, which workers that take every other shard do. One that has nothing left takes the
    later half of the longest stretch, so that all end together.
    """

    def __init__(self, shards: Sequence[int], workers: int) -> None:
        ends = [len(shards) * worker // workers for worker in range(workers + 1)]
        self._left = [list(shards[a:b]) for a, b in pairwise(ends)]
        self._lock = threading.Lock()

    def next(self, worker: int) -> int | None:
        """The next shard of a worker, by its number from 0; None if none is left."""
        with self._lock:
            if not self._left[worker]:
                longest = max(self._left, key=len)
                if not longest:
                    return None
                half = len(longest) // 2
                self._left[worker] = longest[half:]
                del longest[half:]
            return self._left[worker].pop(0)


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
