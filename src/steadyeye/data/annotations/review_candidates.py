"""Suggested boxes for people to judge, from a file in COCO's format.

::

    {"images": [{"id": 1, "file_name": "a.jpg"}],
     "categories": [{"id": 3, "name": "cat"}],
     "annotations": [{"id": 7, "image_id": 1, "category_id": 3, "bbox": [x, y, width, height],
                      "score": 0.9, "annotated": "dog"}]}

What a detector said may stand under `results` instead of `annotations`; ids and scores may be left
out. With a score the category is the word of a detector. `annotated`, which may be left out: the
class that the data gives the object; null: the data has no object there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from steadyeye.core.errors import UsageError, find_repeated, shorten
from steadyeye.core.storage.text_files import check_text, read_json
from steadyeye.core.types import Classes
from steadyeye.data.annotations.coco_geometry import corners
from steadyeye.data.classes.class_lists import classes_of_names

LISTS = ("annotations", "results")
LARGEST = 1e6  # of a score; some detectors give logits


@dataclass(frozen=True)
class Candidate:
    """A suggested box: x0 y0 x1 y1 in pixels; `score`: NaN if not given.

    `annotated`: the class of the object in the data, empty for no object, None if not known.
    """

    id: str
    file: str
    box: tuple[float, float, float, float]
    label: str
    score: float
    annotated: str | None = None


@dataclass(frozen=True)
class Candidates:
    """The boxes of a file in its order; `files`: every image it lists, with boxes or without."""

    classes: Classes
    category_ids: tuple[int, ...]
    files: tuple[str, ...]
    boxes: tuple[Candidate, ...]


def read(path: Path) -> Candidates:
    """The suggestions in a file. Raises `UsageError`, one line, for the first invalid one."""
    content = _content(path)
    names = {entry["id"]: str(entry["name"]) for entry in content["categories"]}
    files = {entry["id"]: _file(path, str(entry["file_name"])) for entry in content["images"]}
    for kind, values in (("category", list(names.values())), ("image", list(files.values()))):
        twice = find_repeated(values)
        if twice:
            raise UsageError(f"'{path}' lists the {kind} '{twice[0]}' twice; list it once")
    detections = next(content[key] for key in LISTS if key in content)
    boxes = tuple(_box(path, n, entry, files, names) for n, entry in enumerate(detections, start=1))
    again = find_repeated(box.id for box in boxes)
    if again:
        raise UsageError(f"'{path}' has several boxes with the id {again[0]}; number them")
    if not boxes:
        raise UsageError(f"'{path}' has no box to review; give annotations or results")
    ids = tuple(sorted(names))
    classes = classes_of_names([names[id_] for id_ in ids], path)
    return Candidates(classes, tuple(int(id_) for id_ in ids), tuple(files.values()), boxes)


def _content(path: Path) -> Mapping[str, Any]:
    content = read_json(path, "boxes")
    if not isinstance(content, dict) or not {"images", "categories"} <= set(content):
        raise UsageError(
            f"'{path}' does not list images and categories; give COCO's JSON with images, "
            "categories and annotations (or results)"
        )
    if not any(isinstance(content.get(key), list) for key in LISTS):
        raise UsageError(f"'{path}' has no list of annotations or results; add one")
    for part, key, kind in (("images", "file_name", int | str), ("categories", "name", int)):
        if not isinstance(content[part], list):
            raise UsageError(f"'{path}': {part} is no list; give a list of objects")
        for number, entry in enumerate(content[part], start=1):
            if not isinstance(entry, dict) or not {"id", key} <= set(entry):
                raise UsageError(
                    f"'{path}': number {number} of {part} needs id and {key}; add them"
                )
            if not isinstance(entry["id"], kind) or isinstance(entry["id"], bool):
                raise UsageError(
                    f"'{path}': number {number} of {part} has the id {shorten(repr(entry['id']))}; "
                    "give a whole number"
                )
            check_text(entry[key], f"'{path}': {key} of number {number} of {part}")
    return content


def _file(path: Path, name: str) -> str:
    inner = PurePosixPath(name)
    if inner.is_absolute() or ".." in inner.parts or "\\" in name or not inner.name:
        raise UsageError(f"'{path}' names the image '{name}'; give a path inside the folder")
    return inner.as_posix()


def _box(
    path: Path, number: int, entry: Any, files: Mapping[Any, str], names: Mapping[Any, str]
) -> Candidate:
    where = f"'{path}': box {number}"
    if not isinstance(entry, dict) or not {"image_id", "category_id", "bbox"} <= set(entry):
        raise UsageError(f"{where} needs image_id, category_id and bbox; add them")
    for key in ("image_id", "category_id"):
        if not isinstance(entry[key], int | str):
            raise UsageError(f"{where} has the {key} {shorten(repr(entry[key]))}; give an id")
    score = entry.get("score", math.nan)
    if not isinstance(score, int | float) or (not abs(score) <= LARGEST and not math.isnan(score)):
        raise UsageError(f"{where} has the score {shorten(repr(score))}; give a number")
    if entry["image_id"] not in files:
        raise UsageError(f"{where} is of image {entry['image_id']}, which is not listed; list it")
    if entry["category_id"] not in names:
        raise UsageError(
            f"{where} is of category {entry['category_id']}, which is not listed; add it to "
            "categories"
        )
    return Candidate(
        str(entry.get("id", number)),
        files[entry["image_id"]],
        _corners(where, entry["bbox"]),
        names[entry["category_id"]],
        float(score),
        str(entry["annotated"] or "") if "annotated" in entry else None,
    )


def _corners(where: str, box: Sequence[float]) -> tuple[float, float, float, float]:
    try:
        ends = corners(box)
    except (TypeError, ValueError):
        raise UsageError(
            f"{where} has the bbox {shorten(repr(box))}; give x, y, width, height"
        ) from None
    if not all(map(math.isfinite, ends)) or not (ends[0] < ends[2] and ends[1] < ends[3]):
        raise UsageError(
            f"{where} has the bbox {shorten(repr(box))}; give a width and a height above 0"
        )
    return ends
