"""The rows of predictions as tables for other tools: Arrow, Parquet, CSV.

Classes are names, unknown values are null. Any library that reads Arrow's C stream can use the
table: pandas, polars, DuckDB, Hugging Face `datasets`.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import PROJECTIONS, Predictions
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.text_files import encode_csv

SIDES = ("x0", "y0", "x1", "y1")


def build_table(predictions: Predictions) -> pa.Table:
    """An Arrow table with one row per sample, in the source's order.

    `model`, `data`, `id`; `set`: the pm-set of the sample, or null; `labels`: names, null without
    labels; `predicted`: a name, for a detector the class of its most confident box, null if the
    sample failed; `confidence`; `right`: null without labels; `rank` (0: first) and `probability`
    of the true class, null if the scores are no probabilities; `error`; then the tags of the
    samples: a tag with the name of another column has the prefix `tag_`. For a detector also
    `detections` and `boxes`, lists of `label`, `x0`, `y0`, `x1`, `y1` in pixels and `score` or
    `crowd`; the label of an object outside the classes is null, that of a detection of a class that
    the data do not have is the detector's own name. The metadata of the schema contain versions,
    commit and notes.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> table = build_table(example_predictions(margin=0.5))
        >>> table.num_rows, table.column_names[:6]
        (60, ['model', 'data', 'id', 'set', 'labels', 'predicted'])
        >>> table.slice(2, 1).select(["labels", "predicted", "right"]).to_pylist()
        [{'labels': ['dog'], 'predicted': 'dog', 'right': True}]
    """
    p, failed = predictions, ~predictions.valid
    unlabelled = ~p.has_label
    columns: dict[str, pa.Array] = {
        "model": _repeat(p.model, len(p)),
        "data": _repeat(p.data, len(p)),
        "id": pa.array(p.ids.tolist(), pa.string()),
        "set": pa.array(p.groups.tolist(), pa.string(), mask=p.groups == ""),
        "labels": _name_labels(p),
        "predicted": pa.array([p.answer(i) for i in range(len(p))], pa.string(), mask=failed),
        "confidence": _floats(p.confidence),
        "right": pa.array(p.right, mask=unlabelled | failed),
        "rank": pa.array(p.rank, mask=p.rank < 0),
        "probability": _floats(np.where(p.has_probabilities, p.probability, np.float32(np.nan))),
        "error": pa.array(p.errors.tolist(), pa.string(), mask=p.valid),
    }
    if p.detections is not None:
        columns["detections"] = _list_detections(p, p.detections)
    if p.boxes is not None:
        columns["boxes"] = _list_boxes(p.boxes, p.classes, len(p), "crowd")
    for name, values in p.tags.items():
        if name == PROJECTIONS:
            continue
        columns[f"tag_{name}" if name in columns else name] = _column(values)
    about = {"provenance": provenance(), "notes": list(p.notes)}
    return pa.table(columns, metadata={"steadyeye": json.dumps(about, ensure_ascii=False)})


def _repeat(text: str, n: int) -> pa.Array:
    return pa.array([text] * n, pa.string())


def _floats(values: NDArray[np.floating]) -> pa.Array:
    return pa.array(values, pa.float32(), mask=np.isnan(values))


def _column(values: NDArray[np.generic]) -> pa.Array:
    if values.ndim > 1:
        return pa.array(values.tolist())
    missing = np.isnan(values) if np.issubdtype(values.dtype, np.floating) else None
    return pa.array(values.tolist() if values.dtype.kind == "U" else values, mask=missing)


def _name_labels(p: Predictions) -> pa.Array:
    row, label = np.nonzero(p.truth)
    starts = np.searchsorted(row, np.arange(len(p) + 1)).astype(np.int32)
    names = pa.array(p.classes, pa.string()).take(pa.array(label))
    return _lists(starts, names, ~p.has_label)


def _list_detections(p: Predictions, of_data_classes: BoxTable) -> pa.Array:
    """All detections, if they are stored, otherwise those of the data's classes."""
    raw, own = p.raw_detections, p.model_to_data_class
    if raw is None or own is None:
        return _list_boxes(of_data_classes, p.classes, len(p), "score")
    names = [
        p.classes[data_class] if data_class >= 0 else name
        for name, data_class in zip(p.model_classes, own.tolist(), strict=True)
    ]
    return _list_boxes(raw, names, len(p), "score")


def _list_boxes(boxes: BoxTable, classes: Sequence[str], n: int, last: str) -> pa.Array:
    """The boxes of each of n images as structures, in their order."""
    order = np.argsort(boxes.image, kind="stable")
    starts = np.searchsorted(boxes.image[order], np.arange(n + 1)).astype(np.int32)
    label = boxes.label[order]
    names = pa.array(classes, pa.string()).take(pa.array(label, mask=label == OOD))
    sides = [pa.array(boxes.boxes[order, side]) for side in range(4)]
    more = pa.array(boxes.score[order] if last == "score" else boxes.crowd[order])
    values = pa.StructArray.from_arrays([names, *sides, more], ["label", *SIDES, last])
    return _lists(starts, values, np.zeros(n, dtype=np.bool_))


def _lists(starts: NDArray[np.int32], values: pa.Array, missing: NDArray[np.bool_]) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(starts), values, mask=pa.array(missing))


def encode_rows(table: pa.Table, suffix: str) -> bytes:
    """A table as a file: `.parquet`, `.arrow` (a file of Arrow, Feather V2) or `.csv`.

    In CSV, labels are separated by `|`, boxes are JSON, and a text that a spreadsheet would read as
    a formula gets a leading apostrophe. Raises `UsageError` for another suffix.
    """
    if suffix not in ENCODERS:
        raise UsageError(f"cannot write rows as '{suffix}'; known: {', '.join(ENCODERS)}")
    return ENCODERS[suffix](table)


def _encode_parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq  # imported here, because nothing else in a run needs it

    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _encode_arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _encode_csv(table: pa.Table) -> bytes:
    rows = (
        map(_encode_cell, row)
        for batch in table.to_batches(max_chunksize=10_000)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    return encode_csv([table.column_names, *rows]).encode()


def _encode_cell(value: object) -> object:
    if not isinstance(value, list):
        return value
    if all(isinstance(entry, str) for entry in value):
        return "|".join(value)
    return json.dumps(value, ensure_ascii=False)


ENCODERS: Mapping[str, Callable[[pa.Table], bytes]] = MappingProxyType(
    {".parquet": _encode_parquet, ".arrow": _encode_arrow, ".csv": _encode_csv}
)


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several models and data with all their columns; null for missing ones.

    Raises `UsageError` if a column is a text in one and a number in another.
    """
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise UsageError(
            f"the rows of these runs do not fit into one table: {error}; write one file per run"
        ) from error
