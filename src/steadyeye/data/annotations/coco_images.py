"""Single images with boxes and masks from one or several of COCO's files."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError, one_line, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import BlockFingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.json_lists import BLOCK
from steadyeye.core.storage.sha256sums import check_sums, find_listing
from steadyeye.core.storage.text_columns import Texts, build_text_array
from steadyeye.core.storage.text_files import read_json
from steadyeye.data.annotations import coco_file
from steadyeye.data.annotations.coco_file import (
    OUTSIDE,
    CocoFile,
    distinct,
    key_entry,
    read_size,
)
from steadyeye.data.annotations.coco_geometry import run_lengths
from steadyeye.data.annotations.column_images import (
    UNKNOWN,
    ColumnImages,
    FileImages,
    shorten_keys,
)

MOST_PIXELS = 1 << 30
"""Pixels of all masks of an image together, a byte each."""
FARTHEST = 1 << 22
"""Pixels from the corner of an image at which OpenCV still counts 256 steps of one."""


def masks(path: Place, image: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    """(n, h, w) bool, the masks of an image's annotations in the order of the file.

    `size`: height and width. A polygon holds the pixels on its edge; run lengths are exact. All
    False for an annotation without a mask. Raises `SampleError` for an invalid mask or one of
    another size.
    """
    planes, segmentations = [], _segmentations(path).get(image, ())
    if len(segmentations) * size[0] * size[1] > MOST_PIXELS:
        raise SampleError(
            f"'{path}', image {image}: {number_of(len(segmentations), 'mask')} of {size[0]} × "
            f"{size[1]} pixels are over {MOST_PIXELS:,} together; leave the image out"
        )
    for segmentation in segmentations:
        try:
            planes.append(_mask(segmentation, size))
        except (UsageError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise SampleError(
                f"'{path}', image {image}: a mask of it is neither polygons nor run lengths of "
                f"{size[0]} × {size[1]} pixels: {one_line(error, 100)}; correct it"
            ) from error
    return np.stack(planes) if planes else np.zeros((0, *size), dtype=np.bool_)


# one file at a time: that of COCO's training images takes gigabytes
@lru_cache(maxsize=1)
def _segmentations(path: Place) -> Mapping[Any, Sequence[Any]]:
    """Image id → what stands under `segmentation` in each of its annotations."""
    of_image: dict[Any, list[Any]] = defaultdict(list)
    for annotation in read_json(path, "annotations")["annotations"]:
        entry = key_entry(annotation, "image_id")
        of_image[entry["image_id"]].append(entry)
    # the same ones as the boxes are of
    return {
        image: [e.get("segmentation") for e in distinct(own)] for image, own in of_image.items()
    }


def _mask(segmentation: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    if isinstance(segmentation, Mapping):
        mask = run_lengths(segmentation)
        if mask.shape != size:
            raise ValueError(f"it is of {mask.shape[0]} × {mask.shape[1]}")
        return mask
    plane = np.zeros(size, dtype=np.uint8)
    for polygon in segmentation or ():
        points = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
        if not (np.abs(points) < FARTHEST).all():
            raise ValueError("a corner is no number or far away")
        # a corner at 3.0 is the edge between the pixels 2 and 3, OpenCV's 3 the middle of pixel 3
        cv2.fillPoly(plane, [np.round((points - 0.5) * 256).astype(np.int32)], (1,), shift=8)
    return plane > 0


Locate = Callable[[Mapping[str, Any]], Place | None]
"""Entry of an image → its file."""


def coco_images(
    name: str, files: Sequence[Place], locate: Locate, ood: str | None = OUTSIDE
) -> ColumnImages:
    """The images of files that name the same categories, one file after the other.

    An image goes by its id; where several files use the same ones, by file and id.

    `ood`: see `coco_file.read`; another name than the usual one must be among the categories.
    """
    exported = {find_listing(path) for path in files if isinstance(path, Path)}
    for folder in filter(None, exported):
        check_sums(folder)
    contents = [coco_file.read(path, ood or None) for path in files]
    first = contents[0]
    for path, other in zip(files, contents, strict=True):
        mine, others = ((c.classes.names, c.category_ids) for c in (first, other))
        if mine != others:
            raise UsageError(f"'{path}' has other categories than '{files[0]}'; give them the same")
    has_outside = any(content_.outside for content_ in contents)
    if ood not in (None, "", OUTSIDE) and not has_outside:
        raise unknown("category", str(ood), first.classes.names)
    ids = [str(image["id"]) for content in contents for image in content.images]
    with_stem = len(set(ids)) < len(ids) and len(files) > 1
    # the same file says something else where a category of it is read as another thing
    marks = [ood or ""] if has_outside else []
    return ColumnImages(
        name=name,
        classes=first.classes,
        fingerprint=_fingerprint(files, marks),
        parts=[
            _columns(path, content, locate, with_stem)
            for path, content in zip(files, contents, strict=True)
        ],
        category_ids=first.category_ids,
        remarks=tuple(note for content_ in contents for note in content_.notes),
    )


def _fingerprint(files: Sequence[Place], marks: Sequence[str]) -> str:
    """The fingerprint of the files' content and of further texts; files are read in pieces."""
    whole = BlockFingerprint()
    for path in files:
        if not isinstance(path, Path):
            content = path.read_bytes()
            whole.begin(len(content))
            whole.add(content)
            continue
        whole.begin(path.stat().st_size)
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                whole.add(block)
    for mark in marks:
        whole.begin(len(mark.encode()))
        whole.add(mark.encode())
    return str(whole)


def _sort_images(images: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The images in the order of their ids, in which COCOeval ranks detections of equal score."""
    is_number = {isinstance(image["id"], int | float) for image in images}
    if len(is_number) > 1:
        return list(images)
    return sorted(images, key=itemgetter("id"))


def _columns(path: Place, content: CocoFile, locate: Locate, with_stem: bool) -> FileImages:
    """The images of a file by their ids; `with_stem`: whether their names begin with its name."""
    images = _sort_images(content.images)
    keys = [image["id"] for image in images]
    places = [locate(image) for image in images]
    sizes = [read_size(image) for image in images]
    ids = [f"{path.stem}/{key}" if with_stem else str(key) for key in keys]
    names = [str(image.get("file_name", "")) for image in images]
    return FileImages(
        Texts(build_text_array(ids, large=True)),
        shorten_keys(keys),
        None if all(place is None for place in places) else places,
        Texts(build_text_array(names, large=True)),
        np.array([size or (UNKNOWN, UNKNOWN) for size in sizes], np.int64).reshape(-1, 2),
        content.image_boxes,
        np.array([content.rows.get(key, UNKNOWN) for key in keys], dtype=np.int64),
        partial(masks, path),
    )
