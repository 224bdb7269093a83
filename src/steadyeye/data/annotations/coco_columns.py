"""The annotations of a COCO file as columns, where every one of them is as it should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import from_sides
from steadyeye.core.disk_columns import DiskColumn, release_pages, split_entries, split_spans
from steadyeye.core.storage.json_lists import ObjectFile, decode_in_pieces
from steadyeye.data.annotations.sample_columns import BoxColumns, ImageBoxes

PIECE = 50_000
"""Annotations that are grouped together."""


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float | msgspec.UnsetType = msgspec.UNSET
    iscrowd: int = 0
    segmentation: msgspec.Raw = msgspec.Raw(b"")


class _Content(msgspec.Struct):
    images: list[dict[str, Any]]
    categories: list[Any]


class _File(_Content):
    annotations: list[msgspec.Raw]


class _Rest(_Content):
    annotations: str


@dataclass(frozen=True, eq=False)
class Columns:
    """n annotations by their image, and the entries of images and categories.

    `image_ids`: the images with annotations, in the order of their first; `boxes`: those of each,
    which have no labels yet; `category`: (n,) the category id of each box; `used`: the different
    category ids, rising. Repeated annotations are left out: `repeats` of `total`.
    """

    images: Sequence[Mapping[str, Any]]
    categories: Sequence[Any]
    image_ids: Sequence[int | str]
    boxes: ImageBoxes
    category: NDArray[np.int64]
    used: NDArray[np.int64]
    repeats: int
    total: int

    @property
    def largest_area(self) -> float:
        """In square pixels; 0 without annotations."""
        area = self.boxes.columns.area
        return max((float(area[part].max()) for part in split_entries(len(area))), default=0.0)

    def label(self, position: Mapping[int, int]) -> ImageBoxes:
        """The boxes of the images with annotations; `position`: the label of each category id."""
        table = np.array([position[number] for number in self.used.tolist()], dtype=np.int32)
        labels = DiskColumn(np.int32)
        for part in split_entries(len(self.category)):
            labels.append(table[np.searchsorted(self.used, self.category[part])])
        return replace(self.boxes, columns=replace(self.boxes.columns, labels=labels.array()))


class _Entries:
    """The annotations of a file in its order, as columns.

    `image_ids`: image id → its number, by first occurrence.
    """

    def __init__(self) -> None:
        self.image_ids: dict[int | str, int] = {}
        self.image, self.category = DiskColumn(np.int64), DiskColumn(np.int64)
        self.sides, self.area = DiskColumn(np.float64, 4), DiskColumn(np.float64)
        self.crowd = DiskColumn(np.int64)
        self.masks, self.mask_sizes = DiskColumn(np.uint8), DiskColumn(np.int64)

    def append(self, entries: Sequence[_Annotation]) -> None:
        """Adds the next ones. Raises `ValueError` for a number that is out of its range."""
        for entry in entries:
            self.image_ids.setdefault(entry.image_id, len(self.image_ids))
        n, known = len(entries), self.image_ids
        sides = chain.from_iterable(entry.bbox for entry in entries)
        areas = (np.nan if isinstance(e.area, msgspec.UnsetType) else e.area for e in entries)
        masks = [bytes(entry.segmentation) for entry in entries]
        parts: tuple[tuple[DiskColumn, NDArray[Any]], ...] = (
            (self.image, np.fromiter((known[entry.image_id] for entry in entries), np.int64, n)),
            (self.category, np.fromiter((entry.category_id for entry in entries), np.int64, n)),
            (self.sides, np.fromiter(sides, np.float64, 4 * n).reshape(-1, 4)),
            (self.area, np.fromiter(areas, np.float64, n)),
            (self.crowd, np.fromiter((entry.iscrowd for entry in entries), np.int64, n)),
            (self.masks, np.frombuffer(b"".join(masks), np.uint8)),
            (self.mask_sizes, np.fromiter(map(len, masks), np.int64, n)),
        )
        (_, sides_part), (_, area), (_, crowd) = parts[2:5]
        with np.errstate(invalid="ignore"):
            is_odd = (sides_part[:, 2:] < 0).any() or not np.isfinite(from_sides(sides_part)).all()
        if is_odd or (area < 0).any() or not np.isin(crowd, (0, 1)).all():
            raise ValueError("a box, an area or a mark of a crowd that is none")
        for column, part in parts:
            column.append(part)


def read(path: Path) -> Columns | None:
    """The columns of a file of this machine; None as `parse` says, or where it is to be read whole.

    The file is never held as a whole.
    """
    try:
        file, entries = ObjectFile(path, "annotations"), _Entries()
        for piece in file.decode(_Annotation):
            entries.append(piece)
        rest = msgspec.json.decode(file.rest, type=_Rest)
        is_own = rest.annotations == file.list_mark
        return _group_by_image(entries, rest) if is_own and entries.image_ids else None
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, OSError):
        return None


def parse(text: str) -> Columns | None:
    """The columns of a file; None where anything in it needs a closer look or has no box."""
    try:
        content = msgspec.json.decode(text, type=_File)
        entries = _Entries()
        for piece in decode_in_pieces(content.annotations, _Annotation):
            entries.append(piece)
        return _group_by_image(entries, content) if entries.image_ids else None
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _group_by_image(entries: _Entries, content: _Content) -> Columns:
    """The annotations by image, each once."""
    image, category, crowd = (
        column.array() for column in (entries.image, entries.category, entries.crowd)
    )
    sides, area = entries.sides.array(), entries.area.array()
    masks = _Masks(entries.masks.array(), np.append(0, np.cumsum(entries.mask_sizes.array())))
    order = None if (image[1:] >= image[:-1]).all() else np.argsort(image, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(image, minlength=len(entries.image_ids))))
    release_pages()
    boxes, categories = BoxColumns(), DiskColumn(np.int64)
    used: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    for begin, end in split_spans(bounds, PIECE):
        span = slice(bounds[begin], bounds[end])
        rows = np.arange(span.start, span.stop) if order is None else order[span]
        columns = (image[rows], category[rows], *sides[rows].T, crowd[rows])
        rows = rows[~_find_repeats(columns, rows, masks)]
        corners, own = from_sides(sides[rows]), area[rows]
        boxes.append(
            np.bincount(image[rows] - begin, minlength=end - begin),
            boxes=corners,
            labels=np.zeros(len(rows)),
            crowd=crowd[rows] == 1,
            area=np.where(np.isnan(own), np.prod(corners[:, 2:] - corners[:, :2], axis=1), own),
        )
        categories.append(category[rows])
        used = np.union1d(used, category[rows])
    joined, total = boxes.join(), len(image)
    return Columns(
        content.images,
        content.categories,
        list(entries.image_ids),
        joined,
        categories.array(),
        used,
        total - len(joined.columns),
        total,
    )


@dataclass(frozen=True, eq=False)
class _Masks:
    """The encoded mask of each annotation; that of i is from `ends[i]` to `ends[i + 1]`."""

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def read(self, row: int) -> bytes:
        """The JSON of a mask without blanks, so that equal masks are equal bytes."""
        mask = self.content[self.ends[row] : self.ends[row + 1]].tobytes()
        return msgspec.json.encode(msgspec.json.decode(mask)) if mask else b"null"


def _find_repeats(
    columns: Sequence[NDArray[Any]], rows: NDArray[np.int64], masks: _Masks
) -> NDArray[np.bool_]:
    """(n,) whether an earlier one has the same image, class, box, crowd and mask.

    `columns`: all but the mask of some annotations; `rows`: which those are.
    """
    order = np.lexsort(columns)  # stable: of the same ones the first comes first
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    is_repeat = np.zeros(len(rows), dtype=np.bool_)
    earlier: set[bytes] = set()
    previous = -2
    for place in np.flatnonzero(same).tolist():
        first, second = order[place], order[place + 1]
        if place != previous + 1:
            earlier = {masks.read(rows[first])}
        mask = masks.read(rows[second])
        is_repeat[second] = mask in earlier
        earlier.add(mask)
        previous = place
    return is_repeat
