"""The engines that compute outside of this process: how each is begun, and what is said of it."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

from steadyeye.core.plugins import not_installed
from steadyeye.runner.engine_spec import Cluster, RemoteEngine
from steadyeye.runner.engines import processes
from steadyeye.runner.engines.driver import Driver
from steadyeye.runner.engines.work_order import open_order
from steadyeye.runner.job import Job
from steadyeye.runner.task import Task


def complete(driver: Driver, job: Job, task: Task, engine: RemoteEngine) -> Mapping[str, Any]:
    """Computes the shards of a cell that are left; returns what the log says of that.

    Raises `UsageError` for what a worker raises, and where one has other code, packages, weights
    or data than this process.
    """
    facts: dict[str, Any] = {}
    if driver.left:
        with open_order(job, task, driver.cell, _workers(engine)) as order:
            if isinstance(engine, Cluster):
                facts["nodes"] = _ray().complete(driver, order, engine)
            else:
                facts["died"] = processes.complete(driver, order, engine)
        driver.close()
    # how much of the predictions went through this process
    return {**facts, "written": driver.written, "sent": driver.sent}


def name(engine: RemoteEngine) -> str:
    """What the log calls an engine."""
    return "cluster" if isinstance(engine, Cluster) else "processes"


def _workers(engine: RemoteEngine) -> int:
    if isinstance(engine, Cluster):
        return engine.most or os.cpu_count() or 1
    return engine.processes


def _ray() -> Any:
    """The module `ray`. Raises `UsageError` where Ray is not installed."""
    try:
        return importlib.import_module("steadyeye.runner.engines.ray")
    except ModuleNotFoundError as error:
        raise not_installed("the engine 'ray'", error) from error
