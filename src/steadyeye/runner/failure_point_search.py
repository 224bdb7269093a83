"""Failure points by search: rounds of questions, each round a sealed cell of its own."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import stream
from steadyeye.core.spec import split
from steadyeye.core.storage.files import Place
from steadyeye.degradation.failure_search import THRESHOLDS, Query, Search, affordable, exhaustive
from steadyeye.degradation.sweep import Sweep
from steadyeye.predictions.read import read
from steadyeye.predictions.shard_store import shard_rows
from steadyeye.runner.job import Job
from steadyeye.runner.task import Task

BUDGET = 0.1
"""Forward passes of a search, as a share of those of the exhaustive sweep."""

Complete = Callable[[Task], Place]
"""Computes the cell of a task, if it is not sealed yet, and returns its folder."""


def search(job: Job, task: Task, complete: Complete) -> Iterator[list[str]]:
    """Searches the failure points of one model on one source; gives its folders after each round.

    `task`: all images at level 0, the first round. Every later round follows from the sealed ones
    before it, so that a search that was stopped goes on where it was. Raises `UsageError` where
    no image is right at level 0.
    """
    sweep = task.source
    assert isinstance(sweep, Sweep), "a search is planned over a sweep"
    first = read(complete(task))
    right = sweep.cells[first.right, 0]
    if not len(right):
        raise UsageError(
            f"{task.model.name} is right on none of {number_of(len(first), 'image')} at level 0, "
            "so degradation cannot be measured; check the class map"
        )
    order = stream(job.seed, "search", sweep.name).permutation(right)
    state = Search(len(order), sweep.how.steps(), thresholds(job))
    budget = math.floor(BUDGET * exhaustive(len(first), state)) - len(first)
    folders = [task.folder]
    yield folders
    while queries := affordable(state.queries(), budget):
        cells = _cells(queries, order)
        source = replace(sweep, cells=cells)
        folder = f"{task.folder}-round{len(folders):02d}"
        identity = {**task.identity, "rows": len(cells), "shard_rows": shard_rows(len(cells))}
        identity["data"] = {**task.identity["data"], "fingerprint": source.fingerprint}
        predictions = read(complete(replace(task, source=source, folder=folder, identity=identity)))
        for query in queries:
            rows = (cells[:, 1] == query.operator) & (cells[:, 2] == query.level)
            state.learn(query, int(predictions.right[rows].sum()))
        budget -= len(cells)
        folders.append(folder)
        yield folders


def thresholds(job: Job) -> tuple[float, ...]:
    """The accuracies whose failure points the job's metrics ask for."""
    for spec in split(job.metrics or ""):
        if spec.name == "failure_points" and "thresholds" in spec.kwargs:
            return tuple(spec.kwargs["thresholds"])
    return THRESHOLDS


def _cells(queries: list[Query], order: NDArray[np.int32]) -> NDArray[np.int32]:
    """(rows, 3) image, operator, level of all questions, the levels of an image side by side."""
    parts = [
        np.column_stack(
            [order[q.start : q.stop], np.full(len(q), q.operator), np.full(len(q), q.level)]
        )
        for q in queries
    ]
    rows = np.concatenate(parts).astype(np.int32)
    return rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
