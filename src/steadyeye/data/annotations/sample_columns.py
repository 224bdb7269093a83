"""Columns of many samples, such as their labels and their boxes: each value is made on request."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steadyeye.core.boxes import OOD, Boxes
from steadyeye.core.disk_columns import DiskColumn, split_entries
from steadyeye.core.storage.text_columns import CHUNK, Column, Item
from steadyeye.core.types import Labels


@dataclass(frozen=True, eq=False)
class Lists(Column[Labels]):
    """Lists of labels in one array, each made a tuple on request."""

    starts: NDArray[np.integer]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def make(self, row: int) -> Labels:
        """The labels of a row."""
        return tuple(self.labels[self.starts[row] : self.starts[row + 1]].tolist())

    def __iter__(self) -> Iterator[Labels]:
        for start in range(0, len(self), CHUNK):
            ends = self.starts[start : start + CHUNK + 1]
            labels = self.labels[ends[0] : ends[-1]].tolist()
            for low, high in pairwise((ends - ends[0]).tolist()):
                yield tuple(labels[low:high])


@dataclass(frozen=True, eq=False)
class NumberedNames(Column[str]):
    """Names that end in their number, from 0 with eight digits: `train/00000000`."""

    start: str
    length: int

    def __len__(self) -> int:
        return self.length

    def make(self, row: int) -> str:
        """The name of a row."""
        return f"{self.start}{row:08d}"


@dataclass(frozen=True, eq=False)
class Joined(Column[Item]):
    """Columns one after the other. `first`: the place of the first value of each, and the end."""

    parts: Sequence[Sequence[Item]]
    first: Sequence[int]

    def __len__(self) -> int:
        return self.first[-1]

    def make(self, row: int) -> Item:
        """The value of a row."""
        part, place = within(self.first, row)
        return self.parts[part][place]

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self.parts)


def join_columns(parts: Sequence[Sequence[Item]]) -> Joined[Item]:
    """The columns as one."""
    return Joined(parts, [0, *accumulate(map(len, parts))])


def within(first: Sequence[int], index: int) -> tuple[int, int]:
    """Which part a value lies in, and at which place there; `first` as in `Joined`."""
    part = bisect_right(first, index) - 1
    return part, index - first[part]


def present(
    starts: NDArray[np.integer], labels: NDArray[np.int32], counted: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Of each list, in the form of `Lists`, the labels that occur, rising, each once.

    `counted`: which of the labels count; all if left out.
    """
    rows = len(starts) - 1
    image = np.repeat(np.arange(rows, dtype=np.int64), np.diff(starts))
    if counted is not None:
        image, labels = image[counted], labels[counted]
    width = int(labels.max(initial=0)) + 1
    # sorted by hand, as numpy's unique takes two hundred times as long here
    keys = np.sort(image * width + labels)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    ends = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * width)
    return ends, (keys % width).astype(np.int32)


KINDS: dict[str, tuple[DTypeLike, int]] = {
    "boxes": (np.float64, 4),
    "labels": (np.int32, 0),
    "crowd": (np.bool_, 0),
    "area": (np.float64, 0),
}
"""The columns of `Boxes` that an annotation file has, and how many numbers an entry has."""


@dataclass(frozen=True, eq=False)
class ImageBoxes(Column[Boxes]):
    """The boxes of n images, one after the other.

    `first`: (n + 1,) the first row of each image; `columns`: the fields of `Boxes`, of all images.
    """

    first: NDArray[np.int64]
    columns: Boxes

    def __len__(self) -> int:
        return len(self.first) - 1

    def make(self, row: int) -> Boxes:
        """The boxes of an image."""
        own, every = slice(self.first[row], self.first[row + 1]), self.columns
        return Boxes(every.boxes[own], every.labels[own], every.crowd[own], every.area[own])

    @property
    def labels(self) -> Lists:
        """Of each image the classes that are there, as `core.boxes.present` has them."""
        counted = ~self.columns.crowd & (self.columns.labels != OOD)
        return Lists(*present(self.first, self.columns.labels, counted))

    @property
    def farthest(self) -> float:
        """The largest corner, in pixels; infinite without boxes."""
        boxes = self.columns.boxes
        parts = split_entries(len(boxes))
        return max((float(boxes[part].max()) for part in parts), default=np.inf)


class BoxColumns:
    """`ImageBoxes` that grow image by image."""

    def __init__(self) -> None:
        self._counts = DiskColumn(np.int64)
        self._columns = {name: DiskColumn(*kind) for name, kind in KINDS.items()}

    def append(self, counts: NDArray[np.integer], **parts: NDArray[Any]) -> None:
        """Adds the boxes of the next images; `counts`: how many each has; `parts`: as `KINDS`."""
        self._counts.append(counts)
        for name, column in self._columns.items():
            column.append(parts[name])

    def join(self) -> ImageBoxes:
        """All that were added."""
        first = np.concatenate([[0], np.cumsum(self._counts.array())])
        columns = Boxes(*(column.array() for column in self._columns.values()))
        return ImageBoxes(first.astype(np.int64), columns)


def join_boxes(images: Sequence[Boxes]) -> ImageBoxes:
    """The boxes of images, which know no tracks, as columns."""
    columns = BoxColumns()
    if images:
        parts = {name: np.concatenate([getattr(own, name) for own in images]) for name in KINDS}
        columns.append(np.array([len(own) for own in images]), **parts)
    return columns.join()
