"""Single images with boxes, however the files that name them are written."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from steadyeye.core.boxes import OOD, Boxes, present
from steadyeye.core.errors import SampleError
from steadyeye.core.format import number_of
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.coco_geometry import once, repeats
from steadyeye.data.images import image_file

NO_FOLDER = "the folder of the images (give images=…)"
"""What is missing where nobody named the files of images."""


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
class BoxCounts:
    """How many images and boxes there are; `outside`: boxes of objects outside the classes.

    `empty`: images without an object of the classes; `first_empty`: the id of the first.
    """

    images: int
    boxes: int
    crowds: int
    outside: int
    empty: int
    first_empty: str

    def note(self) -> str:
        """All of it as a sentence."""
        first = f", first '{self.first_empty}'" if self.empty else ""
        beside = f", {self.outside:,} of objects outside the classes" if self.outside else ""
        of = " of the classes" if self.outside else ""
        return (
            f"{number_of(self.images, 'image')} with {number_of(self.boxes, 'box')}, "
            f"{self.crowds:,} of them crowds{beside}; {number_of(self.empty, 'image')} without any "
            f"object{of}{first}"
        )


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
        return [str(image.path) if image.path else "" for image in self.images]

    @property
    def truths(self) -> Sequence[Labels]:
        """The classes in every image."""
        return [image.labels for image in self.images]

    @property
    def notes(self) -> tuple[str, ...]:
        """How many images, boxes, crowds and objects outside, and how many images without one."""
        empty = [image.id for image in self.images if not image.labels]
        counts = BoxCounts(
            images=len(self.images),
            boxes=sum(len(image.boxes) for image in self.images),
            crowds=sum(image.boxes.crowd.tolist().count(True) for image in self.images),
            outside=sum(image.boxes.labels.tolist().count(OOD) for image in self.images),
            empty=len(empty),
            first_empty=empty[0] if empty else "",
        )
        return (counts.note(), *self.remarks)

    def missing(self) -> Sequence[str]:
        """Image files that inference would need and that are not there."""
        if any(image.path is None for image in self.images):
            return [NO_FOLDER]
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
            key=file.key if file else None,
        )
