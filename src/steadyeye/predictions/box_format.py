"""Whether detections seem to be in another format than the one in which they were read.

Corners taken for sides, centres for corners, shares for pixels, or pixels of the network's input
for those of the image all give a low mAP without an error. Where there are true boxes, one of these
readings then finds far more objects than the one that was used.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from math import ceil
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, from_sides, paired_iou
from steadyeye.core.disk_columns import split_entries
from steadyeye.core.format import number_of, percent

Corners: TypeAlias = NDArray[np.float64]
ImageRows: TypeAlias = tuple[int, NDArray[np.intp], NDArray[np.intp]]
"""An image, and the rows of its true boxes and of its detections."""

IMAGES = 100
"""Images with objects that are looked at, from the first on."""
OBJECTS = 10_000
"""True boxes that are looked at, from the first on."""
SUREST = 100
"""Detections of an image that are looked at, as many as in COCO's evaluation."""
LEAST = 20
"""Objects below which nothing is said."""
TIMES, MORE = 2.0, 0.2
"""A reading seems right if it finds this many times, and this share more, of the objects."""
IOU = 0.5
"""Intersection over union at which an object is found."""
SIDES = (*range(224, 801, 32), 300, 896, 960, 1024, 1088, 1152, 1280, 1333, 1536)
"""Usual sides of the inputs of detectors, in pixels."""
FACTORS = (0.25, 0.5, 2.0, 4.0)
PARTS = ((1.0, "shares of the image's sides"), (100.0, "percent of the image's sides"))
"""What a whole side is written as, and its words."""
FORMAT = (
    "boxes are x0 y0 x1 y1 in pixels of the image, of a model file in pixels of its input "
    "(in COCO's files x y width height)"
)


def describe_mismatch(
    truth: BoxTable | None, detections: BoxTable, sizes: NDArray[np.float64]
) -> str:
    """What the detections seem to be, in one sentence; "" if nothing speaks against their format.

    `truth`, `detections`: rows sorted by image. `sizes`: (n, 2) height and width of each image, 0
    if unknown.
    """
    sentence = _describe_better_reading(truth, detections, sizes) if truth is not None else ""
    if sentence or not len(detections):
        return sentence
    # how far shares of an input reach in the image, if they are read as pixels of that input
    furthest = np.maximum(1, sizes.max(axis=1) / min(SIDES))
    largest = 0.0
    for part in split_entries(len(detections)):
        ends = detections.boxes[part].max(axis=1)
        if (ends > furthest[detections.image[part]]).any():
            return ""
        largest = max(largest, float(ends.max()))
    whole = max(1, ceil(largest))
    return (
        f"no detection of {len(detections):,} reaches beyond {whole} × "
        f"{number_of(whole, 'pixel')}, as if boxes were shares of the sides of the image or of "
        f"the network's input; {FORMAT}"
    )


def _describe_better_reading(
    truth: BoxTable, detections: BoxTable, sizes: NDArray[np.float64]
) -> str:
    true_row, detected_row, objects = _pair(truth, detections)
    if objects < LEAST or not len(true_row):
        return ""
    true, boxes_as_read = truth.boxes[true_row], detections.boxes[detected_row]
    first = np.flatnonzero(np.diff(true_row, prepend=-1))

    def share_found(boxes: Corners) -> float:
        reached = paired_iou(true, boxes) >= IOU
        return float(np.logical_or.reduceat(reached, first).sum()) / objects

    as_read = share_found(boxes_as_read)
    if as_read * TIMES > 1:  # no reading finds more than all
        return ""
    readings = [
        (share_found(boxes), words)
        for boxes, words in _list_readings(boxes_as_read, sizes[truth.image[true_row]])
    ]
    best, words = max(readings, key=lambda reading: reading[0])
    if best < as_read * TIMES or best < as_read + MORE:
        return ""
    return (
        f"the {words}: read that way, {percent(best)} of "
        f"{number_of(objects, 'object')} are found at IoU {IOU} instead of {percent(as_read)}; "
        f"{FORMAT}"
    )


def list_image_boxes(truth: BoxTable, detections: BoxTable) -> Iterator[ImageRows]:
    """The images with objects that are no crowds, of the first `OBJECTS` true boxes.

    Of an image the `SUREST` detections with the highest scores, these first.
    """
    objects = np.flatnonzero(~truth.crowd[:OBJECTS] & (truth.label[:OBJECTS] >= 0))
    for image in np.unique(truth.image[objects]).tolist():
        first, last = np.searchsorted(detections.image, [image, image + 1])
        surest = np.argsort(-detections.score[first:last], kind="stable")[:SUREST]
        yield image, objects[truth.image[objects] == image], first + surest


def _pair(truth: BoxTable, detections: BoxTable) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Rows of true boxes and of detections of the same class in the same image, and the objects.

    Sorted by true box, of at most `IMAGES` images.
    """
    true_rows, detected_rows = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    objects = 0
    for _, own, detected in islice(list_image_boxes(truth, detections), IMAGES):
        true, place = (truth.label[own][:, None] == detections.label[detected]).nonzero()
        true_rows.append(own[true])
        detected_rows.append(detected[place])
        objects += len(own)
    return np.concatenate(true_rows), np.concatenate(detected_rows), objects


def _list_readings(
    boxes_as_read: Corners, sizes: NDArray[np.float64]
) -> Iterator[tuple[Corners, str]]:
    """Detections as each other reading has them, in the unit of the true boxes, and its words."""
    known = np.where(sizes > 0, sizes, np.nan)
    for form, form_words in FORMS:
        boxes = form(boxes_as_read)
        if form_words:
            yield boxes, f"boxes seem to be {form_words}"
        for scaled, scale_words in _list_scales(boxes, known):
            yield scaled, "boxes seem to be " + ", ".join(filter(None, (form_words, scale_words)))
    for whole, words in PARTS:
        # the same overlaps as with the true boxes in pixels, because each axis has one factor
        yield whole * boxes_as_read / _repeat_sides(known), f"true boxes seem to be {words}"


def _repeat_sides(sizes: NDArray[np.float64]) -> Corners:
    """Width, height, width and height of images."""
    return np.tile(sizes[:, ::-1], 2)


def _list_scales(boxes: Corners, known: NDArray[np.float64]) -> Iterator[tuple[Corners, str]]:
    width_height = _repeat_sides(known)
    for whole, words in PARTS:
        yield boxes * width_height / whole, words
    for factor in FACTORS:
        yield boxes / factor, f"in pixels of the image at {factor:g} times its size"
    longer = known.max(axis=1, keepdims=True)
    for side in SIDES:
        input_words = f"in pixels of an input of {side} × {side}"
        margin = (side - width_height * side / longer) / 2
        yield boxes * width_height / side, f"{input_words}, to which the image was stretched"
        yield boxes * longer / side, f"{input_words} with the image in its upper left corner"
        yield (boxes - margin) * longer / side, f"{input_words} with the image in its middle"
        share_words = f"shares of an input of {side} × {side}, read as its pixels"
        yield boxes * side, share_words
        moved = boxes * side + margin * longer * (1 - 1 / side)
        yield moved, f"{share_words}, with the image in its middle"


def _from_corners(boxes: Corners) -> Corners:
    """Of x0 y0 x1 y1 to which x0 and y0 were added, as for sides."""
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def _from_added_centres(boxes: Corners) -> Corners:
    """Of x and y of the centre, width and height, to which x and y were added, as for sides."""
    half = (boxes[:, 2:] - boxes[:, :2]) / 2
    return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)


def _from_centres(boxes: Corners) -> Corners:
    """Of x and y of the centre, width and height."""
    return np.concatenate(
        [boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1
    )


FORMS: tuple[tuple[Callable[[Corners], Corners], str], ...] = (
    (lambda boxes: boxes, ""),
    (_from_corners, "x0 y0 x1 y1 where x y width height was expected"),
    (from_sides, "x y width height where x0 y0 x1 y1 was expected"),
    (_from_added_centres, "centres with width and height where x y width height was expected"),
    (_from_centres, "centres with width and height where x0 y0 x1 y1 was expected"),
    (lambda boxes: boxes[:, [1, 0, 3, 2]], "in the order y, x"),
)
