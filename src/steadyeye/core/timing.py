"""What the work of a thread took and met: seconds a stage, and counts, added up where asked for."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

STAGES = ("decode", "cache", "prepare", "infer", "write")
"""Seconds of: images decoded (and degraded), keys and answers looked up and kept, images fitted to
the network, the network, and shards written."""

COUNTS = ("hits", "errors")
"""Samples whose answer was kept already, and samples that failed."""


class _Here(threading.local):
    """What the calling thread collects; None where nobody asked."""

    found: dict[str, float] | None = None
    beside: float = 0.0  # seconds that another thread worked for this one


_here = _Here()


@contextmanager
def collect_times() -> Iterator[dict[str, float]]:
    """A table, stage → seconds, of all that this thread adds in the block."""
    before, table = _here.found, dict.fromkeys((*STAGES, *COUNTS), 0.0)
    _here.found = table
    try:
        yield table
    finally:
        _here.found = before


def add(name: str, amount: float) -> None:
    """Adds to what this thread collects; nothing happens where nobody asked."""
    if _here.found is not None:
        _here.found[name] = _here.found.get(name, 0.0) + amount


def add_beside(took: Mapping[str, float]) -> None:
    """Adds what another thread took for this one: it is no part of the time that passed here."""
    _here.beside += _seconds(took)
    for name, amount in took.items():
        add(name, amount)


@contextmanager
def time_stage(name: str) -> Iterator[None]:
    """Adds the seconds of the block to a stage."""
    started = time.perf_counter()
    try:
        yield
    finally:
        add(name, time.perf_counter() - started)


@contextmanager
def remainder(name: str) -> Iterator[None]:
    """Adds the seconds of the block that no stage within it has counted."""
    found = _here.found
    before = _seconds(found) - _here.beside
    started = time.perf_counter()
    try:
        yield
    finally:
        inner = _seconds(found) - _here.beside - before
        add(name, max(time.perf_counter() - started - inner, 0.0))


def _seconds(found: Mapping[str, float] | None) -> float:
    return sum(found[stage] for stage in STAGES) if found else 0.0
