"""COCO's JSON of instances: its images, its categories and the boxes of each image."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from steadyeye.classes.files import tree
from steadyeye.classes.known import named
from steadyeye.core.boxes import EMPTY, OOD, Boxes, boxes
from steadyeye.core.errors import UsageError, every
from steadyeye.core.types import Classes
from steadyeye.footage.annotations import corners, of_segmentation
from steadyeye.storage.place import Place

Box: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class CocoFile:
    """What a file says: `category_ids` of each of `classes`; `images`, its entries as they are.

    `outside`: the name of the category whose boxes are of objects outside the classes, None where
    the file has none.
    """

    classes: Classes
    category_ids: tuple[int, ...]
    images: Sequence[Mapping[str, Any]]
    found: Mapping[Any, Boxes]
    outside: str | None = None

    def boxes(self, image: Mapping[str, Any]) -> Boxes:
        """The boxes of one of the images; none where nothing is annotated."""
        return self.found.get(image["id"], EMPTY)


def read(path: Place, ood: str | None = None) -> CocoFile:
    """The file at a path; classes in the order of their ids.

    The box is `bbox`; without one it is that around `segmentation`, polygons or run lengths.
    `iscrowd` regions are crowds; `area` is taken as it stands. `ood`: the name of a category that
    is no class but says of an object that it is outside them. Raises `UsageError` with how many
    and the first for annotations of unknown images or categories and for boxes that are none.
    """
    content = _content(path)
    categories = _categories(path, content["categories"])
    outside = [int(each["id"]) for each in categories if each["name"] == ood]
    categories = [each for each in categories if each["name"] != ood]
    if not categories:
        raise UsageError(f"'{path}' has no category beside '{ood}'; list the classes")
    ids = tuple(int(category["id"]) for category in categories)
    position = {category: i for i, category in enumerate(ids)} | dict.fromkeys(outside, OOD)
    of_image = _by_image(path, content["annotations"], {image["id"] for image in content["images"]})

    def read_one(annotation: Mapping[str, Any]) -> tuple[Box, int, bool, float]:
        return _annotation(path, annotation, position)

    numbered = [(image, each) for image, found in of_image.items() for each in found]
    read_all = every([each for _, each in numbered], read_one)
    entries: dict[Any, list[tuple[Box, int, bool, float]]] = defaultdict(list)
    for (image, _), entry in zip(numbered, read_all, strict=True):
        entries[image].append(entry)
    return CocoFile(
        named({category["name"]: None for category in categories}),
        ids,
        content["images"],
        {image: boxes(*zip(*found, strict=True)) for image, found in entries.items()},
        ood if outside else None,
    )


def _categories(path: Place, listed: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The categories by their ids. Raises `UsageError` for two of one name."""
    categories = sorted(listed, key=lambda category: category["id"])
    twice = [n for n, times in Counter(c["name"] for c in categories).items() if times > 1]
    if twice:
        raise UsageError(
            f"'{path}' names {len(twice)} categories twice, first '{twice[0]}'; tell them apart"
        )
    return categories


def _content(path: Place) -> Mapping[str, Any]:
    content = tree(path, "annotations")
    lacks = [key for key in ("images", "annotations", "categories") if key not in content]
    if lacks or not isinstance(content, dict):
        raise UsageError(f"'{path}' has no {', '.join(lacks)}; give COCO's JSON of instances")
    # NAO's release says _image_id beside COCO's keys or instead of them
    images = [_keyed(image, "id") for image in content["images"]]
    without = [image for image in images if "id" not in image]
    if without:
        raise UsageError(f"'{path}' has {len(without):,} images without id, first {without[0]}")
    annotations = [_keyed(each, "image_id") for each in content["annotations"]]
    return {**content, "images": images, "annotations": annotations}


def _keyed(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key in entry or "_image_id" not in entry:
        return entry
    return {**entry, key: entry["_image_id"]}


def _by_image(
    path: Place, annotations: Sequence[Mapping[str, Any]], images: set[Any]
) -> Mapping[Any, list[Mapping[str, Any]]]:
    found: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for annotation in annotations:
        found[annotation.get("image_id")].append(annotation)
    unknown = [image for image in found if image not in images]
    if unknown:
        raise UsageError(
            f"'{path}' has annotations of {len(unknown):,} images that it does not list, "
            f"first image_id {unknown[0]}; list them or take the annotations out"
        )
    return found


def _annotation(
    path: Place, annotation: Mapping[str, Any], position: Mapping[int, int]
) -> tuple[Box, int, bool, float]:
    """Corners, class, whether it is a crowd, and area."""
    which = f"'{path}': annotation {annotation.get('id')}"
    box = _corners(which, annotation)
    category = annotation.get("category_id")
    if not isinstance(category, int) or category not in position:
        raise UsageError(
            f"{which} has category_id {category}, which is not among its categories; list it"
        )
    area = annotation.get("area", (box[2] - box[0]) * (box[3] - box[1]))
    if not isinstance(area, int | float) or not np.isfinite(area):
        raise UsageError(f"{which} has the area {area!r}; give a number or leave it out")
    return box, position[category], bool(annotation.get("iscrowd", 0)), float(area)


def _corners(which: str, annotation: Mapping[str, Any]) -> Box:
    try:
        if annotation.get("bbox"):
            box: Box | None = corners(annotation["bbox"])
        else:
            box = of_segmentation(annotation.get("segmentation") or [])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{which} has neither a bbox of x, y, width and height nor a mask; mend it"
        ) from error
    except UsageError as error:
        raise UsageError(f"{which}: {error}") from error
    if box is None or not np.isfinite(box).all():
        raise UsageError(f"{which} has an empty mask or a box that is no number; mend it")
    if box[2] < box[0] or box[3] < box[1]:
        raise UsageError(f"{which} has a box of negative size, {annotation['bbox']}; mend it")
    return box
