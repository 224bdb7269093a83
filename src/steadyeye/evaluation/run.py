"""A job from its plan to sealed predictions, results, pictures and a report."""

import fcntl
import json
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from steadyeye.cache.store import Store
from steadyeye.core import tally
from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.types import cacheable
from steadyeye.evaluation import kept, shard
from steadyeye.evaluation.engines import local
from steadyeye.evaluation.fast import search
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.plan import Plan
from steadyeye.evaluation.tasks import Task
from steadyeye.predictions.cell import begin, encode, seal, write_file
from steadyeye.predictions.mending import mend
from steadyeye.predictions.rows import Rows


class Watcher(Protocol):
    """What is told of a run as it goes."""

    def begin(self, name: str, rows: int) -> Callable[[int], None]:
        """A cell begins; the returned function is told of rows as they are done."""
        ...

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """A cell was found with `finished` of its `shards` done."""
        ...

    def counted(self, name: str, found: Mapping[str, float]) -> None:
        """What the shards of a cell took and met so far: the names of `core.tally`."""
        ...

    def say(self, line: str) -> None:
        """Something that whoever waits should know."""
        ...


Predict = Callable[[Task, range, Callable[[], bool]], Rows | None]


def run(plan: Plan, watcher: Watcher, predict: Predict = shard.predict) -> Path:
    """Computes every cell of a plan that is not sealed yet; returns the folder of the run.

    `predict`: where the rows of a span of a task come from. Raises `UsageError` where the folder
    holds another job or another process writes into it.
    """
    out = Path(plan.job.out)
    # what a file says is looked up anyway
    store = kept.store(plan.job) if predict is shard.predict else None
    with alone(out), kept.closing(store, watcher.say):
        for left in out.rglob(".*.tmp"):
            left.unlink()  # of a process that was killed while it wrote
        record = _write_record(out, plan)
        log(out, "run", **_surroundings(plan, store))
        for each in plan.tasks:
            task = replace(each, store=store if cacheable(each.model) else None)
            complete = partial(_complete, plan, watcher, predict)
            if plan.job.fast:
                for rounds in search(plan.job, task, complete):
                    record["rounds"][task.folder] = rounds
                    write_file(out / "run.json", encode(record))
            else:
                complete(task)
    return out


def log(out: Path, event: str, **facts: Any) -> None:
    """Appends a line to log.jsonl, where all that differs from run to run is kept."""
    with (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"time": round(time.time(), 3), "event": event, **facts}) + "\n")


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Holds the run's folder for this process; raises where another process holds it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = (out / ".lock").open("w")
    except OSError as error:
        raise UsageError(
            f"cannot write to '{out}': {error.strerror}; choose another --out"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another process is writing to '{out}'; wait for it or stop it"
            ) from None
        yield


def _write_record(out: Path, plan: Plan) -> dict[str, Any]:
    path = out / "run.json"
    record: dict[str, Any] = {
        "job": plan.job.record(),
        "saved": any("saved predictions" in task.model.recipe for task in plan.tasks),
        "cells": [task.folder for task in plan.tasks],
        **({"rounds": {}} if plan.job.fast else {}),
        "provenance": provenance(),
    }
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        _same_job(out, found["job"], json.loads(json.dumps(record["job"])))
        if found["provenance"] != record["provenance"]:
            # the first shards were made by what is on record; both are told
            record |= {"provenance": found["provenance"], "continued_with": record["provenance"]}
    write_file(path, encode(record))
    return record


def _same_job(out: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    # what an earlier version did not record was as it is by default
    before = {**json.loads(json.dumps(Job().record())), **before}
    for key, value in after.items():
        if value != before[key] and key != "metrics":
            raise UsageError(
                f"'{out}' holds another job: its {key} is {before[key]!r}, not {value!r}; "
                "choose another --out"
            )


def _complete(plan: Plan, watcher: Watcher, predict: Predict, task: Task) -> Path:
    out = Path(plan.job.out)
    cell = begin(out / "cells" / task.folder, task.identity)
    if altered := mend(cell):
        watcher.say(altered)
        log(out, "mended", cell=task.folder, why=altered)
    found = len(cell.finished())
    if found:
        watcher.resumed(task.folder, found, cell.shards)
    started = time.perf_counter()
    advance = watcher.begin(task.folder, cell.rows)
    sums = _Sums(partial(watcher.counted, task.folder))
    local.complete(cell, partial(predict, task), plan.job.workers, advance, sums.add)
    seal(cell)
    seconds = round(time.perf_counter() - started, 3)
    log(
        out,
        "cell",
        cell=task.folder,
        rows=cell.rows,
        shards=cell.shards,
        found=found,
        seconds=seconds,
        stages={stage: round(sums.total[stage], 3) for stage in tally.STAGES},
        **{count: int(sums.total[count]) for count in tally.COUNTS},
    )
    return cell.folder


class _Sums:
    """What the shards of a cell took and met, added up over the threads."""

    def __init__(self, told: Callable[[Mapping[str, float]], None]) -> None:
        self.total = dict.fromkeys((*tally.STAGES, *tally.COUNTS), 0.0)
        self._told = told
        self._lock = threading.Lock()

    def add(self, found: Mapping[str, float]) -> None:
        """Adds what a shard took, and tells the sum."""
        with self._lock:
            for name, amount in found.items():
                self.total[name] += amount
            self._told(dict(self.total))


def _surroundings(plan: Plan, store: Store | None) -> dict[str, Any]:
    """What a run ran on, as far as it makes it fast and not what it is."""
    return {
        "workers": plan.job.workers or local.cores(),
        "cores": local.cores(),
        "machine": platform.platform(),
        "cache": str(store.folder) if store else None,
    }
