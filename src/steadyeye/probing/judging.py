"""Which confident detections are mistakes, from the detections over the data's classes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.classes import mapping
from steadyeye.core.boxes import BoxTable, select
from steadyeye.core.table import Predictions
from steadyeye.core.types import Classes
from steadyeye.detection.errors import iou

SCORE, IOU = 0.8, 0.5
"""Both are to be exceeded. Lau et al. 2021."""

CAUSES = ("misclassification", "background")
"""Of a mistake: on an object of another class, on nothing."""

MISTAKES = CAUSES

RIGHT, IN_CROWD = -1, -2


@dataclass(frozen=True, eq=False)
class Judged:
    """What the confident detections of a table are, n of them.

    `detection`: (n,) their rows in `said(predictions)`. `cause`: (n,) an index into `CAUSES`, or
    `RIGHT`, or `IN_CROWD` for what a crowd of its class excuses.
    """

    detection: NDArray[np.int64]
    cause: NDArray[np.int64]


def said(predictions: Predictions) -> BoxTable:
    """The detections over the detector's own classes: the first that makes each of the data's.

    Those of classes that the data has not are not among them.
    """
    found = predictions.detections
    assert found is not None, "checked before"
    own, data = Classes(predictions.model_classes), Classes(predictions.classes)
    members = mapping.nearest(own, data).members
    first = np.array([each[0] if each else -1 for each in members], dtype=np.int64)
    return replace(found, label=first[found.label])


def judged(predictions: Predictions, score: float = SCORE) -> Judged:
    """The confident detections of a table, each with its cause.

    Right where a true box at IoU > 0.5 has its class; then excused where half of it lies in a
    crowd of its class; then a misclassification where another true box lies there, or background.
    """
    found, truth = predictions.detections, predictions.boxes
    assert found is not None, "checked before"
    assert truth is not None, "checked before"
    rows = np.flatnonzero(found.score > score)
    cause = np.full(len(rows), CAUSES.index("background"), dtype=np.int64)
    for image in np.unique(found.image[rows]).tolist():
        here = np.flatnonzero(found.image[rows] == image)
        there = select(truth, np.array([image]))
        cause[here] = _causes(found.boxes[rows[here]], found.label[rows[here]], there)
    return Judged(rows.astype(np.int64), cause)


def _causes(
    boxes: NDArray[np.float64], label: NDArray[np.int64], truth: BoxTable
) -> NDArray[np.int64]:
    same = label[:, None] == truth.label[None, :]
    on = (iou(boxes, truth.boxes) > IOU) & ~truth.crowd
    low = np.maximum(boxes[:, None, :2], truth.boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], truth.boxes[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=2)
    half = shared * 2 >= np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)[:, None]
    found = np.select(
        [(on & same).any(axis=1), (half & same & truth.crowd).any(axis=1), on.any(axis=1)],
        [RIGHT, IN_CROWD, CAUSES.index("misclassification")],
        CAUSES.index("background"),
    )
    return np.asarray(found, dtype=np.int64)
