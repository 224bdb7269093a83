"""Tasks: one model on one source, with the class map between them and the identity of the cell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from steadyeye.core.abilities import MOST, Published, detects
from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.model_stages import Stages, stages
from steadyeye.core.types import Classes, Model, Source
from steadyeye.data.classes import class_mapping
from steadyeye.data.classes.class_map import ClassMap, with_others
from steadyeye.data.classes.class_mapping import named_map
from steadyeye.degradation.sweep import Degrading
from steadyeye.predictions.shard_store import shard_rows
from steadyeye.runner.job import Job
from steadyeye.runner.sweep import build_sweep

if TYPE_CHECKING:
    from steadyeye.runner.cache.lookup import Cache  # SQLite, which a report does not need

BATCH, BATCHES = 16, {"cuda": MOST}  # images handed to a model at a time, by its runtime
NO_ACCURACY = "there is no accuracy; use a model with more classes or --class-list open"
VIDEO = frozenset({"scene", "frame", "seconds"})  # columns of a source of whole videos
NAMED = 20  # classes without a model class that the notes name


@dataclass(frozen=True, eq=False)
class Task:
    """One model on one source. `folder`: the name of its cell.

    `stages`: the model cut in two; one that does not say how takes images as they are. `width`: how
    many classes the model has, the columns of its scores. `cache`: where its answers are looked up
    and stored; None: nowhere. `objects`: of the model and the source those that are objects of the
    user's program, by name; the others are made of text. `follows_objects`: whether detections of
    one object are linked from frame to frame, for which the motion of the camera is measured.
    """

    model: Model
    source: Source
    class_map: ClassMap
    folder: str
    identity: Mapping[str, Any]
    stages: Stages
    detects: bool
    width: int
    cache: "Cache | None" = None
    objects: Mapping[str, Any] = field(default_factory=dict)
    follows_objects: bool = False


def task(
    job: Job, model: tuple[str, Model], source: tuple[str, Source], how: Degrading | None
) -> Task:
    """The task of a model and a source, each with the text that names it.

    `how`: what is done to the images first. Raises `UsageError` where the two do not fit.
    """
    classes = _model_classes(model[1], source[1])
    class_map = _class_map(job, model[1], classes, source)
    unreached = _list_unreached(source[1], class_map)
    published = isinstance(source[1], Published) and source[1].is_published_list
    if unreached and not detects(model[1]) and not published:
        raise UsageError(
            f"no class of {model[0]} maps to {', '.join(unreached)}, the only labels of "
            f"{sum(unreached.values()):,} of {number_of(len(source[1]), 'sample')} of "
            f"'{source[0]}'; give --class-map with these classes"
        )
    if how:
        fitted, sweep = build_sweep(model[1], source[1], class_map, how, job)
        model, source = (model[0], fitted), (source[0], sweep)
    identity = _identity(job, model, source, classes, class_map)
    assumed = model[1].recipe.get("classes_note")
    identity["model"]["notes"] = [
        *([f"{model[1].name}: {assumed}"] if assumed else ()),
        *_unreached_notes(model[1], source[1], class_map),
    ]
    if how:
        identity["sweep"] = how.about()
    folder = f"{model[1].name}@{source[1].name}"
    return Task(
        model[1],
        source[1],
        class_map,
        "".join(c if c.isalnum() or c in "@._-+" else "_" for c in folder),
        identity,
        stages(model[1]),
        detects(model[1]),
        len(classes),
        follows_objects=detects(model[1]) and how is None and set(source[1].columns) >= VIDEO,
    )


def _identity(
    job: Job,
    model: tuple[str, Model],
    source: tuple[str, Source],
    classes: Classes,
    class_map: ClassMap,
) -> dict[str, Any]:
    """The identity of the cell: different predictions have different identities."""
    parents = class_map.target.parents
    return {
        "model": {
            "spec": model[0],
            "name": model[1].name,
            "fingerprint": model[1].fingerprint,
            "recipe": dict(model[1].recipe),
            "classes": list(classes.names),
        },
        "data": {
            "spec": source[0],
            "name": source[1].name,
            "fingerprint": source[1].fingerprint,
            "columns": [
                *list_columns(source[1], class_map),
                *(("detections",) if detects(model[1]) and "boxes" in source[1].columns else ()),
            ],
            "notes": [*source[1].notes, *_alone(source[1], class_map)],
            **({} if parents is None else {"parents": [list(above) for above in parents]}),
        },
        "classes": list(class_map.target.names),
        "class_map": class_map.origin,
        "members": [list(members) for members in class_map.members],
        "others": list(class_map.others),
        "reduce": job.reduce,
        "on_error": job.on_error,
        "keep": "answers" if job.operators or detects(model[1]) else "scores",
        "rows": len(source[1]),
        "shard_rows": shard_rows(len(source[1])),
        "batch": job.batch or BATCHES.get(model[1].recipe.get("runtime", ""), BATCH),
    }


def _model_classes(model: Model, source: Source) -> Classes:
    """The model's classes; a callable that names none answers in the data's, or in numbers."""
    if model.classes is not None:
        return model.classes
    if source.classes is not None:
        return source.classes
    width = model([np.zeros((224, 224, 3), dtype=np.uint8)]).shape[1]
    return Classes(tuple(f"class {i}" for i in range(width)))


def class_map_of(job: Job, model: Model, source: Source) -> ClassMap:
    """The class map of a model and a source. Raises `UsageError` if no class matches."""
    return _class_map(job, model, _model_classes(model, source), (source.name, source))


def _class_map(job: Job, model: Model, classes: Classes, source: tuple[str, Source]) -> ClassMap:
    target = source[1].classes
    if target is None and job.class_map:
        raise UsageError(
            f"'{source[0]}' has no labels, so --class-map {job.class_map} does not apply; leave "
            "it out or give labels"
        )
    if target is None:
        return class_mapping.identity(classes)
    if job.class_map:
        class_map = named_map(job.class_map, classes, target)
    else:
        # boxes of a class that the detector does not know can still be found: as some other object
        class_map = class_mapping.between(classes, target)
    closed = job.class_list == "closed" if job.class_list else target.closed
    return class_map if closed else with_others(class_map)


def list_columns(source: Source, class_map: ClassMap) -> tuple[str, ...]:
    """The columns of a source, without the truth where no answer could be wrong."""
    alone = class_map.competing < 2
    return tuple(name for name in source.columns if not (alone and name == "truth"))


def _alone(source: Source, class_map: ClassMap) -> tuple[str, ...]:
    """The reason for no accuracy if only one class competes."""
    if list_columns(source, class_map) == tuple(source.columns):
        return ()
    names = [n for n, own in zip(class_map.target.names, class_map.members, strict=True) if own]
    return (
        f"only one class competes, {list_texts(names)}: every answer is right, so {NO_ACCURACY}",
    )


def _list_unreached(source: Source, class_map: ClassMap) -> dict[str, int]:
    """The classes of samples none of whose labels any class of the model maps to: never right.

    With the number of such samples, counted at the first of their classes.
    """
    mapped = {i for i, members in enumerate(class_map.members) if members}
    stuck = [truth for truth in source.truths if truth and not mapped.intersection(truth)]
    names = sorted({class_map.target.names[i] for truth in stuck for i in truth})
    firsts = Counter(class_map.target.names[truth[0]] for truth in stuck)
    return {name: firsts[name] for name in names}


def _unreached_notes(model: Model, source: Source, class_map: ClassMap) -> list[str]:
    """The classes of samples that no class of the model maps to, in how many, and the first.

    Of more than `NAMED`, those in most samples, and how many more there are.
    """
    first: dict[int, str] = {}
    times: Counter[int] = Counter()
    unreached = {label for label, members in enumerate(class_map.members) if not members}
    for id_, truth in zip(source.ids, source.truths, strict=True):
        for label in unreached.intersection(truth):
            times[label] += 1
            first.setdefault(label, id_)
    shown_labels = sorted(times, key=lambda label: (-times[label], label))[:NAMED]
    notes = [
        f"{class_map.target.names[label]}: no class of {model.name} maps to it "
        f"({number_of(times[label], 'sample')}, first '{first[label]}')"
        for label in sorted(shown_labels)
    ]
    if len(times) > NAMED:
        notes.append(
            f"{len(times) - NAMED:,} more classes of the data without a class of {model.name}, "
            f"each in at most {number_of(times[shown_labels[-1]], 'sample')}"
        )
    return notes


def distinct(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The tasks with folder names made distinct by a number."""
    times_of: dict[str, int] = {}
    numbered = []
    for task in tasks:
        times_of[task.folder] = times_of.get(task.folder, 0) + 1
        times = times_of[task.folder]
        numbered.append(task if times == 1 else replace(task, folder=f"{task.folder}-{times}"))
    return tuple(numbered)
