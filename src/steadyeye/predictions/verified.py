"""The classes verified in each image as an Arrow column, and back; null: all of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyeye.core.boxes import Verified
from steadyeye.core.types import Labels


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
    lists = table["verified"].combine_chunks()
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    image = np.repeat(np.arange(len(lists), dtype=np.int64), counts)
    label = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    return Verified(image, label, np.asarray(known, dtype=np.bool_))
