"""Single images with boxes, stored as columns: a sample is made on request."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import EMPTY, OOD, Boxes, present
from steadyeye.core.errors import SampleError
from steadyeye.core.format import number_of
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.coco_geometry import once, repeats
from steadyeye.data.annotations.sample_columns import ImageBoxes, Lists, join_boxes, within
from steadyeye.data.images import image_file

NO_FOLDER = "the folder of the images (give images=…)"
"""The name of the missing folder if the image files are not known."""


@dataclass(frozen=True, eq=False)
class BoxedImage:
    """One image; `path` is None where only saved detections can be scored against it.

    `size`: (height, width) where the annotations say it.
    """

    id: str
    path: Place | None
    boxes: Boxes
    size: tuple[int, int] | None = None

    @cached_property
    def labels(self) -> Labels:
        """The classes that are there, crowds and objects outside the classes aside."""
        return present(self.boxes)


@dataclass(frozen=True)
class MissingImage:
    """The placeholder of an image without a known file, which cannot be read."""

    id: str

    def __call__(self) -> Image:
        """Raises `SampleError`."""
        raise SampleError(f"the file of the image '{self.id}' is not known; give images=…")


UNKNOWN = -1
"""Stands for a side of an image that the annotations do not say, and for the row of no boxes."""


@dataclass(frozen=True, eq=False)
class FileImages:
    """The images of one file of annotations, n of them.

    `ids`: those of the samples; `keys`: ids in the file. `places`: the file of each image, None if
    not known; None for all if no file is known. `file_names`: names in the annotations, "" if there
    is none. `size`: (n, 2) height and width, `UNKNOWN` if not given. `boxes`: of the images that
    have any; `row`: (n,) which of them, `UNKNOWN` for none. `read_masks`: reads the masks of an
    image by its key and its size; None: there are none.
    """

    ids: Sequence[str]
    keys: Sequence[int | str]
    places: Sequence[Place | None] | None
    file_names: Sequence[str]
    size: NDArray[np.int64]
    boxes: ImageBoxes
    row: NDArray[np.int64]
    read_masks: Callable[[int | str, tuple[int, int]], NDArray[np.bool_]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def labels(self) -> Lists:
        """Of each image the classes that are there, crowds and objects outside them aside."""
        own = self.boxes.labels
        starts = np.append(own.starts, own.starts[-1])  # of an image without boxes
        row = np.where(self.row == UNKNOWN, len(own), self.row)
        counts = starts[np.minimum(row + 1, len(own))] - starts[row]
        first = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(first[-1]) + np.repeat(starts[row] - first[:-1], counts)
        return Lists(first, own.labels[at])

    def sample(self, row: int) -> Sample:
        """The image of a row."""
        place = self.places[row] if self.places else None
        file = None if place is None else image_file.ImageFile(place)
        height, width = self.size[row].tolist()
        size = None if height == UNKNOWN else (height, width)
        boxes = int(self.row[row])
        id_, read = self.ids[row], self.read_masks
        return Sample(
            id_,
            file or MissingImage(id_),
            self.labels[row],
            boxes=EMPTY if boxes == UNKNOWN else self.boxes[boxes],
            size=size,
            masks=partial(read, self.keys[row], size) if read and size else None,
            key=file.key if file else None,
        )


def join_images(images: Sequence[BoxedImage]) -> tuple[FileImages, tuple[str, ...]]:
    """Single images as columns, each box there once; the note of how many were there twice."""
    ids = [image.id for image in images]
    unique = join_boxes([once(image.boxes) for image in images])
    columns = FileImages(
        ids=ids,
        keys=ids,
        places=[image.path for image in images],
        file_names=[""] * len(images),
        size=np.array([image.size or (UNKNOWN, UNKNOWN) for image in images], np.int64),
        boxes=unique,
        row=np.arange(len(images)),
    )
    before = sum(len(image.boxes) for image in images)
    return columns, repeats(before - len(unique.columns), before)


@source_in_short
@dataclass(frozen=True, eq=False)
class ColumnImages:
    """A `Source` over the images of files; `category_ids`: its class numbers in saved detections.

    `remarks`: notes on the files.
    """

    name: str
    classes: Classes
    fingerprint: str
    parts: Sequence[FileImages] = field(repr=False)
    category_ids: Sequence[int] | None = None
    columns: tuple[str, ...] = ("truth", "boxes")
    remarks: tuple[str, ...] = ()

    @cached_property
    def _first(self) -> Sequence[int]:
        return [0, *accumulate(map(len, self.parts))]

    @property
    def ids(self) -> Sequence[str]:
        """The id of every image."""
        return [id_ for part in self.parts for id_ in part.ids]

    @property
    def file_names(self) -> Sequence[str]:
        """The file name of every image, by which saved detections may refer to it."""
        return [
            name or (str(place) if place else "")
            for part in self.parts
            for name, place in zip(part.file_names, self._places(part), strict=True)
        ]

    @property
    def truths(self) -> Sequence[Labels]:
        """The classes in every image."""
        return [labels for part in self.parts for labels in part.labels]

    @property
    def notes(self) -> tuple[str, ...]:
        """How many images, boxes, crowds and objects outside, and how many images without one."""
        columns = [part.boxes.columns for part in self.parts]
        boxes, crowds = sum(map(len, columns)), sum(int(own.crowd.sum()) for own in columns)
        outside = sum(int((own.labels == OOD).sum()) for own in columns)
        is_empty = np.concatenate([np.diff(part.labels.starts) == 0 for part in self.parts])
        empty = np.flatnonzero(is_empty)
        first = f", first '{self[int(empty[0])].id}'" if len(empty) else ""
        beside = f", {outside:,} of objects outside the classes" if outside else ""
        of = " of the classes" if outside else ""
        return (
            f"{number_of(len(self), 'image')} with {number_of(boxes, 'box')}, {crowds:,} of them "
            f"crowds{beside}; {number_of(len(empty), 'image')} without any object{of}{first}",
            *self.remarks,
        )

    def missing(self) -> Sequence[str]:
        """Image files that inference would need and that are not there."""
        places = [place for part in self.parts for place in self._places(part)]
        if None in places:
            return [NO_FOLDER]
        return find_missing(place or Path() for place in places)

    def files(self) -> Sequence[Place]:
        """The files that the images are read from, each once, in the order of the samples."""
        places = (place for part in self.parts for place in self._places(part))
        return list(dict.fromkeys(place for place in places if place is not None))

    def __len__(self) -> int:
        return self._first[-1]

    def __getitem__(self, index: int) -> Sample:
        part, row = within(self._first, range(len(self))[index])
        return self.parts[part].sample(row)

    def _places(self, part: FileImages) -> Sequence[Place | None]:
        return part.places or [None] * len(part)


def shorten_keys(keys: Sequence[int | str]) -> Sequence[int | str]:
    """Keys as one column where all are whole numbers of 64 bits."""
    whole = [key for key in keys if type(key) is int]
    try:
        return array("q", whole) if len(whole) == len(keys) else tuple(keys)
    except OverflowError:
        return tuple(keys)
