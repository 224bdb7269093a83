"""Saved detections in COCO's format of results: scored without the detector and the pixels."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image, Source
from steadyeye.evaluation import detect
from steadyeye.evaluation.tasks import Task
from steadyeye.predictions.rows import Rows
from steadyeye.storage.place import Place

KEYS = ("image_id", "category_id", "bbox", "score")


@dataclass(frozen=True, eq=False)
class SavedDetections:
    """A stand-in for the detector that made a file; `said`: image id → its entries in order."""

    name: str
    classes: Classes | None
    fingerprint: str
    recipe: Mapping[str, Any]
    said: Mapping[str, Sequence[Mapping[str, Any]]] = field(repr=False)
    detects: bool = True

    def __call__(self, images: Iterable[Image]) -> list[Detections]:
        """Refuses: there is no detector to ask."""
        raise UsageError(f"'{self.name}' is a file of detections; use `steadyeye score`")


def are_detections(path: Place) -> bool:
    """Whether a file is a list, as COCO's results are; saved scores are an object."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(64).lstrip().startswith("[")
    except (OSError, ValueError):
        return False  # whoever reads it whole says what is wrong


def load(path: Place, classes: Classes | None) -> SavedDetections:
    """The detections in a JSON list of {image_id, category_id, bbox, score}.

    `bbox`: x y width height in pixels. `category_id`: the data's category ids, or the index of a
    class where the data has none. Raises `UsageError` for entries that are none, with how many
    and the first.
    """
    text = path.read_text(encoding="utf-8")
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise UsageError(f"cannot read the detections '{path}': {error}") from error
    lacking = [e for e in entries if not isinstance(e, dict) or any(k not in e for k in KEYS)]
    _refuse(path, "lack one of " + ", ".join(KEYS), lacking)
    _refuse(path, "have a bbox that is not x, y, width, height", [e for e in entries if _odd(e)])
    _refuse(path, "have a box of negative size", [e for e in entries if min(e["bbox"][2:]) < 0])
    outside = [e for e in entries if not (_number(e["score"]) and 0 <= e["score"] <= 1)]
    _refuse(path, "have a score outside 0…1", outside)
    said: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        said[str(entry["image_id"])].append(entry)
    recipe = {"saved predictions": path.name}
    return SavedDetections(path.stem, classes, fingerprint(text), recipe, said)


def check_complete(saved: SavedDetections, source: Source) -> None:
    """Raises `UsageError` for images and categories that the data does not have.

    Images without any detection are no fault: nothing was found in them.
    """
    if "boxes" not in source.columns:
        raise UsageError(f"'{source.name}' has no boxes to score detections against")
    known = set(source.ids)
    foreign = [e for image, entries in saved.said.items() if image not in known for e in entries]
    _refuse(saved.name, "are of images that the data does not have", foreign)
    places = _places(source, saved.classes)
    every = (entry for entries in saved.said.values() for entry in entries)
    odd = [e for e in every if not _number(e["category_id"]) or e["category_id"] not in places]
    _refuse(saved.name, "have a category_id that the data does not have", odd)


def predict(saved: SavedDetections) -> Callable[[Task, range, Callable[[], bool]], Rows]:
    """What stands in for `shard.predict`: the rows of a span as the file says them."""

    def look_up(task: Task, span: range, stopped: Callable[[], bool]) -> Rows:
        samples = [task.source[i] for i in span]
        places = _places(task.source, saved.classes)
        found = [_detections(saved.said.get(sample.id, ()), places) for sample in samples]
        return detect.rows(task, samples, [""] * len(samples), found)

    return look_up


def _places(source: Source, classes: Classes | None) -> Mapping[int, int]:
    """Category id → class."""
    ids = getattr(source, "category_ids", None)
    names = classes or source.classes
    if ids is None or classes is not None:
        ids = range(len(names or ()))
    return {int(category): place for place, category in enumerate(ids)}


def _detections(entries: Sequence[Mapping[str, Any]], places: Mapping[int, int]) -> Detections:
    sides = np.array([entry["bbox"] for entry in entries], dtype=np.float64).reshape(-1, 4)
    corners = np.concatenate([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1)
    labels = [places[entry["category_id"]] for entry in entries]
    scores = [entry["score"] for entry in entries]
    return Detections(corners, np.array(labels, np.int32), np.array(scores, np.float64))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _odd(entry: Mapping[str, Any]) -> bool:
    try:
        box = np.array(entry["bbox"], dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return box.shape != (4,) or not np.isfinite(box).all()


def _refuse(where: object, what: str, entries: Sequence[Any]) -> None:
    if entries:
        raise UsageError(
            f"'{where}': {len(entries):,} detections {what}, first {json.dumps(entries[0])[:160]}"
        )
