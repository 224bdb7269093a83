"""The files of boxes and of labels that people verified, as columns.

`…-annotations-bbox.csv` and `…-human-imagelabels-boxable.csv`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.data.open_images.classes import Kinds
from steadyeye.data.open_images.csv_blocks import (
    NO_CLASS,
    TEXT,
    Fault,
    blocks,
    check_columns,
    find_faults,
    header,
    number_column,
    numbers,
    refuse,
    unify_columns,
)

SIDES = ("XMin", "YMin", "XMax", "YMax")
NEEDED = ("ImageID", "LabelName", *SIDES, "IsGroupOf")
SIZE = ("Height", "Width")
COLUMNS = {
    "ImageID": TEXT,
    "LabelName": TEXT,
    **dict.fromkeys(SIDES, pa.float64()),
    "IsGroupOf": pa.int8(),
    "IsDepiction": pa.int8(),
    **dict.fromkeys(SIZE, pa.float64()),
}


STEP = 1 << 16
"""Rows that are searched for repeats at once."""
FACTORS = np.random.default_rng(0).integers(0, 2**63, 7, dtype=np.uint64) * 2 + 1


@dataclass(frozen=True, eq=False)
class BoxRows:
    """The boxes of a file, n rows, grouped by image; m images.

    `ids`: (m,) the images in the order of their first rows. `image`: (n,) int32, rising. `label`:
    (n,) int32. `shares`: (n, 4) float64 x0 y0 x1 y1, 0…1 of the image's sides. `crowd`: (n,) bool.
    `sizes`: (m, 2) int32 height and width, if the file has them. `depictions`, `unjudged`: number
    of boxes of drawings and the like, and of boxes that are not judged for groups. `repeats`:
    number of further rows that repeat an earlier one.
    """

    ids: pa.StringArray
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    shares: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    sizes: NDArray[np.int32] | None
    depictions: int
    unjudged: int
    repeats: int = 0


@dataclass(frozen=True, eq=False)
class _Block:
    """As `BoxRows`, of one block; `size`: (n, 2) of each row's image."""

    ids: pa.DictionaryArray
    label: NDArray[np.int32]
    shares: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    size: NDArray[np.int32]
    depictions: int
    unjudged: int


def read_boxes(path: Path, kinds: Kinds) -> BoxRows:
    """The boxes in a file.

    `IsGroupOf` makes a crowd. Raises `UsageError` for a column that is missing and, with how many
    and the first, for classes without description and boxes outside 0…1 or inverted.
    """
    check_columns(path, NEEDED)
    sized = all(name in header(path) for name in SIZE)
    blocks_: list[_Block] = []
    faults: list[Fault] = []
    rows = 0
    for batch in blocks(path, COLUMNS):
        block, wrong = _block(batch, kinds, rows, sized)
        blocks_.append(block)
        faults += wrong
        rows += batch.num_rows
    refuse(path, faults)
    if not rows:
        raise UsageError(f"'{path}' holds no box; check the path")
    return _join_blocks(blocks_, sized)


def _block(
    batch: pa.RecordBatch, kinds: Kinds, before: int, sized: bool
) -> tuple[_Block, list[Fault]]:
    label = number_column(batch.column("LabelName"), kinds.place)
    shares = np.stack([numbers(batch, side) for side in SIDES], axis=1)
    group = numbers(batch, "IsGroupOf")
    depiction = numbers(batch, "IsDepiction") if "IsDepiction" in batch.schema.names else None
    size = np.zeros((batch.num_rows, 2), dtype=np.int32)
    if sized:
        size = np.nan_to_num(np.stack([numbers(batch, side) for side in SIZE], axis=1))
    block = _Block(
        batch.column("ImageID"),
        label,
        shares,
        group == 1,
        size.astype(np.int32) if sized else size[:0],
        0 if depiction is None else int((depiction == 1).sum()),
        int((group != 1).sum() - (group == 0).sum()),
    )
    low, high = shares[:, :2], shares[:, 2:]
    # written so that NaN is a fault too
    bad = np.asarray(~((low >= 0) & (low <= high) & (high <= 1)).all(axis=1))
    tests = {NO_CLASS: label < 0, "with a box outside 0…1 or inverted": bad}
    return block, find_faults(batch, ("ImageID", "LabelName", *SIDES), before, tests)


def _join_blocks(parts: Sequence[_Block], sized: bool) -> BoxRows:
    ids, image = unify_columns([block.ids for block in parts])
    sizes = np.zeros((len(ids), 2), dtype=np.int32) if sized else None
    if sizes is not None:
        sizes[image] = np.concatenate([block.size for block in parts])
    rows = BoxRows(
        ids,
        image,
        np.concatenate([block.label for block in parts]),
        np.concatenate([block.shares for block in parts]),
        np.concatenate([block.crowd for block in parts]),
        sizes,
        sum(block.depictions for block in parts),
        sum(block.unjudged for block in parts),
    )
    is_grouped = (np.diff(image) >= 0).all()
    return _drop_repeats(rows if is_grouped else _take(rows, np.argsort(image, kind="stable")))


def _drop_repeats(rows: BoxRows) -> BoxRows:
    """The rows without repeats of image, class, box and kind."""
    is_repeat = np.zeros(len(rows.label), dtype=np.bool_)
    ends = [*np.unique(np.searchsorted(rows.image, rows.image[::STEP])).tolist(), len(is_repeat)]
    for start, stop in pairwise(ends):
        is_repeat[start:stop] = _find_repeats(rows, slice(start, stop))
    if not is_repeat.any():
        return rows
    return replace(_take(rows, ~is_repeat), repeats=int(is_repeat.sum()))


def _find_repeats(rows: BoxRows, part: slice) -> NDArray[np.bool_]:
    """Which rows of a part, which has all rows of its images, repeat an earlier one."""
    columns = (rows.image[part], rows.label[part], rows.crowd[part], rows.shares[part] + 0.0)
    words = np.column_stack(columns).view(np.uint64)
    # whole rows are compared where their sums are the same, which is fast to find
    sums = (words * FACTORS).sum(axis=1, dtype=np.uint64)
    order = np.argsort(sums, kind="stable")
    same = sums[order[1:]] == sums[order[:-1]]
    alike = np.sort(order[np.append(same, False) | np.append(False, same)])
    _, first = np.unique(words[alike], axis=0, return_index=True)
    is_repeat = np.zeros(len(words), dtype=np.bool_)
    is_repeat[np.delete(alike, first)] = True
    return is_repeat


def _take(rows: BoxRows, places: NDArray[np.bool_ | np.intp]) -> BoxRows:
    """Some of the boxes, or all in another order."""
    columns = {name: getattr(rows, name)[places] for name in ("image", "label", "crowd", "shares")}
    return replace(rows, **columns)


LABEL_NEEDED = ("ImageID", "LabelName", "Confidence")
LABEL_COLUMNS = {"ImageID": TEXT, "LabelName": TEXT, "Confidence": pa.float64()}
UNVERIFIED = "with a confidence other than 0 and 1, not verified by people"


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Verified labels, n rows in any order: class `label` is in image `image` or is not.

    `ids`: (m,) the images in the order of their first rows. `image`, `label`: (n,) int32.
    `positive`: (n,) bool.
    """

    ids: pa.StringArray
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    positive: NDArray[np.bool_]


NOTHING = LabelRows(
    pa.array([], pa.string()),
    np.zeros(0, dtype=np.int32),
    np.zeros(0, dtype=np.int32),
    np.zeros(0, dtype=np.bool_),
)


def read_labels(path: Path, kinds: Kinds) -> LabelRows:
    """The labels in a file, confidence 1 verified to be there and 0 not to be.

    Raises `UsageError` for a column that is missing and, with how many and the first, for classes
    without description and for other confidences, which a machine gave.
    """
    check_columns(path, LABEL_NEEDED)
    ids: list[pa.DictionaryArray] = []
    label: list[NDArray[np.int32]] = []
    positive: list[NDArray[np.bool_]] = []
    faults: list[Fault] = []
    rows = 0
    for batch in blocks(path, LABEL_COLUMNS):
        confidence = numbers(batch, "Confidence")
        ids.append(batch.column("ImageID"))
        label.append(number_column(batch.column("LabelName"), kinds.place))
        positive.append(confidence == 1)
        tests = {NO_CLASS: label[-1] < 0, UNVERIFIED: ~np.isin(confidence, (0, 1))}
        faults += find_faults(batch, LABEL_NEEDED, rows, tests)
        rows += batch.num_rows
    refuse(path, faults)
    distinct, image = unify_columns(ids)
    if not rows:
        return NOTHING
    return LabelRows(distinct, image, np.concatenate(label), np.concatenate(positive))
