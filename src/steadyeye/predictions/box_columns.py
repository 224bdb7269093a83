"""The boxes of shards as tables, copied shard by shard to keep no file in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, areas
from steadyeye.core.disk_columns import DiskColumn, split_entries
from steadyeye.predictions.schema import list_values, numbers

TRUE, OF_DATA, OF_MODEL = "box", "found", "said"
"""Prefixes of the columns: true boxes, detections over the data's and the model's classes."""

KINDS = (TRUE, OF_DATA, OF_MODEL)

Parts = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class CellBoxes:
    """All boxes of a cell; None for kinds that its shards do not have.

    `detections`: over the classes of the data, `raw_detections`: over the detector's own. Columns
    in which they are equal are the same array.
    """

    truth: BoxTable | None
    detections: BoxTable | None
    raw_detections: BoxTable | None


def split_boxes(shards: Iterable[pa.Table]) -> tuple[pa.Table, CellBoxes]:
    """The columns of shards that are not of boxes, as one table, and the boxes.

    `shards`: of one cell, all with the same kinds of boxes, or without the model's own; read one
    after the other, since a mapped file takes memory until it is released.
    """
    columns: dict[str, dict[str, DiskColumn]] = {}
    equal: set[str] = set()
    rest: list[pa.Table] = []
    rows = 0
    for shard in shards:
        if not rest:
            columns = {k: _create_columns(shard, k) for k in KINDS if k in shard.column_names}
            equal = set(columns[OF_MODEL]) if {OF_DATA, OF_MODEL} <= set(columns) else set()
        elif OF_MODEL in columns and OF_MODEL not in shard.column_names:
            # an earlier version wrote it, and in some shards it is missing
            del columns[OF_MODEL]
            equal = set()
        parts = {name: _read_parts(shard, name, rows) for name in columns}
        unequal = {n for n in equal if not np.array_equal(parts[OF_DATA][n], parts[OF_MODEL][n])}
        equal -= unequal
        for name in unequal:
            columns[OF_MODEL][name].append(columns[OF_DATA][name].array())
        for kind, part in parts.items():
            for name in columns[kind].keys() - (equal if kind == OF_MODEL else set()):
                columns[kind][name].append(part[name])
        rows += len(shard)
        of_boxes = [name for name in shard.column_names if name.partition("_")[0] in KINDS]
        rest.append(_copy(shard.drop_columns(of_boxes)))
    arrays = {kind: {name: own[name].array() for name in own} for kind, own in columns.items()}
    for name in equal:
        arrays[OF_MODEL][name] = arrays[OF_DATA][name]
    tables = {kind: _make_table(own) for kind, own in arrays.items()}
    # a shard whose images all failed lacks the measured tags
    joined = pa.concat_tables(rest, promote_options="default")
    return joined, CellBoxes(tables.get(TRUE), tables.get(OF_DATA), tables.get(OF_MODEL))


def _create_columns(shard: pa.Table, name: str) -> dict[str, DiskColumn]:
    """The columns of `BoxTable` that a kind of boxes has in a file, by name, empty."""
    columns = {
        "image": DiskColumn(np.int64),
        "label": DiskColumn(np.int64),
        "boxes": DiskColumn(np.float64, 4),
        "area": DiskColumn(np.float64),
    }
    own = DiskColumn(np.bool_) if name == TRUE else DiskColumn(np.float64)
    columns["crowd" if name == TRUE else "score"] = own
    if f"{name}_track" in shard.column_names:
        columns["track"] = DiskColumn(np.int64)
    return columns


def _make_table(columns: Mapping[str, NDArray[Any]]) -> BoxTable:
    """The boxes as a table; in a file true boxes have no score, and detections no crowd flag."""
    n = len(columns["image"])
    if "score" in columns:
        return BoxTable(**{**columns, "crowd": np.zeros(n, np.bool_)})
    score = DiskColumn(np.float64)
    for part in split_entries(n):
        score.append(np.ones(part.stop - part.start))
    return BoxTable(**{**columns, "score": score.array()})


def _read_parts(shard: pa.Table, name: str, first: int) -> Parts:
    """The columns of a shard's boxes; `first`: the number of its first image."""
    counts = np.diff(numbers(shard[f"{name}_label"].combine_chunks().offsets))
    boxes = _values(shard, name).reshape(-1, 4)
    parts = {
        "image": np.repeat(np.arange(first, first + len(counts), dtype=np.int64), counts),
        "label": _values(shard, f"{name}_label"),
        "boxes": boxes,
        "area": _values(shard, f"{name}_area") if name == TRUE else areas(boxes),
    }
    own = ("crowd", "track", "score")
    return parts | {
        column: _values(shard, f"{name}_{column}")
        for column in own
        if f"{name}_{column}" in shard.column_names
    }


def _values(shard: pa.Table, name: str) -> NDArray[Any]:
    return list_values(shard[name].combine_chunks())


def _copy(table: pa.Table) -> pa.Table:
    """A copy of a table in its own memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    # the stream has room for up to twice as much
    return pa.ipc.open_stream(sink.getvalue().to_pybytes()).read_all()
