"""A job from its plan to sealed predictions, results, pictures and a report."""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.evaluation import engines, shard
from steadyeye.evaluation.engines import local
from steadyeye.evaluation.engines.choice import choice
from steadyeye.evaluation.fast import search
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.plan import Plan
from steadyeye.evaluation.tasks import Task
from steadyeye.predictions.cell import Cell, begin, encode, mend, seal
from steadyeye.predictions.rows import Rows
from steadyeye.storage.lease import Check, alone
from steadyeye.storage.place import Place, place
from steadyeye.storage.write import append, write_file


class Watcher(Protocol):
    """What is told of a run as it goes."""

    def begin(self, name: str, rows: int) -> Callable[[int], None]:
        """A cell begins; the returned function is told of rows as they are done."""
        ...

    def resumed(self, name: str, finished: int, shards: int) -> None:
        """A cell was found with `finished` of its `shards` done."""
        ...


Predict = Callable[[Task, range, Callable[[], bool]], Rows | None]


def run(plan: Plan, watcher: Watcher, predict: Predict = shard.predict) -> Place:
    """Computes every cell of a plan that is not sealed yet; returns the folder of the run.

    `predict`: where the rows of a span of a task come from. Raises `UsageError` where the folder
    holds another job or another process writes into it.
    """
    out = place(plan.job.out)
    with alone(out) as held:
        record = _write_record(out, plan)
        for task in plan.tasks:
            made = partial(complete, plan.job, held, watcher, predict)
            if plan.job.fast:
                for rounds in search(plan.job, task, made):
                    record["rounds"][task.folder] = rounds
                    write_file(out / "run.json", encode(record))
            else:
                made(task)
    return out


def complete(job: Job, held: Check, watcher: Watcher, predict: Predict, task: Task) -> Place:
    """Computes the shards of a task's cell that are not there and seals it; returns its folder.

    `held`: raises where the run's folder is no longer held by this process.
    """
    out = place(job.out)
    cell = begin(out / "cells" / task.folder, task.identity)
    mended(out, cell)
    found = len(cell.finished())
    if found:
        watcher.resumed(task.folder, found, cell.shards)
    started = time.perf_counter()
    told = watcher.begin(task.folder, cell.rows)

    def advance(rows: int) -> None:
        held()
        told(rows)

    elsewhere = choice(job.engine, job.address)
    # saved predictions are only copied: no model, nothing for a cluster
    if elsewhere and predict is shard.predict:
        nodes = engines.cluster().complete(cell, job, elsewhere, advance)
        log(out, "cluster", cell=task.folder, nodes=nodes)
    else:
        local.complete(cell, partial(predict, task), job.workers, advance)
    seal(cell)
    seconds = round(time.perf_counter() - started, 3)
    log(out, "cell", cell=task.folder, shards=cell.shards, found=found, seconds=seconds)
    return cell.folder


def mended(out: Place, cell: Cell) -> None:
    """Takes altered shards of a cell away, to be computed again, and logs which."""
    altered = mend(cell)
    if altered:
        log(out, "altered", cell=cell.folder.name, shards=altered)


def log(out: Place, event: str, **facts: Any) -> None:
    """Appends a line to log.jsonl, where all that differs from run to run is kept."""
    line = json.dumps({"time": round(time.time(), 3), "event": event, **facts})
    append(out / "log.jsonl", line)


def _write_record(out: Place, plan: Plan) -> dict[str, Any]:
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


def _same_job(out: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    # what an earlier version did not record was as it is by default
    before = {**json.loads(json.dumps(Job().record())), **before}
    for key, value in after.items():
        if value != before[key] and key != "metrics":
            raise UsageError(
                f"'{out}' holds another job: its {key} is {before[key]!r}, not {value!r}; "
                "choose another --out"
            )
