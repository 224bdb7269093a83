"""Single images with boxes, however the files that name them are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, Boxes, present
from steadyeye.core.errors import SampleError
from steadyeye.core.format import number_of
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.coco_geometry import once, repeats
from steadyeye.data.images import image_file


@dataclass(frozen=True, eq=False)
class BoxedImage:
    """One image; `path` is None where only saved detections can be scored against it.

    `size`: (height, width) where the annotations say it. `masks`: as in `Sample`. `file_name`: what
    the annotations call its file, "" where it is the path.
    """

    id: str
    path: Place | None
    boxes: Boxes
    size: tuple[int, int] | None = None
    masks: Callable[[], NDArray[np.bool_]] | None = None
    file_name: str = ""

    @cached_property
    def labels(self) -> Labels:
        """The classes that are there, crowds and objects outside the classes aside."""
        return present(self.boxes)


@dataclass(frozen=True)
class MissingImage:
    """What stands for an image whose file nobody named: it cannot be read."""

    id: str

    def __call__(self) -> Image:
        """Raises `SampleError`."""
        raise SampleError(f"the file of the image '{self.id}' is not known; give images=…")


def without_repeats(
    images: Sequence[BoxedImage],
) -> tuple[Sequence[BoxedImage], tuple[str, ...]]:
    """Images whose boxes are each there once, and the note of how many were there twice."""
    unique = [replace(image, boxes=once(image.boxes)) for image in images]
    before, after = (sum(len(image.boxes) for image in some) for some in (images, unique))
    return unique, repeats(before - after, before)


@source_in_short
@dataclass(frozen=True, eq=False)
class BoxedImages:
    """A `Source` over images with boxes; `category_ids`: what saved detections call its classes.

    `remarks`: what a reader must know of the files that name them.
    """

    name: str
    classes: Classes
    fingerprint: str
    images: Sequence[BoxedImage] = field(repr=False)
    category_ids: Sequence[int] | None = None
    columns: tuple[str, ...] = ("truth", "boxes")
    remarks: tuple[str, ...] = ()

    @property
    def ids(self) -> Sequence[str]:
        """The id of every image."""
        return [image.id for image in self.images]

    @property
    def file_names(self) -> Sequence[str]:
        """What the file of every image is called, which saved detections may name."""
        return [image.file_name or (str(image.path) if image.path else "") for image in self.images]

    @property
    def truths(self) -> Sequence[Labels]:
        """The classes in every image."""
        return [image.labels for image in self.images]

    @property
    def notes(self) -> tuple[str, ...]:
        """How many images, boxes, crowds and objects outside, and how many images without one."""
        crowds = sum(image.boxes.crowd.tolist().count(True) for image in self.images)
        empty = [image.id for image in self.images if not image.labels]
        first = f", first '{empty[0]}'" if empty else ""
        total = sum(len(image.boxes) for image in self.images)
        outside = sum(image.boxes.labels.tolist().count(OOD) for image in self.images)
        beside = f", {outside:,} of objects outside the classes" if outside else ""
        of = " of the classes" if outside else ""
        return (
            f"{number_of(len(self.images), 'image')} with {number_of(total, 'box')}, {crowds:,} "
            f"of them crowds{beside}; {number_of(len(empty), 'image')} without any "
            f"object{of}{first}",
            *self.remarks,
        )

    def missing(self) -> Sequence[str]:
        """Image files that inference would need and that are not there."""
        if any(image.path is None for image in self.images):
            return ["the folder of the images (give images=…)"]
        return [str(path) for path in find_missing(image.path or Path() for image in self.images)]

    def files(self) -> Sequence[Place]:
        """The files that the images are read from, each once, in the order of the samples."""
        return list(dict.fromkeys(image.path for image in self.images if image.path is not None))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Sample:
        image = self.images[index]
        file = None if image.path is None else image_file.ImageFile(image.path)
        return Sample(
            image.id,
            file or MissingImage(image.id),
            image.labels,
            boxes=image.boxes,
            size=image.size,
            masks=image.masks,
            key=file.key if file else None,
        )
