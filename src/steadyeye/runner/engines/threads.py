"""The local engine: threads, each with whole shards from decoding to the finished file."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from itertools import pairwise

from steadyeye.predictions.schema import Rows
from steadyeye.predictions.shard_store import Cell, write_shard
from steadyeye.runner.worker_thread import WorkerThread

Predict = Callable[[range, WorkerThread], Rows | None]
"""`(span, worker) -> Rows`, or None where `worker.stopped()` turned true on the way."""

BEHIND = 8
"""Shards that a worker may have on their way to the disk: a disk syncs several at a time."""

Finish = Callable[[], None]

Work = Callable[[int, WorkerThread], Finish | None]
"""`(shard, worker) -> finish`: what is left to do with a shard, None where nothing is."""


def complete(
    cell: Cell,
    predict: Predict,
    workers: int,
    advance: Callable[[int], None],
    told: Callable[[Mapping[str, float]], None] = lambda _: None,
) -> int:
    """Computes the shards of a cell that are not there yet; returns how many were.

    `workers`: threads, 0 for one a core. `advance` is told the rows of each finished shard, those
    found finished first, and `told` what each took (`Stopwatch.take_sums`). An error or an
    interrupt stops the other threads at their next batch; finished shards stay.
    """
    finished = set(cell.finished())
    advance(sum(len(cell.span(shard)) for shard in finished))

    def work(shard: int, worker: WorkerThread) -> Finish | None:
        rows = predict(cell.span(shard), worker)
        if rows is None:
            return None
        took = dict(worker.stopwatch.take_sums())

        def finish() -> None:
            started = time.perf_counter()
            write_shard(cell, shard, rows)
            told(took | {"write": time.perf_counter() - started})
            advance(len(rows.ids))

        return finish

    share(cell, work, workers)
    return len(finished)


def share(cell: Cell, work: Work, workers: int) -> None:
    """Hands the shards of a cell that are not there yet to threads: `work(shard, worker)`.

    What it returns is called by another thread while this one works on, so that none waits for a
    disk; at most `BEHIND` a worker are on their way. Where there are two processors a worker, each
    worker has a second thread that decodes ahead. An error or an interrupt turns
    `worker.stopped()` true for the other threads and is raised here.
    """
    finished = set(cell.finished())
    left = [shard for shard in range(cell.shards) if shard not in finished]
    count = max(min(workers or cores(), len(left)), 1)
    turns, stop = Turns(left, count), threading.Event()

    def loop(number: int) -> None:
        behind: deque[Future[None]] = deque()
        with WorkerThread(stop.is_set, prefetches=cores() >= 2 * count) as worker:
            while not stop.is_set() and (shard := turns.next(number)) is not None:
                finish = work(shard, worker)
                if finish:
                    behind.append(writers.submit(finish))
                while behind and (behind[0].done() or len(behind) >= BEHIND):
                    behind.popleft().result()
        for each in behind:
            each.result()

    with ThreadPoolExecutor(BEHIND * count) as writers, ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(loop, number) for number in range(count)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            raise


class Turns:
    """Hands shards to workers in stretches of consecutive ones, each shard once.

    A worker that goes through a video or a tar from its first frame to its last decodes and reads
    nothing twice, which workers that take every other shard do. One that has nothing left takes the
    later half of the longest stretch, so that all end together.
    """

    def __init__(self, shards: Sequence[int], workers: int) -> None:
        ends = [len(shards) * worker // workers for worker in range(workers + 1)]
        self._left = [list(shards[a:b]) for a, b in pairwise(ends)]
        self._lock = threading.Lock()

    def next(self, worker: int) -> int | None:
        """The next shard of a worker, from 0; None where none is left."""
        with self._lock:
            if not self._left[worker]:
                longest = max(self._left, key=len)
                if not longest:
                    return None
                kept = len(longest) // 2
                self._left[worker] = longest[kept:]
                del longest[kept:]
            return self._left[worker].pop(0)


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
