"""Columns of Arrow as arrays of numpy, without what pyarrow brings along for that."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """(n,) the values of a column, a view where Arrow holds them in one piece.

    A missing value is NaN.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # to_numpy imports pandas wherever that is installed: a quarter of a second
    if whole.null_count:
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(whole.type):
        bits = np.frombuffer(whole.buffers()[1] or b"", dtype=np.uint8)
        every = np.unpackbits(bits, bitorder="little").view(np.bool_)
        return every[whole.offset : whole.offset + len(whole)]
    return np.from_dlpack(whole)


def list_values(lists: pa.ListArray) -> NDArray[Any]:
    """(m,) the values of all lists of a column, one list after the other."""
    if lists.null_count or not len(lists):
        return numbers(lists.flatten())
    # flatten imports all functions of Arrow: some milliseconds
    ends = numbers(lists.offsets)
    return numbers(lists.values)[ends[0] : ends[-1]]
