"""What must be known of the boxes of a table: counted and named, and nothing changed."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.format import number_of
from steadyeye.predictions.arrow_arrays import list_values, numbers
from steadyeye.predictions.schema import boxes_from_arrow, detections_from_arrow

SLACK = 0.05
"""Pixels by which a box may reach out of its image unmentioned: COCO rounds to hundredths."""


def caveats(table: pa.Table, model_classes: Sequence[str]) -> tuple[str, ...]:
    """The notes on boxes beyond their images and on detections left out, a sentence each.

    Each with how many there are and the first. A table of an earlier version says nothing.
    """
    if "size" not in table.column_names:
        return ()
    sizes = np.array(table["size"].to_pylist(), dtype=np.float64).reshape(-1, 2)
    ids = table["id"].to_pylist()
    truth, detections = boxes_from_arrow(table), detections_from_arrow(table)
    notes = [
        _note_beyond_images(kind, boxes, sizes, ids)
        for kind, boxes in (("true boxes", truth), ("detections", detections))
        if boxes is not None
    ]
    notes += [
        _note_unknown_sizes(
            sizes, ids, [boxes for boxes in (truth, detections) if boxes is not None]
        )
    ]
    if "left_out" in table.column_names:
        notes.append(_note_left_out(table["left_out"], ids, model_classes))
    return tuple(note for note in notes if note)


def _note_beyond_images(
    kind: str, table: BoxTable, sizes: NDArray[np.float64], ids: Sequence[str]
) -> str | None:
    size = sizes[table.image]
    ends = size[:, ::-1]
    known = size[:, 0] > 0
    low, high = table.boxes[:, :2], table.boxes[:, 2:]
    out = known & ((low < -SLACK) | (high > ends + SLACK)).any(axis=1)
    if not out.any():
        return None
    wholly = int((out & ((high <= 0) | (low >= ends)).any(axis=1)).sum())
    row = int(out.argmax())
    box = ", ".join(f"{value:g}" for value in np.round(table.boxes[row], 2))
    height, width = sizes[table.image[row]]
    return (
        f"{int(out.sum()):,} of {len(table):,} {kind} extend beyond their image, {wholly:,} of "
        f"them completely, first ({box}) in '{ids[table.image[row]]}' of {width:.0f} × "
        f"{height:.0f} pixels; all are included unchanged"
    )


def _note_unknown_sizes(
    sizes: NDArray[np.float64], ids: Sequence[str], tables: Sequence[BoxTable]
) -> str | None:
    boxed = np.zeros(len(sizes), dtype=np.bool_)
    for table in tables:
        boxed[table.image] = True
    unknown = np.flatnonzero((sizes[:, 0] == 0) & boxed)
    if not len(unknown):
        return None
    return (
        f"the size of {number_of(len(unknown), 'image')} with boxes is not known, first "
        f"'{ids[unknown[0]]}'; boxes beyond their image were not checked"
    )


def _note_left_out(
    column: pa.ChunkedArray, ids: Sequence[str], model_classes: Sequence[str]
) -> str | None:
    lists = column.combine_chunks()
    counts = np.diff(numbers(lists.offsets))
    labels = list_values(lists)
    if not len(labels):
        return None
    first = ids[int((counts > 0).argmax())]
    kinds = len(np.unique(labels))
    return (
        f"{number_of(len(labels), 'detection')} left out: their "
        f"{number_of(kinds, 'class is', 'classes are')} not in the data, first "
        f"'{model_classes[labels[0]]}' in '{first}'"
    )
