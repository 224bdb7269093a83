"""A job from its plan to sealed predictions, results, pictures and a report."""

import importlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from steadyeye.core import plugins
from steadyeye.core.abilities import Batched, OnDevice
from steadyeye.core.difference import describe_difference
from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.spec import split
from steadyeye.core.storage.files import Place, append_line, clear_folder, place
from steadyeye.core.storage.run_lock import Check, hold_run
from steadyeye.predictions.json_record import (
    RUN,
    check_results,
    is_damaged,
    read_record,
    write_record,
)
from steadyeye.predictions.schema import Rows
from steadyeye.predictions.shard_store import Cell, begin, mend, seal
from steadyeye.runner import classify, data_changes, threads
from steadyeye.runner.cache.lookup import closing_store, open_configured_store
from steadyeye.runner.cache.store import Store
from steadyeye.runner.engines import processes
from steadyeye.runner.engines.driver import Driver
from steadyeye.runner.engines.work_order import open_order, pack_objects
from steadyeye.runner.failure_point_search import search
from steadyeye.runner.infer import attach_cache
from steadyeye.runner.job import Cluster, Job, RemoteEngine, read_engine
from steadyeye.runner.normalisation_check import describe_normalisation
from steadyeye.runner.task import Task
from steadyeye.runner.threads import Sums, WorkerThread
from steadyeye.runner.validate import Plan


class Watcher(Protocol):
    """Follows the progress of a run."""

    def begin(self, name: str, rows: int) -> Callable[[int], None]:
        """A cell begins; the returned function is called with rows as they are done."""
        ...

    def report_resumed(self, name: str, finished: int, shards: int) -> None:
        """A cell had `finished` of its `shards` done before."""
        ...

    def report_counts(self, name: str, sums: Mapping[str, float]) -> None:
        """Times and counts of the shards of a cell so far: `STAGES` and `COUNTS`."""
        ...

    def say(self, line: str) -> None:
        """A message to the user."""
        ...


class Silent:
    """A watcher that prints nothing."""

    def begin(self, name: str, rows: int) -> Callable[[int], None]:
        """Ignores finished rows."""
        return lambda done: None

    def report_resumed(self, name: str, finished: int, shards: int) -> None:
        """Nothing to say."""

    def report_counts(self, name: str, sums: Mapping[str, float]) -> None:
        """Nothing to say."""

    def say(self, line: str) -> None:
        """Nothing to say."""


Predict = Callable[[Task, range, WorkerThread], Rows | None]


def run(
    plan: Plan, watcher: Watcher, predict: Predict = classify.predict, command: str = "run"
) -> Place:
    """Computes every cell of a plan that is not sealed yet; returns the folder of the run.

    `predict`: where the rows of a span of a task come from. `command`: as in `check_results`.
    Raises `UsageError` where the folder holds another job, or results of another command, or
    another process writes into it.
    """
    engine = read_engine(plan.job.engine, plan.job.address)
    if engine:
        for task in plan.tasks:
            pack_objects(task.objects)
    out = place(plan.job.out)
    # saved predictions are scored without the images
    infers = predict is classify.predict
    store = open_configured_store(plan.job.cache) if infers else None
    with _remove_unclaimed(out), hold_run(out) as check_held, closing_store(store, watcher.say):
        check_results(out, command)
        clear_folder(out)
        record = _write_record(out, plan)
        log(out, "run", **_surroundings(plan.job, store))
        cells = Cells(plan.job, out, engine, check_held, watcher, predict)
        for planned in data_changes.mark_tasks(out, plan.tasks, store) if infers else plan.tasks:
            task = attach_cache(planned, store)
            if infers:
                task = _warn_of_normalisation(out, task, watcher)
            if plan.job.fast:
                for rounds in search(plan.job, task, cells.complete):
                    record["rounds"][task.folder] = rounds
                    write_record(out / "run.json", record)
            else:
                cells.complete(task)
    return out


def _warn_of_normalisation(out: Place, task: Task, watcher: Watcher) -> Task:
    """The task with a warning if the model's input seems to be normalised in the wrong way.

    A cell that was begun before keeps the warning it has.
    """
    begun = (out / "cells" / task.folder / "cell.json").is_file()
    warning = "" if begun else describe_normalisation(task)
    if not warning:
        return task
    watcher.say(f"warning: {task.folder}: {warning}")
    model = {**task.identity["model"], "warning": warning}
    return replace(task, identity={**task.identity, "model": model})


@contextmanager
def _remove_unclaimed(out: Place) -> Iterator[None]:
    """Removes the folders that a run made if it fails before anything is computed."""
    # `runs/` too, where the run is the first in it
    created = (
        [folder for folder in (out, *out.parents) if not folder.exists()] if _local(out) else []
    )
    try:
        yield
    except BaseException:
        if created and _local(out) and not any(out.glob("cells/*/*.arrow")):
            shutil.rmtree(out, ignore_errors=True)
            for folder in created[1:]:
                with suppress(OSError):  # another run may be in it by now
                    folder.rmdir()
        raise


def _local(out: Place) -> TypeGuard[Path]:
    return isinstance(out, Path)


@dataclass(frozen=True, eq=False)
class Cells:
    """How the cells of a run are completed.

    `engine`: None for threads of this process. `check_held`: raises where the run's folder is no
    longer held by this process; None where that cannot be.
    """

    job: Job
    out: Place
    engine: RemoteEngine | None
    check_held: Check | None
    watcher: Watcher
    predict: Predict = classify.predict

    def complete(self, task: Task) -> Place:
        """Computes the shards of a task's cell that are not there and seals it; its folder."""
        folder = self.out / "cells" / task.folder
        data_changes.refuse_other_samples(folder, task)
        cell = begin_cell(self.out, folder, task.identity, self.watcher)
        resumed = len(cell.list_finished())
        if resumed:
            self.watcher.report_resumed(task.folder, resumed, cell.shards)
        started = time.perf_counter()
        show_progress = self.watcher.begin(task.folder, cell.rows)

        advance = _check_first(self.check_held, show_progress) if self.check_held else show_progress
        sums = Sums(partial(self.watcher.report_counts, task.folder))
        infers = self.predict is classify.predict
        # saved predictions are only copied: no model, nothing for other processes or to be cached
        if self.engine and infers:
            driver = Driver(cell, advance, sums.add, self.watcher.say)
            facts = complete_outside(driver, self.job, task, self.engine)
            kind = "cluster" if isinstance(self.engine, Cluster) else "processes"
            log(self.out, kind, cell=task.folder, **facts)
        else:
            predict = partial(self.predict, task)
            threads.complete(cell, predict, self.job.workers, advance, sums.add)
        seal(cell)
        seconds = round(time.perf_counter() - started, 3)
        numbers = {"rows": cell.rows, "shards": cell.shards, "found": resumed, "seconds": seconds}
        took = sums.record() if infers else {}
        log(self.out, "cell", cell=task.folder, **numbers, **took, **_gpu(task))
        return cell.folder


def complete_outside(
    driver: Driver, job: Job, task: Task, engine: RemoteEngine
) -> Mapping[str, Any]:
    """Computes the shards of a cell that are left; returns what the log says of that.

    Raises `UsageError` for what a worker raises, and where one has other code, packages, weights
    or data than this process.
    """
    facts: dict[str, Any] = {}
    if driver.left:
        with open_order(job, task, driver.cell, engine) as order:
            if isinstance(engine, Cluster):
                facts["nodes"] = _import_ray().complete(driver, order, engine)
            else:
                facts["died"] = processes.complete(driver, order, engine)
        driver.close()
    # how much of the predictions went through this process
    return {**facts, "written": driver.written, "sent": driver.sent}


def _import_ray() -> Any:
    """The module `ray`. Raises `UsageError` where Ray is not installed."""
    try:
        return importlib.import_module("steadyeye.runner.engines.ray")
    except ModuleNotFoundError as error:
        raise plugins.not_installed("the engine 'ray'", error) from error


def _check_first(check: Check, advance: Callable[[int], None]) -> Callable[[int], None]:
    """`advance` that raises where `check` does."""

    def advance_if_held(rows: int) -> None:
        check()
        advance(rows)

    return advance_if_held


def begin_cell(out: Place, folder: Place, identity: Mapping[str, Any], watcher: Watcher) -> Cell:
    """The cell in a folder, created or resumed; reports, logs and drops damaged files."""
    lost = is_damaged(folder / "cell.json")
    cell = begin(folder, identity)
    if lost:
        watcher.say(f"{folder.name}: cell.json was damaged and was rebuilt from its shards")
        log(out, "altered", cell=folder.name, shards=["cell.json"])
    altered = mend(cell)
    if altered:
        watcher.say(
            f"{cell.folder.name}: {len(altered)} of {number_of(cell.shards, 'shard')} had changed "
            f"after they were written ({list_texts(altered, 3)}); computed again"
        )
        log(out, "altered", cell=cell.folder.name, shards=altered)
    return cell


def log(out: Place, event: str, **facts: Any) -> None:
    """Appends a line to log.jsonl, the file for everything that differs between equal runs."""
    line = json.dumps({"time": round(time.time(), 3), "event": event, **facts})
    append_line(out / "log.jsonl", line)


def _write_record(out: Place, plan: Plan) -> dict[str, Any]:
    path = out / "run.json"
    record: dict[str, Any] = {
        "job": plan.job.record(),
        "saved": any("saved predictions" in task.model.recipe for task in plan.tasks),
        "cells": [task.folder for task in plan.tasks],
        **({"rounds": {}} if plan.job.fast else {}),
        "provenance": {**provenance(), **_mark_outside_plugins(plan.job)},
    }
    if path.is_file():
        before = read_record(path, RUN, ("job", "provenance"))
        _check_same_job(out, before["job"], json.loads(json.dumps(record["job"])))
        if before["provenance"] != record["provenance"]:
            # the first shards were made by what is on record; both are named
            record |= {"provenance": before["provenance"], "continued_with": record["provenance"]}
    write_record(path, record)
    return record


def _mark_outside_plugins(job: Job) -> dict[str, str]:
    """The plugins of a job that are no files of this package, each with a mark of its file."""
    specs_of = {"models": job.models, "sources": job.data}
    marks = [plugins.outside_marks(kind, specs) for kind, specs in specs_of.items()]
    for kind, text in (("metrics", job.metrics), ("operators", job.operators)):
        marks.append(plugins.outside_marks(kind, map(str, split(text or ""))))
    return {f"plugin {name}": mark for mark_of in marks for name, mark in mark_of.items()}


def _check_same_job(out: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    # what an earlier version did not record was as it is by default
    before = {**json.loads(json.dumps(Job().record())), **before}
    for key, value in after.items():
        # what batch came of 0 is in the cells, which are compared as well
        if value != before[key] and key not in ("metrics", "batch"):
            raise UsageError(
                f"'{out}' holds another job: its {describe_difference(key, before[key], value)}; "
                "choose another --out"
            )


def _surroundings(job: Job, store: Store | None) -> dict[str, Any]:
    """Hardware and versions of a run that affect its speed, but not its results."""
    return {
        "workers": job.workers or threads.cores(),
        "cores": threads.cores(),
        "machine": platform.platform(),
        "cache": str(store.folder) if store else None,
    }


def _gpu(task: Task) -> dict[str, Any]:
    """The GPUs that this process has for a model, and the images that go into a pass of them."""
    model = task.model
    if not isinstance(model, OnDevice) or not model.device:
        return {}
    return {"gpu": model.device, "pass": model.most if isinstance(model, Batched) else 1}
