"""Images with boxes in COCO's format."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.classes.known import named
from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.footage.annotations import corners, of_segmentation
from steadyeye.footage.boxed_images import BoxedImage, BoxedImages
from steadyeye.footage.paths import resolve


def coco(annotations: str, images: str | None = None) -> BoxedImages:
    """Images with boxes: COCO's JSON of instances, and the folder the images are in.

    The box is `bbox`; without one it is that around `segmentation`, polygons or run lengths.
    `iscrowd` regions neither reward nor punish; `area` is taken as it stands. A sample's id is
    the image's id, which saved detections name; `images` is not needed to score those. Raises
    `UsageError` for annotations of unknown images or categories and for boxes that are none.
    """
    path = resolve(annotations)
    content = _content(path)
    categories = sorted(content["categories"], key=lambda category: category["id"])
    classes = named({category["name"]: None for category in categories})
    ids = tuple(int(category["id"]) for category in categories)
    listed = content["images"]
    of_image = _by_image(path, content["annotations"], [image["id"] for image in listed])
    position = {category: i for i, category in enumerate(ids)}
    folder = resolve(images) if images else None
    return BoxedImages(
        name=path.stem,
        classes=classes,
        fingerprint=fingerprint(path.read_bytes()),
        images=[
            BoxedImage(
                str(image["id"]),
                folder / image["file_name"] if folder else None,
                _boxes(path, of_image.get(image["id"], []), position),
            )
            for image in listed
        ],
        category_ids=ids,
    )


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the annotations '{path}': {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"cannot read the annotations '{path}': {error}") from error
    lacks = [key for key in ("images", "annotations", "categories") if key not in content]
    if lacks or not isinstance(content, dict):
        raise UsageError(f"'{path}' has no {', '.join(lacks)}; give COCO's JSON of instances")
    return content


def _by_image(
    path: Path, annotations: Sequence[Mapping[str, Any]], images: Sequence[Any]
) -> Mapping[Any, list[Mapping[str, Any]]]:
    found: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for annotation in annotations:
        found[annotation["image_id"]].append(annotation)
    unknown = [image for image in found if image not in set(images)]
    if unknown:
        raise UsageError(
            f"'{path}' has annotations of {len(unknown):,} images that it does not list, "
            f"first image_id {unknown[0]}; list them or take the annotations out"
        )
    return found


def _boxes(
    path: Path, annotations: Sequence[Mapping[str, Any]], position: Mapping[int, int]
) -> Boxes:
    found = [(_corners(path, each), each) for each in annotations]
    for _, each in found:
        if each["category_id"] not in position:
            raise UsageError(
                f"'{path}': annotation {each.get('id')} has category_id {each['category_id']}, "
                "which is not among its categories; list it"
            )
    return boxes(
        [box for box, _ in found],
        [position[each["category_id"]] for _, each in found],
        [bool(each.get("iscrowd", 0)) for _, each in found],
        [float(each.get("area", (box[2] - box[0]) * (box[3] - box[1]))) for box, each in found],
    )


def _corners(path: Path, annotation: Mapping[str, Any]) -> tuple[float, float, float, float]:
    named_ = f"'{path}': annotation {annotation.get('id')}"
    if annotation.get("bbox"):
        box: tuple[float, ...] | None = corners(annotation["bbox"])
    else:
        box = of_segmentation(annotation.get("segmentation") or {"size": (0, 0), "counts": []})
    if box is None or not np.isfinite(box).all():
        raise UsageError(f"{named_} has an empty mask or a box that is no number; mend it")
    if box[2] < box[0] or box[3] < box[1]:
        raise UsageError(f"{named_} has a box of negative size, {annotation['bbox']}; mend it")
    return box  # type: ignore[return-value]
