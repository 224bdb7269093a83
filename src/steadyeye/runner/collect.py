"""The sealed predictions of runs with their results, under distinct names."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.code_permission import check_names
from steadyeye.core.disk_columns import return_free_memory
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions, samples
from steadyeye.core.result_lookup import add_parameters
from steadyeye.core.review_filter import select_reviewed
from steadyeye.core.spec import Spec, split
from steadyeye.core.storage.files import Place
from steadyeye.core.types import BoundMetric, Comparable, Evaluated, Needing, Result, read_needs
from steadyeye.predictions.covariate_table import join_measures
from steadyeye.predictions.json_record import RUN, read_record
from steadyeye.predictions.read import cells, read, read_sealed
from steadyeye.runner import data_changes
from steadyeye.runner.validate import available, metric, readable

_Measured: TypeAlias = tuple[Spec, BoundMetric, Result]


def collect(runs: Sequence[Place], metrics: str | None) -> list[Evaluated]:
    """Every cell of the runs, evaluated; `metrics`: a list of specs, None: those of each job."""
    return evaluate_tables(tables(runs), metrics)


def evaluate_tables(
    tables_by_run: Sequence[tuple[Place, Predictions]], metrics: str | None
) -> list[Evaluated]:
    """What `tables` returned, evaluated; `metrics`: as in `collect`."""
    return_free_memory()
    runs = dict.fromkeys(run for run, _ in tables_by_run)
    metrics_of = {run: split(metrics) if metrics else _recorded_metrics(run) for run in runs}
    measured = [_measure(predictions, metrics_of[run]) for run, predictions in tables_by_run]
    ambiguous = _find_ambiguous(measured)
    return [
        _gather(predictions, of_table, ambiguous)
        for (_, predictions), of_table in zip(tables_by_run, measured, strict=True)
    ]


def _recorded_metrics(run: Place) -> Sequence[Spec]:
    """The metrics of a run's job. Raises `UsageError` for code that the user has not named."""
    specs = split(record(run)["job"]["metrics"] or "")
    check_names((spec.name for spec in specs), run / "run.json")
    return specs


def tables(runs: Sequence[Place]) -> list[tuple[Place, Predictions]]:
    """Every cell of the runs with its run, under distinct names.

    Raises `UsageError` for a run that is given twice, for example by a link.
    """
    check_distinct(runs)
    folders = [(run, cell) for run in runs for cell in cells(run)]
    read_once = cache(read_sealed)  # what was measured is the same for all models
    joined_tables = (
        add_notes(run, cell, join_measures(runs, read(*cell), read_once)) for run, cell in folders
    )
    read_ones = share_samples(select_reviewed(table) for table in joined_tables)
    listed_tables = [(run, table) for (run, _), table in zip(folders, read_ones, strict=True)]
    return name_models(_data(listed_tables))


def check_distinct(runs: Sequence[Place]) -> None:
    """Raises `UsageError` if two paths lead to one folder: its models would count twice."""
    first: dict[Place, Place] = {}
    for run in runs:
        folder = run.resolve() if isinstance(run, Path) else run
        if folder in first:
            other = f" (as '{first[folder]}' before)" if str(first[folder]) != str(run) else ""
            raise UsageError(f"the run '{run}'{other} is given twice; give every run once")
        first[folder] = run


def add_notes(run: Place, cell: Sequence[Place], table: Predictions) -> Predictions:
    """The table with notes on changes of its images since the run."""
    return replace(table, notes=(*table.notes, *data_changes.note(run, cell[0])))


def evaluate_metrics(predictions: Predictions, metrics: Sequence[Spec] = ()) -> Evaluated:
    """The predictions with the requested metrics, or with all that they allow."""
    measured = _measure(predictions, metrics)
    return _gather(predictions, measured, _find_ambiguous([measured]))


def _measure(predictions: Predictions, metrics: Sequence[Spec]) -> list[_Measured]:
    specs = metrics or [s for s in available(predictions.columns) if _has_to_say(s, predictions)]
    # of several models a metric may fit some only: detections come from detectors
    fitting = [(spec, ask(spec)) for spec in specs if readable(metric(spec), predictions.columns)]
    return [(spec, bound, bound.metric(predictions)) for spec, bound in fitting]


def _find_ambiguous(of_tables: Sequence[Sequence[_Measured]]) -> set[str]:
    """The names that metrics with other parameters share, in one table or among several.

    Among several only of those that models are compared by: the failure points of a search have
    fewer parameters than those of a whole sweep.
    """
    specs: dict[str, set[str]] = {}
    for spec, bound, result in chain.from_iterable(of_tables):
        if bound.outcomes is not None:
            specs.setdefault(result.name, set()).add(str(spec))
    compared = {name for name, texts in specs.items() if len(texts) > 1}
    times = [Counter(result.name for _, _, result in measured) for measured in of_tables]
    return compared | {name for counts in times for name, number in counts.items() if number > 1}


def _gather(
    predictions: Predictions, measured: Sequence[_Measured], ambiguous: Set[str]
) -> Evaluated:
    """The results by name; those whose name is ambiguous have their parameters in it.

    `degraded_accuracy` beside `degraded_accuracy(images=all)`: under one name the last would take
    the place of the other, and models would be compared on two different numbers.
    """
    pairs = [_name_apart(*item) if item[2].name in ambiguous else item[1:] for item in measured]
    return Evaluated(
        predictions,
        {result.name: result for _, result in pairs},
        {result.name: bound for bound, result in pairs},
    )


def _name_apart(spec: Spec, bound: BoundMetric, result: Result) -> tuple[BoundMetric, Result]:
    """A metric and its result, whose name has all parameters."""
    name = add_parameters(result.name, spec.kwargs)
    renamed = replace(bound, metric=partial(_measure_as, name, bound.metric))
    return renamed, replace(result, name=name)


def _measure_as(
    name: str, measure: Callable[[Predictions], Result], predictions: Predictions
) -> Result:
    return replace(measure(predictions), name=name)


def results(predictions: Predictions, metrics: Sequence[Spec] = ()) -> Mapping[str, Result]:
    """The results of the requested metrics, or of all that the predictions allow, by name."""
    return evaluate_metrics(predictions, metrics).results


def ask(spec: Spec) -> BoundMetric:
    """The metric a spec names, with its parameters."""
    plugin = metric(spec)
    compared = plugin if isinstance(plugin, Comparable) else None
    columns = set(read_needs(plugin))
    judged = not columns.isdisjoint({"truth", "boxes"})
    return BoundMetric(
        partial(plugin, **spec.kwargs),
        partial(compared.outcomes, **spec.kwargs) if compared else None,
        bool(compared and compared.lower),
        judged,
        of_own_objects="detections" in columns and not judged,
    )


def _has_to_say(spec: Spec, predictions: Predictions) -> bool:
    """Whether a metric that was not requested applies to the predictions."""
    least = plugins.declaration("metrics", spec.name).largest_offset
    if least and int(abs(predictions.tags["offset"]).max(initial=0)) < least:
        return False
    plugin = metric(spec)
    when = plugin.when if isinstance(plugin, Needing) else None
    return when is None or bool(when(predictions))


def record(run: Place) -> Mapping[str, Any]:
    """The record of a run: job, cells, versions and commit."""
    return read_record(run / "run.json", RUN, ("job", "cells"))


def _data(tables_by_run: Sequence[tuple[Place, Predictions]]) -> list[tuple[Place, Predictions]]:
    """The tables, with a number added to the names of different data of the same name."""
    numbers: dict[str, list[str]] = {}
    names = []
    marks = samples([predictions for _, predictions in tables_by_run])
    for (run, predictions), mark in zip(tables_by_run, marks, strict=True):
        numbers_of_data = numbers.setdefault(predictions.data, [])
        if mark not in numbers_of_data:
            numbers_of_data.append(mark)
        number = numbers_of_data.index(mark) + 1
        name = predictions.data if number == 1 else f"{predictions.data} #{number}"
        names.append((run, replace(predictions, data=name)))
    return names


def name_models(
    tables_by_run: Sequence[tuple[Place, Predictions]],
) -> list[tuple[Place, Predictions]]:
    """The tables, with the run added to the names of models that are equal on the same data."""
    times = Counter((predictions.data, predictions.model) for _, predictions in tables_by_run)
    names = {run: run.name for run, _ in tables_by_run}
    # two folders of the same name, `base/run` and `head/run`, are told apart by their paths
    same = Counter(names.values())
    names = {run: str(run) if same[name] > 1 else name for run, name in names.items()}
    return [
        (run, replace(p, model=f"{p.model} ({names[run]})") if times[p.data, p.model] > 1 else p)
        for run, p in tables_by_run
    ]


def share_samples(tables: Iterable[Predictions]) -> Iterator[Predictions]:
    """The tables, with one shared copy of the sample data of equal samples.

    The names of 23,000 frames take more memory than a model's predictions.
    """
    first: dict[str, Predictions] = {}
    for table in tables:
        known = first.setdefault(table.fingerprint, table)
        yield table if known is table else _with(table, known)


def _with(table: Predictions, known: Predictions) -> Predictions:
    def same(value: Any, other: Any) -> Any:
        return other if np.array_equal(value, other) else value

    both = table.candidates, known.candidates
    return replace(
        table,
        ids=same(table.ids, known.ids),
        groups=same(table.groups, known.groups),
        truth=same(table.truth, known.truth),
        errors=same(table.errors, known.errors),
        tags={
            tag: same(values, known.tags[tag]) if tag in known.tags else values
            for tag, values in table.tags.items()
        },
        candidates=both[0] if both[0] is None or both[1] is None else _with(both[0], both[1]),
    )
