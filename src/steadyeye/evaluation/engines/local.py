"""The local engine: threads, each with a whole shard from decoding to the finished file."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

from steadyeye.core import tally
from steadyeye.predictions.cell import Cell, write_shard
from steadyeye.predictions.rows import Rows

Predict = Callable[[range, Callable[[], bool]], Rows | None]
"""`(span, stopped) -> Rows`, or None where `stopped()` turned true on the way."""


def complete(
    cell: Cell,
    predict: Predict,
    workers: int,
    advance: Callable[[int], None],
    told: Callable[[Mapping[str, float]], None] = lambda _: None,
) -> int:
    """Computes the shards of a cell that are not there yet; returns how many were.

    `workers`: threads, 0 for one a core. `advance` is told the rows of each finished shard, those
    found finished first, and `told` what each took (`core.tally`). An error or an interrupt stops
    the other threads at their next batch; finished shards stay.
    """
    finished = set(cell.finished())
    advance(sum(len(cell.span(shard)) for shard in finished))

    def work(shard: int, stopped: Callable[[], bool]) -> None:
        with tally.collected() as took:
            rows = predict(cell.span(shard), stopped)
            if rows is None:
                return
            with tally.timed("write"):
                write_shard(cell, shard, rows)
        told(took)
        advance(len(rows.ids))

    share(cell, work, workers)
    return len(finished)


def share(cell: Cell, work: Callable[[int, Callable[[], bool]], None], workers: int) -> None:
    """Hands the shards of a cell that are not there yet to threads: `work(shard, stopped)`.

    An error or an interrupt turns `stopped()` true for the other threads and is raised here.
    """
    finished = set(cell.finished())
    stop = Event()

    def unless_stopped(shard: int) -> None:
        if not stop.is_set():
            work(shard, stop.is_set)

    with ThreadPoolExecutor(workers or cores()) as pool:
        futures = [pool.submit(unless_stopped, s) for s in range(cell.shards) if s not in finished]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
