"""The images of Open Images as a source; what it holds of each is columns until it is asked."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from steadyeye.core.boxes import EMPTY, Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.format import number_of
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_columns import Texts
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.string_columns import Lists
from steadyeye.data.images import image_file
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.open_images.classes import Kinds
from steadyeye.data.open_images.image_table import ImageTable


@dataclass(frozen=True)
class ImageFolder:
    """A folder with images at or below it, each named by its id."""

    root: Path

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Id → where its file is below the folder.

        Raises `UsageError` where there is no folder, or two files have the same id.
        """
        if not self.root.is_dir():
            raise UsageError(f"no folder at '{self.root}'; check the path")
        paths: dict[str, str] = {}
        twice: list[str] = []
        # os.walk, as Path.rglob does not enter linked folders
        for folder, _, names in os.walk(self.root, followlinks=True):
            below = os.path.relpath(folder, self.root)
            for name in names:
                stem, suffix = os.path.splitext(name)
                if suffix.lower() in SUFFIXES:
                    twice += [stem] if stem in paths else []
                    paths[stem] = name if below == "." else f"{below}/{name}"
        if twice:
            raise UsageError(
                f"'{self.root}' has {number_of(len(twice), 'image')} more than once, first "
                f"'{min(twice)}'; keep one file of each"
            )
        return paths

    def path(self, id_: str) -> Path:
        """The file of an image; where it would be, if there is none."""
        name = self.files.get(id_)
        if name is not None:
            return self.root / name
        confine(self.root, "the table of the images")(f"{id_}.jpg")
        return self.root / f"{id_}.jpg"


@source_in_short
@dataclass(frozen=True, eq=False)
class OpenImages:
    """A `Source` over a table; `remarks`: what else is to be known of the files."""

    name: str
    kinds: Kinds = field(repr=False)
    table: ImageTable = field(repr=False)
    folder: ImageFolder | None
    fingerprint: str
    remarks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("truth", "boxes", "verified")

    @property
    def classes(self) -> Classes:
        """The classes of the descriptions, with their parents."""
        return self.kinds.classes

    @property
    def ids(self) -> Sequence[str]:
        """The id of every image."""
        return Texts(self.table.ids)

    @property
    def truths(self) -> Sequence[Labels]:
        """The classes in every image, crowds aside."""
        return Lists(*self.table.present)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many images, boxes, crowds and drawings; how far the annotation goes."""
        empty = np.flatnonzero(np.diff(self.table.present[0]) == 0)
        first = f", first '{self.ids[int(empty[0])]}'" if len(empty) else ""
        return (
            f"{number_of(len(self), 'image')} with {number_of(len(self.table.label), 'box')}, "
            f"{int(self.table.crowd.sum()):,} of them crowds; {number_of(len(empty), 'image')} "
            f"without any object{first}",
            *self.remarks,
        )

    def missing(self) -> Sequence[str]:
        """Image files that inference would need and that are not there."""
        if self.folder is None:
            return ["the folder of the images (give images=…)"]
        files, folder = self.folder.files, self.folder
        return [str(folder.path(id_)) for id_ in self.ids if id_ not in files]

    def files(self) -> Sequence[Place]:
        """The files that the images are read from, each once, in the order of the samples."""
        return [] if self.folder is None else [self.folder.path(id_) for id_ in self.ids]

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        id_ = self.ids[index]
        size = self._size(index, id_)
        folder = self.folder

        def image() -> Image:
            if folder is None:
                raise SampleError(f"no folder of images to find '{id_}' in; give images=…")
            return image_file.read(folder.path(id_))

        return Sample(
            id_,
            image,
            self.truths[index],
            boxes=self._boxes(index, size),
            size=size,
            verified=self._verified_labels(index),
            key=None if folder is None else image_file.ImageFile(folder.path(id_)).key,
        )

    def _size(self, index: int, id_: str) -> tuple[int, int] | None:
        """Height and width: those of the file, as copies in other sizes are common.

        None where they are not known and there are no boxes to need them.
        """
        if self.folder is not None and id_ in self.folder.files:
            try:
                return image_file.size(self.folder.path(id_))
            except SampleError as error:
                raise SampleError(
                    f"{error}; boxes are shares of the image, so it must be readable"
                ) from error
        if self.table.sizes is not None and self.table.sizes[index].all():
            height, width = self.table.sizes[index].tolist()
            return height, width
        if self.table.first[index] < self.table.first[index + 1]:
            raise SampleError(f"'{id_}' has boxes as shares of its image, which is not there")
        return None

    def _boxes(self, index: int, size: tuple[int, int] | None) -> Boxes:
        """The boxes in pixels."""
        if size is None:
            return EMPTY
        own = slice(self.table.first[index], self.table.first[index + 1])
        sides = np.array([size[1], size[0], size[1], size[0]], dtype=np.float64)
        return boxes(self.table.shares[own] * sides, self.table.label[own], self.table.crowd[own])

    def _verified_labels(self, index: int) -> Labels:
        """The classes verified to be there or not to be, with what follows by the hierarchy."""
        own = slice(self.table.first[index], self.table.first[index + 1])
        rows = slice(self.table.starts[index], self.table.starts[index + 1])
        positive = self.table.verified_positive[rows]
        labels = self.table.verified_label[rows]
        # boxes were only drawn of classes that somebody verified to be there
        present = {*self.table.label[own].tolist(), *labels[positive].tolist()}
        labels_ = {up for label in present for up in self.kinds.above[label]}
        absent = labels[~positive].tolist()
        return tuple(sorted(labels_.union(*(self.kinds.below[label] for label in absent))))
