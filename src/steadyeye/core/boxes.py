"""Boxes of images: true boxes, detections, and both as flat tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError

OOD = -1
"""The label of a true box around an object outside the classes (out of distribution)."""
Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in pixels, half-open."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """The true boxes of one image, n of them.

    `boxes`: (n, 4) float64, x0 y0 x1 y1 in pixels, half-open. `labels`: (n,) int32 indices into the
    classes of the data, `OOD` for an object outside them, which only code that asks for it gets.
    `crowd`: (n,) bool, regions that neither reward nor punish (COCO's `iscrowd`). `area`: (n,)
    float64 square pixels of the object, which a mask makes smaller than its box. `track`: (n,)
    int64, the object of the video; None if not known.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int32]
    crowd: NDArray[np.bool_]
    area: NDArray[np.float64]
    track: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Detections:
    """The detections of one image, n boxes in any order.

    `boxes` and `labels` as in `Boxes`, labels over the detector's own classes; `scores`: (n,)
    float64 in 0…1.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Boxes of many images as columns, n rows, those of an image in the order they were given.

    `image`: (n,) int64 which image; `label`: (n,) int64, as in `Boxes`; `boxes`: (n, 4) float64.
    `score`: (n,) float64, 1 for true boxes. `crowd`: (n,) bool. `area`: (n,) float64, for
    detections the area of the box. `track`: (n,) int64, as in `Boxes`; None if not known.
    """

    image: NDArray[np.int64]
    label: NDArray[np.int64]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    area: NDArray[np.float64]
    track: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True, eq=False)
class Verified:
    """The classes whose presence or absence was verified in n images; m pairs.

    `image`, `label`: (m,) int64, sorted by image, then label, each pair once. `known`: (n,) bool,
    the images with such a list, possibly empty; in the others every class was verified.
    """

    image: NDArray[np.int64]
    label: NDArray[np.int64]
    known: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.image)


def boxes(
    corners: Sequence[Sequence[float]] | NDArray[np.floating],
    labels: Sequence[int] | NDArray[np.integer],
    crowd: Sequence[bool] | NDArray[np.bool_] | None = None,
    area: Sequence[float] | NDArray[np.floating] | None = None,
    track: Sequence[int] | NDArray[np.integer] | None = None,
) -> Boxes:
    """The true boxes of an image; no crowds and the areas of the boxes unless they are given."""
    corners_array = np.asarray(corners, dtype=np.float64).reshape(-1, 4)
    n = len(corners_array)
    return Boxes(
        corners_array,
        np.asarray(labels, dtype=np.int32).reshape(n),
        np.zeros(n, dtype=np.bool_) if crowd is None else np.asarray(crowd, dtype=np.bool_),
        areas(corners_array) if area is None else np.asarray(area, dtype=np.float64).reshape(n),
        None if track is None else np.asarray(track, dtype=np.int64).reshape(n),
    )


def check_pixels(farthest: float, title: str) -> None:
    """Raises `UsageError` if no corner of `title` reaches beyond 1: boxes are shares of the sides.

    `farthest`: the largest coordinate; not above 0 where there are no boxes.
    """
    if 0 < farthest <= 1:
        raise UsageError(
            f"{title}: all boxes lie within 1 × 1 pixel, as if they were shares of the image's "
            "sides; give pixels"
        )


def areas(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the areas of (n, 4) boxes."""
    return np.asarray((corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1]))


def from_sides(sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) x0 y0 x1 y1 of boxes given as x y width height."""
    with np.errstate(over="ignore"):  # what is then infinite is refused
        return np.concatenate([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1)


def move_boxes(boxes: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) or (4,) boxes moved by (n, 2) or (2,) pixels, x and y."""
    return np.asarray(boxes + np.concatenate([by, by], axis=-1), dtype=np.float64)


def iou(boxes: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) intersection over union of (n, 4) and (m, 4) half-open boxes; 0 for empty ones."""
    shared = intersect_boxes(boxes, other)
    return divide_areas(shared, areas(boxes)[:, None] + areas(other)[None, :] - shared)


def paired_iou(boxes: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) intersection over union of each of (n, 4) boxes with the other in its row."""
    low, high = np.maximum(boxes[:, :2], other[:, :2]), np.minimum(boxes[:, 2:], other[:, 2:])
    shared = np.maximum(high - low, 0).prod(axis=1)
    return divide_areas(shared, areas(boxes) + areas(other) - shared)


def intersect_boxes(boxes: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) square pixels in both boxes."""
    # a side at a time: a product over a last axis of two takes twice as long
    wide, high = (
        np.minimum(boxes[:, None, 2 + axis], other[None, :, 2 + axis])
        - np.maximum(boxes[:, None, axis], other[None, :, axis])
        for axis in (0, 1)
    )
    return np.asarray(np.maximum(wide, 0) * np.maximum(high, 0), dtype=np.float64)


def divide_areas(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ratio of areas, of one shape; 0 for an area of 0."""
    share = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return np.asarray(share, dtype=np.float64)


def reach_score(scores: NDArray[np.floating], score: float) -> NDArray[np.bool_]:
    """(n,) whether scores are at least `score`, in the single precision of models.

    A model's 0.7 is below the 0.7 of double precision.
    """
    return np.asarray(scores >= min(score, float(np.float32(score))), dtype=np.bool_)


def exceed_score(scores: NDArray[np.floating], score: float) -> NDArray[np.bool_]:
    """(n,) whether scores are above `score`, in the single precision of models.

    A model's 0.8 is above the 0.8 of double precision, but does not exceed it.
    """
    return np.asarray(scores > max(score, float(np.float32(score))), dtype=np.bool_)


def describe_size_fault(
    id_: str, size: tuple[int, int] | None, actual: tuple[int, int] | None
) -> str:
    """The fault of boxes that are not of an image, by its size; '' if they may be.

    `size`, `actual`: (height, width) of the annotations and of the image, if known.
    """
    if not size or not actual or not all(actual) or size == actual:
        return ""
    return (
        f"the boxes of '{id_}' are of an image of {size[1]} × {size[0]} pixels, but it has "
        f"{actual[1]} × {actual[0]}; give the images that were annotated, or correct the size"
    )


def present(objects: Boxes) -> tuple[int, ...]:
    """The present classes, without crowds and objects outside the classes, rising."""
    # a list is faster than an array of a few boxes
    pairs = zip(objects.labels.tolist(), objects.crowd.tolist(), strict=True)
    return tuple(sorted({label for label, crowd in pairs if not crowd and label != OOD}))


EMPTY = boxes([], [])
"""The boxes of an image without objects."""


def truth_table(images: Sequence[Boxes]) -> BoxTable:
    """The true boxes of images as one table; image i is the i-th of them."""
    counts = [len(objects) for objects in images]
    tracks = [objects.track for objects in images if objects.track is not None]
    assert len(tracks) in (0, len(images)), "a source knows the tracks of all its images or of none"
    return BoxTable(
        np.repeat(np.arange(len(images), dtype=np.int64), counts),
        _join_columns([objects.labels for objects in images], np.int64),
        _join_columns([objects.boxes for objects in images], np.float64).reshape(-1, 4),
        np.ones(sum(counts)),
        _join_columns([objects.crowd for objects in images], np.bool_),
        _join_columns([objects.area for objects in images], np.float64),
        _join_columns(tracks, np.int64) if tracks else None,
    )


def detection_table(images: Sequence[Detections]) -> BoxTable:
    """The detections in images as one table."""
    counts = [len(detections) for detections in images]
    corners = _join_columns([detections.boxes for detections in images], np.float64).reshape(-1, 4)
    return BoxTable(
        np.repeat(np.arange(len(images), dtype=np.int64), counts),
        _join_columns([detections.labels for detections in images], np.int64),
        corners,
        _join_columns([detections.scores for detections in images], np.float64),
        np.zeros(sum(counts), dtype=np.bool_),
        areas(corners),
    )


_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def select(table: BoxTable, images: NDArray[np.integer]) -> BoxTable:
    """The boxes of some images, which are renumbered in the order of `images`.

    A repeated image is repeated in the result.
    """
    everything = len(images) > int(table.image.max(initial=-1))
    if everything and np.array_equal(images, np.arange(len(images))):
        return table
    if len(np.unique(images)) < len(images):
        order = np.argsort(table.image, kind="stable")
        first, last = (np.searchsorted(table.image[order], images, side) for side in _SIDES)
        rows = [order[start:stop] for start, stop in zip(first, last, strict=True)]
        numbers = np.repeat(np.arange(len(images), dtype=np.int64), last - first)
        return replace(take(table, np.concatenate(rows)), image=numbers)
    place = np.full(int(max(table.image.max(initial=-1), images.max(initial=-1))) + 1, -1)
    place[images] = np.arange(len(images))
    image = place[table.image]
    return take_where(replace(table, image=image), image >= 0)


def take_where(table: BoxTable, is_wanted: NDArray[np.bool_]) -> BoxTable:
    """The rows of a table where a mask, (n,) bool, is True; the table itself if all are."""
    # most often they are, and millions of rows are not copied
    return table if is_wanted.all() else take(table, np.flatnonzero(is_wanted))


def select_verified(table: Verified, images: NDArray[np.integer]) -> Verified:
    """The verified classes of some images, which are renumbered in the order of `images`."""
    first = np.searchsorted(table.image, images, side="left")
    counts = np.searchsorted(table.image, images, side="right") - first
    image = np.repeat(np.arange(len(images), dtype=np.int64), counts)
    within = np.arange(len(image)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Verified(image, table.label[np.repeat(first, counts) + within], table.known[images])


def take(table: BoxTable, rows: NDArray[np.integer] | slice) -> BoxTable:
    """Some rows of a table, in the order of `rows`; the images keep their numbers.

    Consecutive ones, where `rows` is a slice, are views of it.
    """
    return BoxTable(
        table.image[rows],
        table.label[rows],
        table.boxes[rows],
        table.score[rows],
        table.crowd[rows],
        table.area[rows],
        None if table.track is None else table.track[rows],
    )


def in_classes(table: BoxTable) -> BoxTable:
    """The true boxes without those of objects outside the classes."""
    return take_where(table, table.label != OOD)


def _join_columns(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    flat = [np.zeros(0, dtype=dtype), *(part.ravel() for part in parts)]
    return np.concatenate(flat).astype(dtype)
