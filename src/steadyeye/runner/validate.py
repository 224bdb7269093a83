"""Checks of a job: all errors that can be found before the first forward pass."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from steadyeye.core import plugins
from steadyeye.core.abilities import detects
from steadyeye.core.defaults import METRICS
from steadyeye.core.errors import UsageError, join_errors
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import say_reach
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import Spec, parse, split
from steadyeye.core.storage.files import place
from steadyeye.core.storage.run_lock import check_out
from steadyeye.core.storage.text_columns import find_repeated_texts
from steadyeye.core.types import Metric, Model, Source, read_needs
from steadyeye.degradation.sweep import COLUMNS
from steadyeye.metrics.detection.iou_thresholds import ious
from steadyeye.runner.job import Job
from steadyeye.runner.sweep import degrading
from steadyeye.runner.task import NO_ACCURACY, Task, distinct, task

Outcome = TypeVar("Outcome")

NEEDED = {
    "truth": "labels",
    "boxes": "true boxes",
    "detections": "a detector",
    "tracks": "true tracks of objects",
    "group": "videos or sets of frames",
    "frame": "videos or sets of frames",
    "offset": "sets of neighbouring frames",
    "scene": "videos frame by frame",
    "seconds": "videos frame by frame",
    "operator": "a sweep of degraded images",
    "level": "a sweep of degraded images",
    "profile": "a sweep of every level",
}
"""Column → what predictions need so that they have it."""

IMPLIED = {
    "tracks": ("boxes", "group", "frame"),
    "offset": ("group", "frame"),
    "scene": ("group", "frame"),
    "operator": ("profile",),
}
"""Column → those that all predictions with it have."""


Built: TypeAlias = dict[tuple[str, str], Any]
"""(kind of plugin, text) → the model or source that was built from the text."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A job and its tasks, every part of them found and checked."""

    job: Job
    tasks: tuple[Task, ...]


def check(job: Job, detection_for: str | None = None, built: Built | None = None) -> Plan:
    """The plan of a job whose every part was found.

    `detection_for`: a command that needs detectors and true boxes. `built`: the models and sources
    of earlier jobs, which are not built again; those of this one are added. Raises `UsageError`
    with one line for each thing that is wrong; first, for an --out that cannot be written.
    """
    if job.out:
        check_out(place(job.out))
    problems: list[str] = []
    built = {} if built is None else built
    models = _build("models", job.models, problems, built)
    sources = _build("sources", job.data, problems, built)
    if detection_for:  # said before classes that do not match
        _check_detection(detection_for, models, sources)
    # a sweep of images without labels is refused once, where it is made, not by each metric
    sweep = bool(job.operators) and not all(
        {"truth", "boxes"} & {*source.columns} for _, source in sources
    )
    for spec in () if sweep else _try(partial(split, job.metrics or ""), problems) or ():
        _try(partial(_metric, job, [model for _, model in models], sources, spec), problems)
    for text, source in sources:
        for part in (distinct_ids, present):
            _try(partial(part, text, source), problems)
    how = _try(partial(degrading, job, [model for _, model in models]), problems)
    pairs = [(model, source) for source in sources for model in models]
    tasks = [_try(partial(task, job, *pair, how), problems) for pair in pairs]
    for planned in filter(None, tasks):
        _try(partial(_answerable, job, planned), problems)
        _try(partial(_check_distances, job, planned), problems)
    if problems:
        raise join_errors(problems)
    return Plan(job, distinct([task for task in tasks if task]))


def _check_detection(
    command: str, models: Sequence[tuple[str, Model]], sources: Sequence[tuple[str, Source]]
) -> None:
    """Raises `UsageError` for a classifier, or data without true boxes."""
    for _, model in models:
        if not detects(model):
            raise UsageError(f"{model.name} is a classifier; {command} needs a detector")
    for _, source in sources:
        if "boxes" not in source.columns:
            raise UsageError(
                f"'{source.name}' has no true boxes, so mistakes are not known; give labelled data"
            )


def with_models(job: Job, models: Sequence[Model]) -> Plan:
    """The plan of a job whose models are objects at hand, which saved predictions are too.

    `job.models` holds the texts that name them. The pixels of the data need not be there.
    """
    sources = [(text, plugins.build("sources", parse(text))) for text in job.data]
    return of_objects(job, models, sources)


def of_objects(
    job: Job,
    models: Sequence[Model],
    sources: Sequence[tuple[str, Source]],
    objects: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """The plan of models and sources at hand, named by `job.models` and the sources' texts.

    `given`: those of them that no text can make again, by name.
    """
    for spec in split(job.metrics or ""):
        _metric(job, models, sources, spec)
    for text, source in sources:
        distinct_ids(text, source)
    models_by_name = list(zip(job.models, models, strict=True))
    how = degrading(job, models)
    tasks = [
        replace(task(job, model, source, how), objects=objects)
        for source in sources
        for model in models_by_name
    ]
    for planned in tasks:
        _answerable(job, planned)
        _check_distances(job, planned)
    return Plan(job, distinct(tasks))


def metric(spec: Spec) -> Metric:
    """The metric a spec names, its arguments checked but for the predictions."""
    plugin: Metric = plugins.load("metrics", spec.name)
    plugins.check_arguments(plugin, spec, positional=1)
    if spec.name in plugins.own_names("metrics"):
        k, score, shares = (spec.kwargs.get(key) for key in ("k", "score", "thresholds"))
        # the neighbours that are to agree with a frame: none at k=0, where all would be steady
        least = 1 if spec.name == "self_consistency" else 0
        if k is not None and k < least:
            raise UsageError(f"{spec}: k counts the frames on either side; give {least} or more")
        if score is not None and not 0 <= score <= 1:
            raise UsageError(f"{spec}: scores are in 0…1; give a threshold such as 0.5")
        if shares is not None and not _are_shares(shares):
            raise UsageError(
                f"{spec}: give shares above 0 and up to 1, such as thresholds=[0.9, 0.5]"
            )
        if "iou" in spec.kwargs:
            ious(spec.kwargs["iou"])
    return plugin


def _are_shares(values: object) -> bool:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        return False
    return all(isinstance(value, int | float) and 0 < value <= 1 for value in values)


def check_fits(spec: Spec, table: Predictions, cure: str) -> Metric:
    """The metric a spec names. Raises `UsageError` where it cannot be asked of the predictions.

    Where only one class competes there are labels, and the value of what needs them is None.
    `cure`: what to do about it.
    """
    plugin = metric(spec)
    columns = (*table.columns, *(["truth"] if table.truth.any() else []))
    if readable(plugin, columns):
        return plugin
    missing = lacks(plugin, columns)
    reason = f"needs {_say_needed(missing)}" if missing else "is no metric of degraded images"
    raise UsageError(f"{spec} {reason}: it does not apply to {table.model} on {table.data}; {cure}")


def _say_needed(missing: Sequence[str]) -> str:
    """What is needed for columns that are missing: `true boxes and a detector`."""
    implied = {name for other in missing for name in IMPLIED.get(other, ())}
    names = [name for name in missing if name not in implied]
    *first, last = dict.fromkeys(NEEDED.get(name, f"the column '{name}'") for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def available(columns: Sequence[str]) -> tuple[Spec, ...]:
    """The default metrics whose needs the columns meet, those first that are read first."""
    return tuple(Spec(name) for name in METRICS if declared_readable("metrics", name, columns))


def declared_readable(kind: str, name: str, columns: Sequence[str]) -> bool:
    """Whether a metric or analysis can be asked of these columns, by its file alone."""
    return _fits(plugins.declaration(kind, name).columns or (), columns)


def readable(plugin: Callable[..., Any], columns: Sequence[str]) -> bool:
    """Whether a metric or analysis can be asked of a table with these columns."""
    return _fits(read_needs(plugin), columns)


def _fits(needed: Sequence[str], columns: Sequence[str]) -> bool:
    # a sweep or a probe holds every image many times: what does not ask for the operator or the
    # target would mix them
    mixed = any(mark in columns and mark not in needed for mark in ("operator", "target"))
    return not mixed and all(need in columns for need in needed)


def _build(
    kind: str, texts: Sequence[str], problems: list[str], built: Built
) -> list[tuple[str, Any]]:
    def build(text: str) -> Any:
        if (kind, text) not in built:
            built[kind, text] = plugins.build(kind, parse(text))
        return built[kind, text]

    parts = [(text, _try(partial(build, text), problems)) for text in texts]
    return [(text, plugin) for text, plugin in parts if plugin is not None]


def _try(action: Callable[[], Outcome], problems: list[str]) -> Outcome | None:
    try:
        return action()
    except UsageError as error:
        problems.extend(str(error).splitlines())
        return None


def _metric(
    job: Job, models: Sequence[Model], sources: Sequence[tuple[str, Source]], spec: Spec
) -> None:
    plugin = metric(spec)
    # a metric of detections is fine as long as one of the models is a detector
    more = (*(COLUMNS if job.operators else ()), *("detections" for _ in filter(detects, models)))
    for text, source in sources:
        columns = (*source.columns, *more)
        missing = lacks(plugin, columns)
        if job.operators and not missing and not readable(plugin, columns):
            raise UsageError(f"{spec.name} is no metric of degraded images; leave it out")
        if missing:
            cure = " or give labels" if "truth" in missing else ""
            raise UsageError(
                f"{spec.name} needs {_say_needed(missing)}: it does not apply to '{text}'; leave "
                f"the metric out{cure}"
            )


def _answerable(job: Job, task: Task) -> None:
    """Raises `UsageError` if an accuracy is requested and every answer would be right."""
    names = [spec.name for spec in split(job.metrics or "") if "truth" in lacks(metric(spec), ())]
    if names and "truth" in task.source.columns and task.class_map.competing < 2:
        raise UsageError(
            f"{names[0]} does not apply to {task.model.name} on {task.source.name}: only one "
            f"class competes, so every prediction is right; {NO_ACCURACY}"
        )


def _check_distances(job: Job, task: Task) -> None:
    """Raises `UsageError` for a metric with a k that the pm-sets of the data do not reach."""
    specs = [
        spec
        for spec in split(job.metrics or "")
        if isinstance(spec.kwargs.get("k"), int)
        # of pm-sets it is about their neighbours, though it does not need any
        and (spec.name == "self_consistency" or "offset" in read_needs(metric(spec)))
    ]
    if not specs or "offset" not in task.source.columns:
        return
    samples = (task.source[i] for i in range(len(task.source)))
    # the smallest id of the farthest neighbours
    distances = ((-abs(int(sample.tags.get("offset", 0))), sample.id) for sample in samples)
    largest, farthest = min(distances)
    for spec in specs:
        if int(spec.kwargs["k"]) > -largest:
            of = f"the data '{task.source.name}' (the farthest neighbour is '{farthest}')"
            raise UsageError(f"{spec}: {say_reach(-largest, of)}")


def lacks(plugin: Callable[..., Any], columns: Sequence[str]) -> list[str]:
    """The columns that a metric or analysis needs and that are missing here."""
    return [need for need in read_needs(plugin) if need not in columns]


def distinct_ids(text: str, source: Source) -> None:
    """Raises `UsageError` for a source without samples, or with two of one id."""
    if not len(source):
        raise UsageError(f"'{text}' holds no samples; check its path and parameters")
    twice = find_repeated_texts(source.ids)
    if twice:
        raise UsageError(
            f"'{text}' has {number_of(len(twice), 'id')} more than once, first '{twice[0]}'; "
            "give every sample its own id"
        )


def present(text: str, source: Source) -> None:
    """Raises `UsageError` if files that inference needs are missing."""
    missing = source.missing()
    if missing:
        cure = "complete the data or select the part that exists"
        if os.sep == "/" and "\\" in missing[0]:  # as Windows writes paths
            cure = "write / instead of \\ in the names of its files"
        raise UsageError(
            f"'{text}' lacks {len(missing):,} of {number_of(len(source), 'file')}, first "
            f"'{missing[0]}'; {cure}"
        )
