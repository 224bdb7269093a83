"""Failure points by search: rounds of queries, each round a sealed cell of its own.

Also for quantities of all images at once, such as mAP. Levels are bisected: where a share falls and
never rises again, the level found is that of a full sweep, for about a third of its work with three
thresholds.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from steadyeye.metrics.detection.failure_levels import measure_left
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
    # of a detector mAP and objects are searched for, rather than accuracy
    if task.detects and "boxes" in sweep.columns:
        yield from _bisect(job, task, sweep, complete)
        return
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
        further = _plan_round(task, sweep, cells, len(folders))
        predictions = read(complete(further))
        for query in queries:
            rows = (cells[:, 1] == query.operator) & (cells[:, 2] == query.level)
            state.learn(query, int(predictions.right[rows].sum()))
        budget -= len(cells)
        folders.append(further.folder)
        yield folders


def _plan_round(task: Task, sweep: Sweep, cells: NDArray[np.int32], number: int) -> Task:
    """The task of a further round, over other cells of the same sweep."""
    source = replace(sweep, cells=cells)
    identity = {**task.identity, "rows": len(cells), "shard_rows": shard_rows(len(cells))}
    identity["data"] = {**task.identity["data"], "fingerprint": source.fingerprint}
    folder = f"{task.folder}-round{number:02d}"
    return replace(task, source=source, folder=folder, identity=identity)


def _bisect(job: Job, task: Task, sweep: Sweep, complete: Complete) -> Iterator[list[str]]:
    """The rounds of a detector: all images at the middles of the levels that are left."""
    limits, images = thresholds(job), sweep.cells[:, 0]
    folders = [task.folder]
    done = [complete(task)]
    known: list[dict[int, list[float]]] = [{} for _ in sweep.how.operators]
    while True:
        yield list(folders)
        queries = [
            (operator, level)
            for operator, steps in enumerate(sweep.how.steps())
            for level in next_levels(steps, known[operator], limits)
        ]
        if not queries:
            return
        cells = np.array([(i, o, level) for i in images for o, level in queries], dtype=np.int32)
        further = _plan_round(task, sweep, cells, len(folders))
        done.append(complete(further))
        folders.append(further.folder)
        table = read(*done)
        for operator, level in queries:
            name = sweep.how.operators[operator].name
            known[operator][level] = measure_left(table, name, level)


def thresholds(job: Job) -> tuple[float, ...]:
    """The accuracies whose failure points the job's metrics ask for."""
    for spec in split(job.metrics or ""):
        if spec.name.endswith("failure_points") and "thresholds" in spec.kwargs:
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


Known = Mapping[int, Sequence[float]]
"""Level → the shares of level 0 that are left of each quantity there."""


def next_levels(
    levels: Sequence[int], known: Known, thresholds: Sequence[float]
) -> tuple[int, ...]:
    """The levels to test next for unknown failure levels, rising; empty if all are known.

    `levels`: of one operator, rising from 0. `known`: those that were asked, beside 0, at which all
    is left.

    Example:
        >>> next_levels(range(31), {}, (0.5,))
        (15,)
        >>> next_levels(range(31), {15: [0.4]}, (0.5,)), next_levels((0, 1, 2), {1: [0.4]}, (0.5,))
        ((7,), ())

    """
    quantities = max((len(values) for values in known.values()), default=1)
    limits = {
        _middle(levels, known, quantity, threshold)
        for quantity in range(quantities)
        for threshold in thresholds
    }
    return tuple(sorted(level for level in limits if level is not None))


def _middle(levels: Sequence[int], known: Known, quantity: int, threshold: float) -> int | None:
    """The level in the middle of those that may be the first below; None where one is left."""
    places = [place for place, level in enumerate(levels) if level in known]
    below = [place for place in places if known[levels[place]][quantity] < threshold]
    high = min(below, default=len(levels))
    low = max((place for place in places if place < high), default=0)
    return levels[(low + high) // 2] if high - low > 1 else None
