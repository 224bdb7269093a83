"""Saved predictions: scored like any model's, without the model and without the pixels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyeye.core.errors import UsageError, find_repeated, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import parse_json, read_text
from steadyeye.core.types import Classes, Image, Scores
from steadyeye.predictions.schema import Rows
from steadyeye.runner import classify
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.task import Task
from steadyeye.runner.threads import WorkerThread


@dataclass(frozen=True, eq=False)
class SavedPredictions:
    """A stand-in for the model that made a file: its name, classes and what it said by sample id.

    `said`: id → a list of scores over `classes`, or the index or the name of one class.
    """

    name: str
    classes: Classes | None
    fingerprint: str
    recipe: Mapping[str, Any]
    answers: Mapping[str, Any] = field(repr=False)

    def __call__(self, images: Iterable[Image]) -> Scores:
        """Raises an error, since there is no model to run."""
        raise UsageError(
            f"'{self.name}' is a file of predictions, whose classes neither it nor the data name; "
            "use `steadyeye score` with --classes"
        )


def load(path: Place, classes: Classes | None) -> SavedPredictions:
    """The predictions in a JSON file, `{sample id: scores | index | class name}`.

    `classes`: what the scores or indices are over; None: the data's classes. Raises `UsageError`
    for a file that is no such object and for an id that stands in it twice.
    """
    text = read_text(path, "file of predictions")
    if path.suffix.lower() != ".json" and not text.lstrip().startswith("{"):
        raise UsageError(
            f"'{path}' is no JSON; convert detections, such as MOTChallenge's det.txt, to a "
            "list of {image_id, category_id, bbox, score}, or scores to {sample id: scores}"
        )
    answers = parse_json(text, f"the predictions '{path}'", lambda pairs: _once(path, pairs))
    if not isinstance(answers, dict) or not answers:
        raise UsageError(f"'{path}' must be a JSON object, sample id → scores, index or class name")
    if {"images", "annotations"} <= answers.keys():
        raise UsageError(
            f"'{path}' holds the true boxes of a COCO data set, not detections; give it as --data "
            "\"coco(annotations='…')\", and a list of {image_id, category_id, bbox, score} here"
        )
    mark = fingerprint(text)
    return SavedPredictions(path.stem, classes, mark, {"saved predictions": path.name}, answers)


def predict(saved: SavedPredictions) -> Callable[[Task, range, WorkerThread], Rows]:
    """Replaces `classify.predict`: the rows of a span, read from the file."""

    def look_up(task: Task, span: range, worker: WorkerThread) -> Rows:
        names = task.identity["model"]["classes"]
        samples = (task.source[i] for i in span)
        items = [InferenceItem(s, dict(s.tags), _read_scores(saved, s.id, names)) for s in samples]
        return classify.build_rows(task, items)

    return look_up


def ready(saved: SavedPredictions, task: Task) -> Task:
    """The task. Raises `UsageError` with the samples that the file does not contain."""
    ids = task.source.ids
    lacking = [id_ for id_ in ids if id_ not in saved.answers]
    if lacking:
        raise UsageError(
            f"'{saved.name}' lacks {len(lacking):,} of {number_of(len(ids), 'sample')}: "
            f"{', '.join(lacking[:3])}{', …' if len(lacking) > 3 else ''}; add their predictions"
        )
    return task


def _once(path: Place, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        twice = find_repeated(key for key, _ in pairs)
        raise UsageError(
            f"'{path}' has {number_of(len(twice), 'id')} twice, first '{twice[0]}'; keep one "
            "prediction per id"
        )
    return dict(pairs)


def _read_scores(saved: SavedPredictions, id_: str, names: Sequence[str]) -> Scores:
    value = saved.answers[id_]
    if isinstance(value, list):
        return _read_list(saved, id_, value, len(names))
    if isinstance(value, str):
        if value not in names:
            raise UsageError(f"'{saved.name}', sample '{id_}': {unknown('class', value, names)}")
        value = names.index(value)
    if type(value) is not int or not 0 <= value < len(names):
        raise UsageError(
            f"'{saved.name}' has {value!r} for '{id_}'; "
            f"give scores, a class name or an index from 0 to {len(names) - 1}"
        )
    if names[value] not in (str(value), saved.answers[id_]) and str(value) in names:
        raise UsageError(
            f"'{saved.name}' has {value} for '{id_}', the index of the class '{names[value]}' and "
            f'the name of another; write the names as texts, "{names[value]}" or "{value}"'
        )
    scores: Scores = np.zeros(len(names), dtype=np.float32)
    scores[value] = 1
    return scores


def _read_list(saved: SavedPredictions, id_: str, value: list[Any], width: int) -> Scores:
    if len(value) != width:
        raise UsageError(
            f"'{saved.name}' has {number_of(len(value), 'score')} for '{id_}', but there are "
            f"{number_of(width, 'class')}; name the model's classes with --classes"
        )
    try:
        with np.errstate(over="ignore"):  # what is then infinite is refused
            scores = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError):
        raise UsageError(
            f"'{saved.name}' has scores for '{id_}' that are not numbers; correct them"
        ) from None
    kind = "NaN" if np.isnan(scores).any() else "infinite" if np.isinf(scores.max()) else ""
    if kind:
        raise UsageError(
            f"'{saved.name}' has {kind} scores for '{id_}'; give a number for each class"
        )
    return scores
