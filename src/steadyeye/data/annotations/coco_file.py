"""COCO's JSON of instances: its images, its categories and the boxes of each image."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core.boxes import EMPTY, OOD, Box, Boxes, boxes, check_pixels
from steadyeye.core.errors import UsageError, every, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import parse_json, read_text
from steadyeye.core.types import Classes
from steadyeye.data.annotations import coco_columns
from steadyeye.data.annotations.coco_geometry import corners, of_segmentation, repeats
from steadyeye.data.annotations.sample_columns import ImageBoxes, join_boxes
from steadyeye.data.classes.class_lists import classes_of_names, close_list
from steadyeye.data.classes.wordnet import of_sense

OUTSIDE = "ood"
"""The default name of the category of objects outside the classes."""

LARGEST_SIDE = 2**31  # pixels
LARGEST_AREA = float(LARGEST_SIDE) ** 2


@dataclass(frozen=True, eq=False)
class CocoFile:
    """The content of a file: `category_ids` of each of `classes`; `images`, its unchanged entries.

    `image_boxes`: the boxes of the images that have any; `rows`: image id → its place there.
    `outside`: the name of the category whose boxes are of objects outside the classes, None if the
    file has none. `notes`: on repeated annotations, which count once, and on images with the same
    file.
    """

    classes: Classes
    category_ids: tuple[int, ...]
    images: Sequence[Mapping[str, Any]]
    image_boxes: ImageBoxes
    rows: Mapping[Any, int]
    outside: str | None = None
    notes: tuple[str, ...] = ()

    def boxes(self, image: Mapping[str, Any]) -> Boxes:
        """The boxes of one of the images; none where nothing is annotated."""
        row = self.rows.get(image["id"])
        return EMPTY if row is None else self.image_boxes[row]


def read(path: Place, ood: str | None = None) -> CocoFile:
    """The file at a path; classes in the order of their ids.

    The box is `bbox`; without one it is that around `segmentation`, polygons or run lengths.
    `iscrowd` regions are crowds; `area` is taken as it stands. An annotation that stands there
    twice counts once. `ood`: the name of a category that is no class but says of an object that it
    is outside them. Raises `UsageError` with how many and the first for annotations of unknown
    images or categories, for categories of one id or name and for boxes that are none.
    """
    columns = coco_columns.read(path) if isinstance(path, Path) and path.is_file() else None
    file = None if columns is None else _from_columns(path, columns, ood)
    file = file or _read_whole(path, ood)
    check_pixels(file.image_boxes.farthest, f"'{path}'")
    return file


def _read_whole(path: Place, ood: str | None) -> CocoFile:
    """The file from its whole text."""
    text = read_text(path, "annotations")
    columns = coco_columns.parse(text)
    file = None if columns is None else _from_columns(path, columns, ood)
    return file or _from_entries(path, text, ood)


def _from_columns(path: Place, columns: coco_columns.Columns, ood: str | None) -> CocoFile | None:
    """The file whose annotations were read as columns; None where something is wrong with them."""
    images = _images(path, columns.images)
    known = _read_categories(path, columns.categories, ood)
    ids = {image["id"] for image in images}
    is_known = set(columns.used.tolist()) <= set(known.position)
    too_large = columns.largest_area > LARGEST_AREA
    if too_large or not is_known or not ids.issuperset(columns.image_ids):
        return None
    return CocoFile(
        known.classes,
        known.ids,
        images,
        columns.label(known.position),
        {image: row for row, image in enumerate(columns.image_ids)},
        known.outside,
        (*_repeats(columns.repeats, columns.total), *_same_files(images)),
    )


def _from_entries(path: Place, text: str, ood: str | None) -> CocoFile:
    """The file, annotation by annotation: masks without boxes, NAO's keys, and faults."""
    content = _content(path, text)
    known = _read_categories(path, content["categories"], ood)
    ids = {image["id"] for image in content["images"]}
    of_image = {
        image: distinct(objects)
        for image, objects in _by_image(path, content["annotations"], ids).items()
    }

    def read_one(annotation: Mapping[str, Any]) -> tuple[Box, int, bool, float]:
        return _annotation(path, annotation, known.position)

    numbered = [(image, item) for image, objects in of_image.items() for item in objects]
    read_all = every([item for _, item in numbered], read_one)
    entries: dict[Any, list[tuple[Box, int, bool, float]]] = defaultdict(list)
    for (image, _), entry in zip(numbered, read_all, strict=True):
        entries[image].append(entry)
    total = len(content["annotations"])
    return CocoFile(
        known.classes,
        known.ids,
        content["images"],
        join_boxes([boxes(*zip(*item, strict=True)) for item in entries.values()]),
        {image: row for row, image in enumerate(entries)},
        known.outside,
        (*_repeats(total - len(numbered), total), *_same_files(content["images"])),
    )


@dataclass(frozen=True)
class _Categories:
    """The classes, the category `ids` of each, and the label at each category id.

    `outside`: as in `CocoFile`.
    """

    classes: Classes
    ids: tuple[int, ...]
    position: Mapping[int, int]
    outside: str | None


def _read_categories(path: Place, entries: Sequence[Any], ood: str | None) -> _Categories:
    """The categories in a file. Raises `UsageError` where no class is left."""
    names = _categories(path, entries)
    ids = tuple(item for item, name in names.items() if name != ood)
    if not ids:
        raise UsageError(f"'{path}' has no category other than '{ood}'; list the classes")
    synsets = {names[item]: _synset(entries, item) for item in ids}
    outside = [item for item, name in names.items() if name == ood]
    position = {item: label for label, item in enumerate(ids)} | dict.fromkeys(outside, OOD)
    classes = close_list(classes_of_names(synsets, path))
    return _Categories(classes, ids, position, ood if outside else None)


def distinct(annotations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The annotations of an image, each once: the same class, box and mask are one object."""
    unique: dict[str, Mapping[str, Any]] = {}
    for annotation in annotations:
        box = annotation.get("bbox")
        if isinstance(box, list) and all(_is_number(v) and abs(v) <= LARGEST_AREA for v in box):
            box = [side + 0.0 for side in box]  # 20 and 20.0 are one number
        crowd = annotation.get("iscrowd") or 0
        parts = [annotation.get("category_id"), box, annotation.get("segmentation"), crowd]
        unique.setdefault(json.dumps(parts, default=str), annotation)
    return list(unique.values())


def _repeats(more: int, total: int) -> tuple[str, ...]:
    return repeats(more, total, "annotation", "class, box and mask")


def _same_files(images: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = (str(image["file_name"]) for image in images if image.get("file_name"))
    twice = find_repeated(names)
    if not twice:
        return ()
    return (
        f"{number_of(len(twice), 'image file')} listed more than once under different ids, first "
        f"'{twice[0]}'; each is judged by the boxes of its own id alone",
    )


def _categories(path: Place, categories: Sequence[Any]) -> Mapping[int, str]:
    """Id → name, by rising ids. Raises `UsageError` for two of one id or one name."""
    entries = every(categories, lambda category: _category(path, category))
    for number, nouns in enumerate((("category id",), ("category", "categories"))):
        if twice := find_repeated(entry[number] for entry in entries):
            fault = f"'{path}' has {number_of(len(twice), *nouns)} twice, first '{twice[0]}'"
            raise UsageError(f"{fault}; make them unique")
    return dict(sorted(entries))


def _synset(categories: Sequence[Mapping[str, Any]], number: int) -> str | None:
    """The wnid of a category that says its synset, as LVIS does (`cab.n.03`), where it is known."""
    synset = next(category.get("synset") for category in categories if category["id"] == number)
    return of_sense(synset) if isinstance(synset, str) else None


def _category(path: Place, entry: Any) -> tuple[int, str]:
    number, name = (entry.get("id"), entry.get("name")) if isinstance(entry, Mapping) else (0, 0)
    # blanks around a name are no part of it: 'car ' and 'car' would be two classes
    if type(number) is not int or not isinstance(name, str) or not name.strip():
        raise UsageError(
            f"'{path}' has the category {json.dumps(entry, default=str)[:80]}; give each an id, a "
            "whole number, and a name"
        )
    return number, " ".join(name.split())


def _content(path: Place, text: str) -> Mapping[str, Any]:
    content = parse_json(text, f"the annotations '{path}'")
    parts = content if isinstance(content, dict) else {}
    lacks = [key for key in ("images", "annotations", "categories") if key not in parts]
    if lacks:
        raise UsageError(f"'{path}' has no {', '.join(lacks)}; give COCO's JSON of instances")
    for key in ("images", "annotations", "categories"):
        entries = content[key]
        is_list = isinstance(entries, list)
        # categories are checked each
        if is_list and key != "categories":
            is_list = all(isinstance(entry, dict) for entry in entries)
        if not is_list:
            raise UsageError(f"'{path}': {key} must be a list of objects; correct it")
    annotations = [key_entry(entry, "image_id") for entry in content["annotations"]]
    return {**content, "images": _images(path, content["images"]), "annotations": annotations}


def _images(path: Place, entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The entries of images, each with an id. Raises `UsageError` for one that has none."""
    # NAO's release says _image_id beside COCO's keys or instead of them
    images = [key_entry(image, "id") for image in entries]
    without = [image for image in images if "id" not in image]
    if without:
        raise UsageError(
            f"'{path}' has {number_of(len(without), 'image')} without id, first {without[0]}; "
            "give each an id"
        )
    for image in images:
        _check_image(path, image)
    return images


def _check_image(path: Place, image: Mapping[str, Any]) -> None:
    if not isinstance(image["id"], int | str):
        raise UsageError(f"'{path}' has the image id {image['id']!r}; give a number or a text")
    sides = [image.get(key) for key in ("width", "height")]
    if not all(side is None or (_is_number(side) and 0 <= side <= LARGEST_SIDE) for side in sides):
        raise UsageError(
            f"'{path}': image {image['id']} has the width and height {sides}; give pixels"
        )


def read_size(image: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width of an image, where its entry says them."""
    height, width = image.get("height"), image.get("width")
    return (int(height), int(width)) if height and width else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def key_entry(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An entry with what identifies its image under COCO's key."""
    if key in entry or "_image_id" not in entry:
        return entry
    return {**entry, key: entry["_image_id"]}


def _by_image(
    path: Place, annotations: Sequence[Mapping[str, Any]], images: set[Any]
) -> Mapping[Any, list[Mapping[str, Any]]]:
    of_image: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for annotation in annotations:
        image = annotation.get("image_id")
        if not isinstance(image, int | str | None):
            raise UsageError(f"'{path}' has the image_id {image!r}; give a number or a text")
        of_image[image].append(annotation)
    unknown = [image for image in of_image if image not in images]
    if unknown:
        raise UsageError(
            f"'{path}' has annotations of {number_of(len(unknown), 'image')} that it does not "
            f"list, first image_id {unknown[0]}; list them or take the annotations out"
        )
    return of_image


def _annotation(
    path: Place, annotation: Mapping[str, Any], position: Mapping[int, int]
) -> tuple[Box, int, bool, float]:
    """Corners, class, whether it is a crowd, and area."""
    where = f"'{path}': annotation {annotation.get('id')}"
    box = _corners(where, annotation)
    category = annotation.get("category_id")
    if type(category) is not int or category not in position:
        raise UsageError(
            f"{where} has category_id {category}, which is not among its categories; list it"
        )
    area = annotation.get("area", (box[2] - box[0]) * (box[3] - box[1]))
    if not _is_number(area) or not 0 <= area <= LARGEST_AREA:
        raise UsageError(f"{where} has the area {area!r}; give square pixels or leave it out")
    crowd = annotation.get("iscrowd") or 0
    if crowd not in (0, 1):
        raise UsageError(f"{where} has iscrowd {crowd!r}; give 0 or 1")
    return box, position[category], bool(crowd), float(area)


def _corners(where: str, annotation: Mapping[str, Any]) -> Box:
    try:
        if annotation.get("bbox"):
            if not all(map(_is_number, annotation["bbox"])):
                raise ValueError("a side is no number")
            box: Box | None = corners(annotation["bbox"])
        else:
            box = of_segmentation(annotation.get("segmentation") or [])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{where} has neither a bbox of x, y, width and height nor a mask; correct it"
        ) from error
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    if box is None or not np.isfinite(box).all():
        raise UsageError(f"{where} has an empty mask or a box that is not numbers; correct it")
    if box[2] < box[0] or box[3] < box[1]:
        raise UsageError(f"{where} has a box of negative size, {annotation['bbox']}; correct it")
    return box
