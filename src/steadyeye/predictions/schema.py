"""One shard as an Arrow table, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, Detections
from steadyeye.core.types import Labels, Tag
from steadyeye.predictions.arrow_arrays import list_values, numbers
from steadyeye.predictions.boxes import boxes_to_arrow
from steadyeye.predictions.caveats import caveats_to_arrow
from steadyeye.predictions.verified import verified_to_arrow

TOP = 5  # the model's own best classes kept for the pictures

ANSWERS = {
    "predicted": pa.int32(),
    "confidence": pa.float32(),
    "rank": pa.int32(),
    "probability": pa.float32(),
    "softmax": pa.float32(),
    "least": pa.float32(),
}
"""What is derived from the scores of a row, and kept also where they are not.

The first four among the classes that compete; `softmax`: of the model's own best class, over all
its own, should its scores be logits; `least`: the lowest of its own scores, which tells.
"""

ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string()}


@dataclass(frozen=True, eq=False)
class Rows:
    """The predictions of consecutive samples, n rows.

    `ids`, `groups`, `truths`, `tags`, `errors`: one entry a row; no error is ''. `scores`: (n,
    classes) float32, or (n, 0) where only the answers are kept. `answers`: (n,) arrays of what
    `ANSWERS` names. `top`, `top_scores`: (n, m) the model's own best classes. `boxes`,
    `detections`: of detectors, one entry a row; `sizes`: (height, width) of each image, (0, 0)
    where it is not known; `left_out`: the detector's own classes of the detections that the data
    has no class for; `raw_detections`: all that it detected, over its own classes; `verified`: the
    classes verified in each image, of a source that lists them.
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
    detections: Sequence[Detections] = ()
    sizes: Sequence[tuple[int, int]] = ()
    left_out: Sequence[NDArray[np.int32]] = ()
    raw_detections: Sequence[Detections] = ()
    verified: Sequence[Labels | None] = ()


def to_arrow(rows: Rows) -> pa.Table:
    """The Arrow table of a shard: id, group, truth, error, scores, answers, top and the tags."""
    columns: dict[str, Any] = {
        "id": pa.array(rows.ids, pa.string()),
        "group": pa.array(rows.groups, pa.string()),
        "truth": pa.array([list(truth) for truth in rows.truths], pa.list_(pa.int32())),
        "error": pa.array(rows.errors, pa.string()),
        "scores": _matrix(rows.scores, pa.float32()),
        **{name: pa.array(rows.answers[name], kind) for name, kind in ANSWERS.items()},
        "top": _matrix(rows.top, pa.int32()),
        "top_scores": _matrix(rows.top_scores, pa.float32()),
    }
    columns |= boxes_to_arrow(rows.boxes, rows.detections, rows.raw_detections)
    columns |= caveats_to_arrow(rows.sizes, rows.left_out)
    columns |= verified_to_arrow(rows.verified)
    for name, value in (rows.tags[0] if rows.tags else {}).items():
        values = [tags[name] for tags in rows.tags]
        columns[f"tag:{name}"] = _tag(values, value)
    return pa.table(columns)


def _tag(values: Sequence[Any], first: Tag) -> pa.Array:
    if isinstance(first, np.ndarray):
        return _matrix(np.stack(values), pa.float32())
    return pa.array(values, ARROW[type(first)])


def matrix(column: pa.ChunkedArray, dtype: type) -> NDArray[Any]:
    """A fixed-size-list column as a (rows, width) array."""
    array = column.combine_chunks()
    values = numbers(array.values)
    return np.asarray(values, dtype=dtype).reshape(len(array), array.type.list_size)


def membership(truth: pa.ChunkedArray, classes: int) -> NDArray[np.bool_]:
    """The label lists as a (rows, classes) matrix."""
    array = truth.combine_chunks()
    result = np.zeros((len(array), classes), dtype=np.bool_)
    counts = np.diff(numbers(array.offsets))
    result[np.repeat(np.arange(len(array)), counts), list_values(array)] = True
    return result


def _matrix(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(values).reshape(-1), kind)
    if not values.shape[1]:
        return pa.array([[]] * len(values), pa.list_(kind, 0))
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
