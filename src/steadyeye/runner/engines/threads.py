"""The local engine: threads, each with whole shards from decoding to the finished file."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from threading import Event

from steadyeye.core import timing
from steadyeye.predictions.schema import Rows
from steadyeye.predictions.shard_store import Cell, write_shard
from steadyeye.runner.engines.turns import Turns
from steadyeye.runner.prefetch import helped

Predict = Callable[[range, Callable[[], bool]], Rows | None]
"""`(span, stopped) -> Rows`, or None where `stopped()` turned true on the way."""

BEHIND = 8
"""Shards that a worker may have on their way to the disk: a disk syncs several at a time."""

Finish = Callable[[], None]

Work = Callable[[int, Callable[[], bool]], Finish | None]
"""`(shard, stopped) -> finish`: what is left to do with a shard, None where nothing is."""


def complete(
    cell: Cell,
    predict: Predict,
    workers: int,
    advance: Callable[[int], None],
    told: Callable[[Mapping[str, float]], None] = lambda _: None,
) -> int:
    """Computes the shards of a cell that are not there yet; returns how many were.

    `workers`: threads, 0 for one a core. `advance` is told the rows of each finished shard, those
    found finished first, and `told` what each took (`core.timing`). An error or an interrupt stops
    the other threads at their next batch; finished shards stay.
    """
    finished = set(cell.finished())
    advance(sum(len(cell.span(shard)) for shard in finished))

    def work(shard: int, stopped: Callable[[], bool]) -> Finish | None:
        with timing.collect_times() as took:
            rows = predict(cell.span(shard), stopped)
        if rows is None:
            return None

        def finish() -> None:
            started = time.perf_counter()
            write_shard(cell, shard, rows)
            told(took | {"write": time.perf_counter() - started})
            advance(len(rows.ids))

        return finish

    share(cell, work, workers)
    return len(finished)


def share(cell: Cell, work: Work, workers: int) -> None:
    """Hands the shards of a cell that are not there yet to threads: `work(shard, stopped)`.

    What it returns is called by another thread while this one works on, so that none waits for a
    disk; at most `BEHIND` a worker are on their way. Where there are two processors a worker, each
    worker has a second thread that decodes ahead. An error or an interrupt turns `stopped()` true
    for the other threads and is raised here.
    """
    finished = set(cell.finished())
    left = [shard for shard in range(cell.shards) if shard not in finished]
    count = max(min(workers or cores(), len(left)), 1)
    turns, stop = Turns(left, count), Event()

    def loop(worker: int) -> None:
        behind: deque[Future[None]] = deque()
        with helped(cores() >= 2 * count):
            while not stop.is_set() and (shard := turns.next(worker)) is not None:
                finish = work(shard, stop.is_set)
                if finish:
                    behind.append(writers.submit(finish))
                while behind and (behind[0].done() or len(behind) >= BEHIND):
                    behind.popleft().result()
        for each in behind:
            each.result()

    with ThreadPoolExecutor(BEHIND * count) as writers, ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(loop, worker) for worker in range(count)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            raise


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
