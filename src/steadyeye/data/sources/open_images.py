"""Images with boxes in the format of Open Images, as columns until a sample is requested."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyeye.core.boxes import EMPTY, Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_columns import Texts
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.data.annotations.coco_geometry import repeats
from steadyeye.data.annotations.sample_columns import Lists
from steadyeye.data.images import image_file
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.open_images.annotation_files import (
    NOTHING,
    BoxRows,
    read_boxes,
    read_labels,
)
from steadyeye.data.open_images.classes import Kinds, kinds
from steadyeye.data.open_images.image_table import ImageTable, join_tables, select_images
from steadyeye.data.video.paths import resolve


@dataclass(frozen=True)
class ImageFolder:
    """A folder with images at or below it, each named by its id."""

    root: Path

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Id → its file below the folder.

        Raises `UsageError` without the folder, or if two files have the same id.
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
        """Notes on the numbers of images, boxes, crowds and drawings, and on the annotation."""
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
        """Height and width of the file, because copies in other sizes are common.

        None if not known and not needed for boxes.
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


def open_images(
    boxes: str,
    images: str | None = None,
    classes: str | None = None,
    labels: str | None = None,
    hierarchy: str | None = None,
    present: bool = False,
) -> OpenImages:
    """Open Images V4 to V7: the CSV files of boxes and of verified labels, and the images.

    `boxes`: …-annotations-bbox.csv. `images`: a folder with `ImageID.jpg` at any depth; not needed
    to score saved detections if `boxes` has the columns Width and Height. `classes`:
    class-descriptions-boxable.csv, by default the 601 shipped ones. `labels`:
    …-human-imagelabels-boxable.csv: the classes that people verified as present in an image, or
    absent. `hierarchy`: the released JSON, by default the shipped one. `present`: only the images
    in the folder; otherwise all listed ones, and a run is refused while some are missing. Boxes of
    groups neither reward nor punish; drawings count as objects. Raises `UsageError` with the number
    of unusable rows and the first.

    Example: `open_images(boxes='validation-annotations-bbox.csv', images='validation')`
    """
    known = kinds(resolve(classes) if classes else None, resolve(hierarchy) if hierarchy else None)
    path = resolve(boxes)
    rows = read_boxes(path, known)
    folder = ImageFolder(resolve(images)) if images else None
    if folder is None and rows.sizes is None:
        raise UsageError(
            f"'{path}' has boxes as shares of the image and no columns Width and Height; "
            "give images=… too"
        )
    verified = read_labels(resolve(labels), known) if labels else NOTHING
    table = join_tables(rows, verified)
    remarks = _remarks(rows, labels)
    if present:
        table, left = _present(table, folder)
        remarks = (*remarks, *left)
    return OpenImages(
        path.name.partition(".")[0].removesuffix("-annotations-bbox"),
        known,
        table,
        folder,
        fingerprint(
            table.fingerprint, *known.mids, *known.classes.names, str(known.classes.parents)
        ),
        remarks,
    )


def _present(table: ImageTable, folder: ImageFolder | None) -> tuple[ImageTable, tuple[str, ...]]:
    """The images in the folder, and notes on those left out on either side."""
    if folder is None:
        raise UsageError("present=True keeps the images that the folder holds; give images=…")
    names = pa.array(list(folder.files), pa.string())
    is_present = np.asarray(pc.is_in(table.ids, value_set=names).to_numpy(zero_copy_only=False))
    if not is_present.any():
        raise UsageError(
            f"'{folder.root}' holds none of the {number_of(len(table), 'image')} listed; give "
            "the folder of these images"
        )
    foreign = names.filter(pc.invert(pc.is_in(names, value_set=table.ids)))
    texts = [f"{int((~is_present).sum()):,} of {len(table):,} listed images left out: not there"]
    if len(foreign):
        texts.append(
            f"{number_of(len(foreign), 'image')} of the folder not listed, left out, first "
            f"'{pc.min(foreign).as_py()}'"
        )
    return select_images(table, is_present), tuple(texts)


def _remarks(rows: BoxRows, labels: str | None) -> tuple[str, ...]:
    texts = []
    if rows.depictions:
        drawings = number_of(rows.depictions, "box is a depiction", "boxes are depictions")
        texts.append(f"{drawings}, counted as objects")
    if rows.unjudged:
        texts.append(
            f"for {number_of(rows.unjudged, 'box')} the labels do not say whether they hold a "
            "group; they count as one object"
        )
    texts.append(
        f"classes verified to be in an image or not: from {Path(labels).name} and the boxes, with "
        "what follows by the hierarchy"
        if labels
        else "classes verified to be in an image: those with boxes, and what stands above them; no "
        "file of labels was given"
    )
    return (*texts, *repeats(rows.repeats, rows.repeats + len(rows.label)))
