"""Saved detections in COCO's format of results: scored without the detector and the pixels."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from steadyeye.core.abilities import Numbered
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import UTF_16, parse_json, read_text
from steadyeye.core.types import Classes, Image
from steadyeye.predictions.schema import Rows
from steadyeye.runner import detect, saved_boxes, saved_ids
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.saved_boxes import Entry
from steadyeye.runner.task import Task
from steadyeye.runner.threads import WorkerThread

KEYS = ("image_id", "category_id", "bbox", "score")


@dataclass(frozen=True, eq=False)
class SavedDetections:
    """A stand-in for the detector that made a file.

    `entries`: what the file holds, in order; `base`: what its category ids are, where the user says
    it: "data", "0" or "1".
    """

    name: str
    classes: Classes | None
    fingerprint: str
    recipe: Mapping[str, Any]
    entries: Sequence[Entry] = field(repr=False)
    base: str | None = None
    detects: bool = True

    def __call__(self, images: Iterable[Image]) -> list[Detections]:
        """Refuses: there is no detector to ask."""
        raise UsageError(
            f"'{self.name}' is a file of detections, but the data have no boxes; "
            "use `steadyeye score` with data that have"
        )


def are_detections(path: Place) -> bool:
    """Whether a file is a list, as COCO's results are; saved scores are an object."""
    try:
        with path.open("rb") as file:
            start = file.read(128)
    except OSError:
        return False  # whoever reads it whole says what is wrong
    coding = "utf-16" if start.startswith(UTF_16) else "utf-8-sig"
    return start.decode(coding, errors="replace").lstrip().startswith("[")


def load(path: Place, classes: Classes | None, base: str | None = None) -> SavedDetections:
    """The detections in a JSON list of {image_id, category_id, bbox, score}.

    `bbox`: x y width height in pixels. `category_id`: the data's category ids, or the index of a
    class where the data has none; what else they may be is found out when they meet the data, see
    `saved_ids`. `base`: as in `SavedDetections`. Raises `UsageError` for entries that are none,
    with how many and the first.
    """
    text = read_text(path, "file of detections")
    entries = parse_json(text, f"the detections '{path}'")
    if not isinstance(entries, list):
        raise UsageError(f"'{path}' must be a list of detections, as COCO's results are")
    lacking = [e for e in entries if not isinstance(e, dict) or any(k not in e for k in KEYS)]
    _refuse(path, "without one of " + ", ".join(KEYS), lacking)
    _refuse(path, "with a bbox that is not x, y, width, height", [e for e in entries if _odd(e)])
    _refuse(path, "with a box of negative size", [e for e in entries if min(e["bbox"][2:]) < 0])
    outside = [e for e in entries if not (_number(e["score"]) and 0 <= e["score"] <= 1)]
    _refuse(path, "with a score outside 0…1", outside)
    recipe = {"saved predictions": path.name, **({"category ids": base} if base else {})}
    return SavedDetections(path.stem, classes, fingerprint(text), recipe, entries, base)


@dataclass(frozen=True, eq=False)
class Reading:
    """How a file is read: sample id → its entries, category id → class of the model, and notes."""

    entries: Mapping[str, Sequence[Entry]]
    places: Mapping[int, int]
    notes: tuple[str, ...]


def ready(saved: SavedDetections, task: Task) -> Task:
    """The task with the notes of how the file is read.

    Raises `UsageError` for images and categories that the data does not have, and where the file
    may be read in several ways. Images without any detection are no fault: nothing was found there.
    """
    notes = _reading(saved, task).notes
    model = task.identity["model"]
    described = {**model, "notes": [*notes, *model.get("notes", ())]}
    return replace(task, identity={**task.identity, "model": described})


def predict(saved: SavedDetections) -> Callable[[Task, range, WorkerThread], Rows]:
    """What stands in for `classify.predict`: the rows of a span as the file says them."""

    def look_up(task: Task, span: range, worker: WorkerThread) -> Rows:
        reading = _reading(saved, task)
        items = []
        for sample in (task.source[i] for i in span):
            answer = _detections(reading.entries.get(sample.id, ()), reading.places)
            items.append(InferenceItem(sample, dict(sample.tags), answer))
        return detect.build_rows(task, items)

    return look_up


@lru_cache(maxsize=8)
def _reading(saved: SavedDetections, task: Task) -> Reading:
    source = task.source
    if "boxes" not in source.columns:
        raise UsageError(f"'{source.name}' has no boxes to score detections against")
    images, foreign = saved_ids.images(saved.entries, source)
    _refuse(saved.name, "of images that the data does not have", foreign)
    odd = [e for e in saved.entries if not _number(e["category_id"]) or e["category_id"] % 1]
    _refuse(saved.name, "with a category_id that the data does not have", odd)
    indices = [i for i, id_ in enumerate(source.ids) if id_ in images.entries]
    saved_boxes.check_sides(images.entries, (source[i] for i in indices), saved.name)
    places, class_notes = _places(saved, task, images, indices)
    notes = (*images.notes, *class_notes, *saved_boxes.doubles(saved.entries))
    return Reading(images.entries, places, notes)


def _places(
    saved: SavedDetections, task: Task, images: saved_ids.Images, indices: Sequence[int]
) -> tuple[Mapping[int, int], tuple[str, ...]]:
    """Category id → class of the model, and how that was found."""
    source, used = task.source, sorted({int(e["category_id"]) for e in saved.entries})
    ways = saved_ids.namings(source, saved.classes, saved.base)
    spoken = None if saved.base else saved_ids.by_name(saved.entries, task.class_map.source)
    if spoken:
        ways = [spoken]
    matches = saved_boxes.on_true_boxes(images.entries, (source[i] for i in indices))
    own = source.category_ids if isinstance(source, Numbered) else None
    plain = saved.classes is None and own is not None
    way, notes = saved_ids.choose_naming(ways, used, matches, task.class_map.destinations, plain)
    if way is None:
        odd = [e for e in saved.entries if e["category_id"] not in ways[0].places]
        _refuse(saved.name, "with a category_id that the data does not have", odd)
        return {}, ()
    class_notes = (f"category ids are {way.words}",) if spoken else notes
    return way.places, class_notes


def _detections(entries: Sequence[Entry], places: Mapping[int, int]) -> Detections:
    labels = [places[entry["category_id"]] for entry in entries]
    scores = [entry["score"] for entry in entries]
    corners = saved_boxes.corners(entries)
    return Detections(corners, np.array(labels, np.int32), np.array(scores, np.float64))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _odd(entry: Mapping[str, Any]) -> bool:
    try:
        box = np.array(entry["bbox"], dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return box.shape != (4,) or not np.isfinite(box).all()


def _refuse(where: object, reason: str, entries: Sequence[Any]) -> None:
    if entries:
        raise UsageError(
            f"'{where}': {number_of(len(entries), 'detection')} {reason}, first "
            f"{json.dumps(entries[0])[:160]}"
        )
