"""The classes verified in each image as an Arrow column, and back; null: all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from steadyeye.core.boxes import Verified
from steadyeye.core.types import Labels
from steadyeye.predictions.arrow_arrays import numbers


def verified_to_arrow(verified: Sequence[Labels | None]) -> dict[str, Any]:
    """The column of the verified classes of rows; none for a source that never lists any."""
    if not verified:
        return {}
    lists = [None if labels is None else sorted(set(labels)) for labels in verified]
    return {"verified": pa.array(lists, pa.list_(pa.int32()))}


def verified_from_arrow(table: pa.Table) -> Verified | None:
    """What was verified in the images of a table; None where it has no such column."""
    if "verified" not in table.column_names:
        return None
    # only for such tables: importing it takes some milliseconds
    import pyarrow.compute as pc

    lists = table["verified"].combine_chunks()
    counts = numbers(pc.fill_null(pc.list_value_length(lists), 0))
    image = np.repeat(np.arange(len(lists), dtype=np.int64), counts)
    label = numbers(lists.flatten()).astype(np.int64)
    known = numbers(lists.is_valid())
    return Verified(image, label, np.asarray(known, dtype=np.bool_))
