"""The true boxes of many images as columns; those of an image are made on request."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steadyeye.core.boxes import OOD, Boxes
from steadyeye.core.disk_columns import DiskColumn, split_entries
from steadyeye.core.storage.text_columns import Column
from steadyeye.data.annotations.string_columns import Lists, present

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
