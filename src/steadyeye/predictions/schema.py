"""The columns of a shard: predictions as an Arrow table, and back.

Boxes are lists, one per row, in float64, so that nothing is rounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from steadyeye.core.boxes import Boxes, BoxTable, Verified
from steadyeye.core.disk_columns import DiskColumn
from steadyeye.core.types import Labels, Tag

TOP = 5  # the model's own best classes stored for the pictures
PIECE = 4096  # rows whose labels are read together

ANSWERS = {
    "predicted": pa.int32(),
    "confidence": pa.float32(),
    "rank": pa.int32(),
    "probability": pa.float32(),
    "softmax": pa.float32(),
    "least": pa.float32(),
}
"""Values derived from the scores of a row, also stored if the scores are not.

The first four are among the classes that compete. `softmax`: of the model's own best class over all
its own classes, in case its scores are logits; `least`: the lowest of its own scores, which shows
whether they are.
"""

NUMBERS = {
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string()}


@dataclass(frozen=True, eq=False)
class Rows:
    """The predictions of consecutive samples, n rows.

    `ids`, `groups`, `truths`, `tags`, `errors`: one entry per row; '' for no error. `scores`: (n,
    classes) float32, or (n, 0) if only the answers are stored. `answers`: (n,) arrays, one for each
    name of `ANSWERS`. `top`, `top_scores`: (n, m) the model's own best classes. Of detectors
    `boxes`: the true boxes, one entry per row; `sizes`: (height, width) of each image, (0, 0) if
    unknown; and as tables, row by row: `detections`, `left_out`: those of a class that the data has
    no class for, `raw_detections`: all, over the detector's own classes as `left_out` is.
    `verified`: the classes verified in each image, of a source that lists them.
    """

    ids: Sequence[str]
    groups: Sequence[str]
    truths: Sequence[Labels]
    tags: Sequence[dict[str, Tag]]
    errors: Sequence[str]
    scores: NDArray[np.float32]
    answers: Mapping[str, NDArray[Any]]
    top: NDArray[np.int32]
    top_scores: NDArray[np.float32]
    boxes: Sequence[Boxes] = ()
    detections: BoxTable | None = None
    sizes: Sequence[tuple[int, int]] = ()
    left_out: BoxTable | None = None
    raw_detections: BoxTable | None = None
    verified: Sequence[Labels | None] = ()


def to_arrow(rows: Rows) -> pa.Table:
    """The Arrow table of a shard: id, group, truth, error, scores, answers, top and the tags."""
    columns: dict[str, Any] = {
        "id": encode_texts(rows.ids),
        "group": encode_texts(rows.groups),
        "truth": _encode_labels(rows.truths),
        "error": encode_texts(rows.errors),
        "scores": _matrix(rows.scores, pa.float32()),
        **{name: encode_numbers(rows.answers[name], kind) for name, kind in ANSWERS.items()},
        "top": _matrix(rows.top, pa.int32()),
        "top_scores": _matrix(rows.top_scores, pa.float32()),
    }
    columns |= _encode_boxes(rows)
    # the row of a failed image lacks measured tags
    for name in dict.fromkeys(name for tags in rows.tags for name in tags):
        columns[f"tag:{name}"] = _tag([tags.get(name) for tags in rows.tags])
    return pa.table(columns)


def _encode_boxes(rows: Rows) -> dict[str, Any]:
    """The columns of boxes, sizes and verified classes; none for rows without them."""
    columns: dict[str, Any] = {}
    if rows.boxes:
        boxes, counts = rows.boxes, [len(truth) for truth in rows.boxes]
        columns["box"] = _lists([truth.boxes for truth in boxes], counts, pa.float64(), 4)
        columns["box_label"] = _lists([truth.labels for truth in boxes], counts, pa.int32())
        columns["box_crowd"] = _lists([truth.crowd for truth in boxes], counts, pa.bool_())
        columns["box_area"] = _lists([truth.area for truth in boxes], counts, pa.float64())
        tracks = [truth.track for truth in boxes if truth.track is not None]
        if len(tracks) == len(boxes):
            columns["box_track"] = _lists(tracks, counts, pa.int64())
    for name, table in (("found", rows.detections), ("said", rows.raw_detections)):
        if table is not None:
            sizes = _count_boxes(table, rows)
            columns[name] = _lists([table.boxes], sizes, pa.float64(), 4)
            columns[f"{name}_label"] = _lists([table.label], sizes, pa.int32())
            columns[f"{name}_score"] = _lists([table.score], sizes, pa.float64())
    if rows.sizes:
        columns["size"] = _matrix(np.array(rows.sizes, dtype=np.int32), pa.int32())
    if rows.left_out is not None:
        sizes = _count_boxes(rows.left_out, rows)
        columns["left_out"] = _lists([rows.left_out.label], sizes, pa.int32())
    if rows.verified:
        verified = [None if labels is None else sorted(set(labels)) for labels in rows.verified]
        columns["verified"] = pa.array(verified, pa.list_(pa.int32()))
    return columns


def _count_boxes(table: BoxTable, rows: Rows) -> NDArray[np.int64]:
    """(n,) the number of boxes of each row of a table."""
    return np.bincount(table.image, minlength=len(rows.ids)).astype(np.int64)


def _lists(parts: Sequence[NDArray[Any]], counts: ArrayLike, kind: Any, width: int = 1) -> Any:
    offsets = np.concatenate([[0], np.cumsum(np.asarray(counts) * width)]).astype(np.int32)
    flat = parts[0].ravel() if len(parts) == 1 else np.concatenate([part.ravel() for part in parts])
    return pa.ListArray.from_arrays(encode_numbers(offsets, pa.int32()), encode_numbers(flat, kind))


def _encode_labels(lists: Sequence[Labels]) -> Any:
    flat = np.array([label for labels in lists for label in labels], dtype=np.int32)
    return _lists([flat], [len(labels) for labels in lists], pa.int32())


def encode_numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """A column of numbers or truth values, none missing, of an Arrow type of `NUMBERS`."""
    # pa.array imports pandas if it is installed: a quarter of a second
    if pa.types.is_boolean(kind):
        content = np.packbits(values, bitorder="little")
    else:
        content = np.ascontiguousarray(values, dtype=NUMBERS[kind])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(content)])


def encode_texts(texts: Sequence[str]) -> pa.Array:
    """A column of texts, none missing."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    assert ends[-1] < 2**31, "a shard has fewer letters"
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _tag(values: Sequence[Tag | None]) -> pa.Array:
    first = next(value for value in values if value is not None)
    if isinstance(first, np.ndarray):
        unmeasured = np.full_like(first, np.nan)
        rows = [unmeasured if value is None else value for value in values]
        return _matrix(np.stack(rows), pa.float32())
    kind = ARROW[type(first)]
    if any(type(value) is not type(first) for value in values):
        return pa.array(values, kind)
    if kind == pa.string():
        return encode_texts(list(map(str, values)))
    # an integer beyond 64 bits is an error
    return encode_numbers(np.array(values, dtype=NUMBERS[kind]), kind)


def numbers(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """(n,) the values of a column, a view if Arrow stores them in one piece.

    A missing value is NaN.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # to_numpy imports pandas if it is installed: a quarter of a second
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
    # flatten imports all functions of Arrow, which takes milliseconds
    ends = numbers(lists.offsets)
    return numbers(lists.values)[ends[0] : ends[-1]]


def matrix(column: pa.ChunkedArray, dtype: type) -> NDArray[Any]:
    """A fixed-size-list column as a (rows, width) array; a missing row is NaN."""
    array = column.combine_chunks()
    flat: NDArray[Any] = np.asarray(numbers(array.values), dtype=dtype)
    values = flat.reshape(len(array), array.type.list_size)
    if array.null_count:
        return np.where(numbers(array.is_valid())[:, None], values, np.nan)
    return values


def membership(truth: pa.ChunkedArray, classes: int) -> NDArray[np.bool_]:
    """The label lists as a (rows, classes) matrix, which is on disk if it is large."""
    matrices = DiskColumn(np.bool_, classes)
    for start in range(0, len(truth), PIECE):
        array = truth.slice(start, PIECE).combine_chunks()
        piece = np.zeros((len(array), classes), dtype=np.bool_)
        counts = np.diff(numbers(array.offsets))
        piece[np.repeat(np.arange(len(array)), counts), list_values(array)] = True
        matrices.append(piece)
    return matrices.array().reshape(len(truth), classes)


def _matrix(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    flat = encode_numbers(np.ascontiguousarray(values).reshape(-1), kind)
    width = pa.list_(kind, values.shape[1])
    return pa.Array.from_buffers(width, len(values), [None], children=[flat])


def in_all(shards: Sequence[pa.Table]) -> list[pa.Table]:
    """The shards of a cell, without columns that some of them lack.

    A cell begun by an earlier version and completed by this one has shards of both kinds.
    """
    if all("said" in shard.column_names for shard in shards):
        return list(shards)
    extra = {"said", "said_label", "said_score"}
    return [shard.drop_columns(sorted(extra & set(shard.column_names))) for shard in shards]


def verified_from_arrow(table: pa.Table) -> Verified | None:
    """The verified classes of the images of a table; None without such a column."""
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
