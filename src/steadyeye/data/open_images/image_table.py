"""Boxes and verified labels of images side by side, as columns."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.text_columns import Texts
from steadyeye.data.annotations.sample_columns import present
from steadyeye.data.open_images.annotation_files import BoxRows, LabelRows


@dataclass(frozen=True, eq=False)
class ImageTable:
    """m images in the order of the files, with n boxes and the verified classes of each.

    `ids`: (m,). `first`: (m + 1,) int64, the boxes of image i are first[i] … first[i + 1]. `label`,
    `shares`, `crowd`: (n,), (n, 4), (n,) as in `BoxRows`. `sizes`: (m, 2) int32 or None. `starts`:
    (m + 1,) int64, the same for `verified_label` and `verified_positive`, the verified labels.
    """

    ids: pa.StringArray
    first: NDArray[np.int64]
    label: NDArray[np.int32]
    shares: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    sizes: NDArray[np.int32] | None
    starts: NDArray[np.int64]
    verified_label: NDArray[np.int32]
    verified_positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with any image, box or label, or their order; not with other columns."""
        arrays = (self.first, self.label, self.shares, self.crowd)
        verified = (self.starts, self.verified_label, self.verified_positive)
        sizes = () if self.sizes is None else (self.sizes,)
        digest = hashlib.sha256()
        for text in Texts(self.ids):
            digest.update(text.encode() + b"\n")
        columns = (np.ascontiguousarray(column) for column in (*arrays, *verified, *sizes))
        marks = [hashlib.sha256(column.data).hexdigest() for column in columns]
        return fingerprint(digest.hexdigest(), *marks)

    @cached_property
    def present(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(m + 1,) where the classes in an image begin, and those, rising; crowds aside."""
        return present(self.first, self.label, ~self.crowd)


def join_tables(boxes: BoxRows, labels: LabelRows) -> ImageTable:
    """The images with boxes, then those with verified labels only."""
    old = len(boxes.ids)
    place = pc.index_in(labels.ids, value_set=boxes.ids)
    fresh = np.asarray(pc.is_null(place).to_numpy(zero_copy_only=False))
    place = np.asarray(pc.fill_null(place, 0).to_numpy(zero_copy_only=False)).astype(np.int64)
    place[fresh] = old + np.arange(fresh.sum())
    ids = pa.concat_arrays([boxes.ids, labels.ids.filter(pa.array(fresh))])
    image = place[labels.image]
    order = np.argsort(image, kind="stable")
    sizes = boxes.sizes
    if sizes is not None:
        sizes = np.concatenate([sizes, np.zeros((len(ids) - old, 2), dtype=np.int32)])
    return ImageTable(
        ids,
        _starts(boxes.image, len(ids)),
        boxes.label,
        boxes.shares,
        boxes.crowd,
        sizes,
        _starts(image, len(ids)),
        labels.label[order],
        labels.positive[order],
    )


def select_images(table: ImageTable, images: NDArray[np.bool_]) -> ImageTable:
    """Only some of the images, (m,) bool."""
    boxes = np.repeat(images, np.diff(table.first))
    rows_ = np.repeat(images, np.diff(table.starts))
    return ImageTable(
        table.ids.filter(pa.array(images)),
        _sums(np.diff(table.first)[images]),
        table.label[boxes],
        table.shares[boxes],
        table.crowd[boxes],
        None if table.sizes is None else table.sizes[images],
        _sums(np.diff(table.starts)[images]),
        table.verified_label[rows_],
        table.verified_positive[rows_],
    )


def _starts(image: NDArray[Any], images: int) -> NDArray[np.int64]:
    return _sums(np.bincount(image, minlength=images))


def _sums(counts: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
