"""One thread of a run: its stopwatch, and the second thread that makes images ready before it."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar

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
        """Adds what another thread took for this one: no part of the time that passed here."""
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
    """What one thread of a run works with, as a context manager.

    `stopped`: whether it should end at the next batch. `stopwatch`: of its own work and of the
    work that is prefetched for it. `prefetched`: by the index of its sample, what was begun beyond
    the last span, for the span that begins there if this thread has it next.
    """

    def __init__(self, stopped: Callable[[], bool], prefetches: bool) -> None:
        self.stopped = stopped
        self.stopwatch = Stopwatch()
        self.prefetched: Mapping[int, Any] = {}
        # one thread, as a video is decoded in its order by one decoder
        self._executor = ThreadPoolExecutor(1) if prefetches else None

    @property
    def prefetches(self) -> bool:
        """Whether a second thread works ahead of this one."""
        return self._executor is not None

    def start(self, call: Callable[[Stopwatch], Value]) -> Prefetch[Value]:
        """Begins a call in the second thread, after all that were begun there before."""
        return Prefetch(call, self._executor)

    def take_prefetched(self) -> Mapping[int, Any]:
        """What the span before began beyond its end; once."""
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
