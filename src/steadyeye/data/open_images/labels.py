"""The file of image-level labels that people verified, `…-human-imagelabels-boxable.csv`."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.data.open_images.classes import Kinds
from steadyeye.data.open_images.csv_blocks import (
    NO_CLASS,
    TEXT,
    Fault,
    blocks,
    check_columns,
    find_faults,
    number_column,
    numbers,
    refuse,
    unify_columns,
)

NEEDED = ("ImageID", "LabelName", "Confidence")
COLUMNS = {"ImageID": TEXT, "LabelName": TEXT, "Confidence": pa.float64()}
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


def read(path: Path, kinds: Kinds) -> LabelRows:
    """The labels in a file, confidence 1 verified to be there and 0 not to be.

    Raises `UsageError` for a column that is missing and, with how many and the first, for classes
    without description and for other confidences, which a machine gave.
    """
    check_columns(path, NEEDED)
    ids: list[pa.DictionaryArray] = []
    label: list[NDArray[np.int32]] = []
    positive: list[NDArray[np.bool_]] = []
    faults: list[Fault] = []
    rows = 0
    for batch in blocks(path, COLUMNS):
        confidence = numbers(batch, "Confidence")
        ids.append(batch.column("ImageID"))
        label.append(number_column(batch.column("LabelName"), kinds.place))
        positive.append(confidence == 1)
        tests = {NO_CLASS: label[-1] < 0, UNVERIFIED: ~np.isin(confidence, (0, 1))}
        faults += find_faults(batch, NEEDED, rows, tests)
        rows += batch.num_rows
    refuse(path, faults)
    distinct, image = unify_columns(ids)
    if not rows:
        return NOTHING
    return LabelRows(distinct, image, np.concatenate(label), np.concatenate(positive))
