"""Boxes as Arrow columns, a list a row, and back; float64, so that nothing is rounded."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, BoxTable, Detections, areas
from steadyeye.predictions.arrow_arrays import list_values, numbers


def boxes_to_arrow(
    boxes: Sequence[Boxes], detections: Sequence[Detections], said: Sequence[Detections] = ()
) -> dict[str, Any]:
    """The columns of true boxes and of detections; none for rows without.

    `detections`: over the data's classes; `said`: all, over the detector's own.
    """
    columns: dict[str, Any] = {}
    if boxes:
        counts = [len(each) for each in boxes]
        columns["box"] = _lists([each.boxes for each in boxes], counts, pa.float64(), 4)
        columns["box_label"] = _lists([each.labels for each in boxes], counts, pa.int32())
        columns["box_crowd"] = _lists([each.crowd for each in boxes], counts, pa.bool_())
        columns["box_area"] = _lists([each.area for each in boxes], counts, pa.float64())
    for name, found in (("found", detections), ("said", said)):
        if found:
            counts = [len(each) for each in found]
            columns[name] = _lists([each.boxes for each in found], counts, pa.float64(), 4)
            columns[f"{name}_label"] = _lists([each.labels for each in found], counts, pa.int32())
            columns[f"{name}_score"] = _lists([each.scores for each in found], counts, pa.float64())
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
    """The detections of a table over the data's classes; None where it has none."""
    return _detections(table, "found")


def said_from_arrow(table: pa.Table) -> BoxTable | None:
    """All detections of a table over the detector's own classes; None where they were not kept."""
    return _detections(table, "said")


def in_all(shards: Sequence[pa.Table]) -> list[pa.Table]:
    """The shards of a cell, without what is said where some of them do not have it.

    A cell that an earlier version began and this one completed has shards of both kinds.
    """
    if all("said" in shard.column_names for shard in shards):
        return list(shards)
    extra = {"said", "said_label", "said_score"}
    return [shard.drop_columns(sorted(extra & set(shard.column_names))) for shard in shards]


def _detections(table: pa.Table, name: str) -> BoxTable | None:
    if name not in table.column_names:
        return None
    image, label = _labels(table, f"{name}_label")
    corners = _values(table, name, np.float64).reshape(-1, 4)
    crowd = np.zeros(len(image), dtype=np.bool_)
    score = _values(table, f"{name}_score", np.float64)
    return BoxTable(image, label, corners, score, crowd, areas(corners))


def _lists(parts: Sequence[NDArray[Any]], counts: list[int], kind: Any, width: int = 1) -> Any:
    offsets = np.concatenate([[0], np.cumsum(np.array(counts) * width)]).astype(np.int32)
    flat = np.concatenate([part.ravel() for part in parts])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat, kind))


def _labels(table: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = np.diff(numbers(table[name].combine_chunks().offsets))
    image = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    return image, _values(table, name, np.int64)


def _values(table: pa.Table, name: str, dtype: type) -> NDArray[Any]:
    return list_values(table[name].combine_chunks()).astype(dtype)
