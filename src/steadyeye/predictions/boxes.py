"""Boxes as Arrow columns, a list a row, and back; float64, so that nothing is rounded."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, BoxTable, Detections, areas


def boxes_to_arrow(boxes: Sequence[Boxes], detections: Sequence[Detections]) -> dict[str, Any]:
    """The columns of true boxes and of detections; none for rows without."""
    columns: dict[str, Any] = {}
    if boxes:
        counts = [len(each) for each in boxes]
        columns["box"] = _lists([each.boxes for each in boxes], counts, pa.float64(), 4)
        columns["box_label"] = _lists([each.labels for each in boxes], counts, pa.int32())
        columns["box_crowd"] = _lists([each.crowd for each in boxes], counts, pa.bool_())
        columns["box_area"] = _lists([each.area for each in boxes], counts, pa.float64())
    if detections:
        counts = [len(each) for each in detections]
        columns["found"] = _lists([each.boxes for each in detections], counts, pa.float64(), 4)
        columns["found_label"] = _lists([each.labels for each in detections], counts, pa.int32())
        columns["found_score"] = _lists([each.scores for each in detections], counts, pa.float64())
    return columns


def boxes_from_arrow(table: pa.Table) -> BoxTable | None:
    """The true boxes of a table; None where it has none."""
    if "box" not in table.column_names:
        return None
    image, label = _labels(table, "box_label")
    return BoxTable(
        image,
        label,
        _values(table, "box", np.float64).reshape(-1, 4),
        np.ones(len(image)),
        _values(table, "box_crowd", np.bool_),
        _values(table, "box_area", np.float64),
    )


def detections_from_arrow(table: pa.Table) -> BoxTable | None:
    """The detections of a table; None where it has none."""
    if "found" not in table.column_names:
        return None
    image, label = _labels(table, "found_label")
    corners = _values(table, "found", np.float64).reshape(-1, 4)
    crowd = np.zeros(len(image), dtype=np.bool_)
    score = _values(table, "found_score", np.float64)
    return BoxTable(image, label, corners, score, crowd, areas(corners))


def _lists(parts: Sequence[NDArray[Any]], counts: list[int], kind: Any, width: int = 1) -> Any:
    offsets = np.concatenate([[0], np.cumsum(np.array(counts) * width)]).astype(np.int32)
    flat = np.concatenate([part.ravel() for part in parts])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, kind))


def _labels(table: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = np.diff(table[name].combine_chunks().offsets.to_numpy())
    image = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    return image, _values(table, name, np.int64)


def _values(table: pa.Table, name: str, dtype: type) -> NDArray[Any]:
    flat = table[name].combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False)).astype(dtype)
