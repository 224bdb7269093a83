"""Saved detections in COCO's format of results: scored without the detector and the pixels."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.abilities import Numbered
from steadyeye.core.boxes import BoxTable, Detections, areas
from steadyeye.core.disk_columns import release_pages, return_free_memory
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import UTF_16, parse_json, read_text
from steadyeye.core.types import Classes, Image, Source
from steadyeye.data.classes.class_map import ClassMap
from steadyeye.predictions.schema import Rows
from steadyeye.runner import detect, saved_boxes, saved_entries, saved_ids
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.saved_entries import Grouping, SavedEntries
from steadyeye.runner.task import Task
from steadyeye.runner.threads import WorkerThread

SHARD_ROWS = 4096
"""Rows a shard at least: looking them up costs less than bringing a shard to the disk."""
KEYS = ("image_id", "category_id", "bbox", "score")


@dataclass(frozen=True, eq=False)
class Reading:
    """How the detections of a file are matched to a source.

    `of_sample`: the detections of each sample; `classes`: the different category ids, rising, and
    the class of the model that each stands for; `notes`: how images and classes were matched.
    """

    of_sample: Grouping
    classes: tuple[NDArray[np.int64], NDArray[np.int64]]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SavedDetections:
    """A stand-in for the detector that made a file.

    `entries`: what the file holds; `base`: what its category ids are, where the user says it:
    "data", "0" or "1". `readings`: how it is read against each source, once found.
    """

    name: str
    classes: Classes | None
    fingerprint: str
    recipe: Mapping[str, Any]
    entries: SavedEntries = field(repr=False)
    base: str | None = None
    readings: dict[int, tuple[Source, Reading]] = field(default_factory=dict, repr=False)
    detects: bool = True

    def __call__(self, images: Iterable[Image]) -> list[Detections]:
        """Raises an error, since there is no detector to run."""
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
    recipe = {"saved predictions": path.name, **({"category ids": base} if base else {})}
    entries, mark = _read_entries(path)
    return SavedDetections(path.stem, classes, mark, recipe, entries, base)


def _read_entries(path: Place) -> tuple[SavedEntries, str]:
    """The entries of a file and its fingerprint. Raises `UsageError` as `load` does."""
    known = saved_entries.read(path) if isinstance(path, Path) and path.is_file() else None
    if known is not None:
        return known
    text = read_text(path, "file of detections")
    entries = saved_entries.parse(text)
    if entries is None:
        entries = _check_entries(path, parse_json(text, f"the detections '{path}'"))
    return entries, fingerprint(text)


def _check_entries(path: Place, entries: Any) -> SavedEntries:
    """The entries of a list that `saved_entries.parse` could not read. Raises `UsageError`."""
    if not isinstance(entries, list):
        raise UsageError(f"'{path}' must be a list of detections, as COCO's results are")
    lacking = [e for e in entries if not isinstance(e, dict) or any(k not in e for k in KEYS)]
    _refuse(path, "without one of " + ", ".join(KEYS), lacking)
    _refuse(path, "with a bbox that is not x, y, width, height", [e for e in entries if _odd(e)])
    _refuse(path, "with a box of negative size", [e for e in entries if min(e["bbox"][2:]) < 0])
    outside = [e for e in entries if not (_number(e["score"]) and 0 <= e["score"] <= 1)]
    _refuse(path, "with a score outside 0…1", outside)
    odd = [e for e in entries if not _whole(e["category_id"])]
    _refuse(path, "with a category_id that the data does not have", odd)
    return saved_entries.from_mappings(entries)


def ready(saved: SavedDetections, task: Task) -> Task:
    """The task with the notes of how the file is read.

    Raises `UsageError` for images and categories that the data does not have, and where the file
    may be read in several ways. Images without any detection are no fault: nothing was found there.
    """
    notes = _read_against(saved, task.source, task.class_map).notes
    return_free_memory()  # names of images by id, file and stem
    model = task.identity["model"]
    described = {**model, "notes": [*notes, *model.get("notes", ())]}
    rows = max(int(task.identity["shard_rows"]), SHARD_ROWS)
    return replace(task, identity={**task.identity, "model": described, "shard_rows": rows})


def predict(saved: SavedDetections) -> Callable[[Task, range, WorkerThread], Rows]:
    """Replaces `classify.predict`: the rows of a span, read from the file."""

    def look_up(task: Task, span: range, worker: WorkerThread) -> Rows:
        reading = _read_against(saved, task.source, task.class_map)
        samples = [task.source[place] for place in span]
        items = [InferenceItem(sample, dict(sample.tags), None) for sample in samples]
        table = _build_table(saved.entries, reading, slice(span.start, span.stop))
        return detect.build_rows_of_table(task, items, table)

    return look_up


def _build_table(entries: SavedEntries, reading: Reading, samples: slice) -> BoxTable:
    """The detections of consecutive samples over the model's classes; image 0 is the first."""
    places, counts = reading.of_sample.places(samples), reading.of_sample.counts(samples)
    ids, classes = reading.classes
    corners = entries.corners(places)
    table = BoxTable(
        np.repeat(np.arange(len(counts), dtype=np.int64), counts),
        classes[np.searchsorted(ids, entries.category[places])],
        corners,
        entries.score[places],
        np.zeros(len(places), dtype=np.bool_),
        areas(corners),
    )
    release_pages()
    return table


def _read_against(saved: SavedDetections, source: Source, class_map: ClassMap) -> Reading:
    known = saved.readings.get(id(source))
    if known is None:
        known = saved.readings[id(source)] = source, _find_reading(saved, source, class_map)
    return known[1]


def _find_reading(saved: SavedDetections, source: Source, class_map: ClassMap) -> Reading:
    if "boxes" not in source.columns:
        raise UsageError(
            f"'{source.name}' has no boxes to score detections against; give data with true boxes"
        )
    entries = saved.entries
    images = saved_ids.images(entries, source)
    _refuse_entries(saved, "of images that the data does not have", images.sample < 0)
    of_sample = entries.group_by_sample(images.sample, len(source))
    saved_boxes.check_sides(entries, of_sample, source, saved.name)
    places, class_notes = _places(saved, source, class_map, of_sample)
    notes = (*images.notes, *class_notes, *saved_boxes.doubles(entries, of_sample))
    ids = entries.categories
    classes = np.array([places[number] for number in ids.tolist()], np.int64)
    return Reading(of_sample, (ids, classes), notes)


def _places(
    saved: SavedDetections, source: Source, class_map: ClassMap, of_sample: Grouping
) -> tuple[Mapping[int, int], tuple[str, ...]]:
    """Category id → class of the model, and how that was found."""
    entries = saved.entries
    used = entries.categories
    ways = saved_ids.namings(source, saved.classes, saved.base)
    spoken = None if saved.base else saved_ids.by_name(entries, class_map.source)
    if spoken:
        ways = [spoken]
    match = partial(saved_boxes.on_true_boxes, entries, of_sample, source)
    own = source.category_ids if isinstance(source, Numbered) else None
    plain = saved.classes is None and own is not None
    way, notes = saved_ids.choose_naming(ways, used.tolist(), match, class_map.destinations, plain)
    if way is None:
        lacking = [number for number in used.tolist() if number not in ways[0].places]
        odd = np.isin(entries.category, lacking)
        _refuse_entries(
            saved, f"with a category_id that the data does not have ('{source.name}')", odd
        )
        return {}, ()
    class_notes = (f"category ids are {way.words}",) if spoken else notes
    return way.places, class_notes


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return _number(value) and value % 1 == 0 and abs(value) < 2**63


def _odd(entry: Mapping[str, Any]) -> bool:
    box = entry["bbox"]
    if not isinstance(box, list) or len(box) != 4 or not all(map(_number, box)):
        return True
    # a whole number of JSON may be too large for a float
    return not all(abs(side) <= sys.float_info.max for side in box)


def _refuse_entries(saved: SavedDetections, reason: str, refused: NDArray[np.bool_]) -> None:
    places = np.flatnonzero(refused)
    if len(places):
        first = saved.entries.entry(int(places[0]))
        _refuse(saved.name, reason, [first, *places[1:]])


def _refuse(where: object, reason: str, entries: Sequence[Any]) -> None:
    if entries:
        raise UsageError(
            f"'{where}': {number_of(len(entries), 'detection')} {reason}, first "
            f"{json.dumps(entries[0])[:160]}"
        )
