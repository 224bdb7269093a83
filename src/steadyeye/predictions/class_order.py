"""Whether a model's classes seem to be in another order than their names say.

Names in the order of the alphabet, of folders or of the list of another training give predictions
that are wrong, but wrong in the same way: each class stands where another one should. The order is
learned from every second video and tested on the others, so that chance does not look like one.
Labels of a detector that count from 1 name the next class in its list, which the data may not have.
"""

from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, iou
from steadyeye.core.errors import list_texts
from steadyeye.core.format import number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.predictions.box_format import list_image_boxes

Answers: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]
"""(n,) each: rows of the predictions, the true and the predicted class."""

LEAST = 30
"""Labelled samples or objects below which nothing is said."""
IMAGES = 300
"""Images with objects that are looked at, of a detector, from the first on."""
IOU = 0.5
"""Intersection over union from which a detection is on an object."""
TIMES, MORE = 2.0, 0.3
"""Another order is said if it makes this many times, and this share more, of the samples right."""
NAMED = 3
"""Classes that are named."""


def describe_class_order(predictions: Predictions) -> str:
    """Which classes seem to stand for others, in one sentence; "" if none do.

    Of a classifier only samples with one label count, predicted as a class of the data; of a
    detector only true objects in the first `IMAGES` images with objects that a detection of any
    class overlaps by half.
    """
    shift = _describe_shift(predictions)
    if shift:
        return shift
    noun = "object" if predictions.boxes is not None else "sample"
    if predictions.boxes is None:
        rows, true, predicted = _list_samples(predictions)
    else:
        rows, true, predicted = _list_objects(predictions.boxes, predictions.detections)
    as_read = float((true == predicted).mean()) if len(rows) else 1.0
    if len(rows) < LEAST or as_read * TIMES > 1:
        return ""
    _, video = predictions.clusters
    classes = len(predictions.classes)
    # images that are of no video are each on their own
    half = (video[rows] if "group" in predictions.columns else rows) % 2 == 1
    right = np.zeros(len(rows), np.bool_)
    for part in (half, ~half):
        order = _learn_order(true[~part], predicted[~part], classes)
        right[part] = order[np.minimum(predicted[part], classes)] == true[part]
    best = float(right.mean())
    order = _learn_order(true, predicted, classes)
    moved = [c for c in range(classes) if order[c] not in {c, -1}]
    if best < max(as_read * TIMES, as_read + MORE) or len(moved) < 2:
        return ""
    names = predictions.classes
    pairs = list_texts([f"'{names[c]}' for '{names[order[c]]}'" for c in moved], NAMED)
    return (
        f"the classes seem to be in another order, {pairs}: with it, {percent(best)} of "
        f"{number_of(len(rows), noun)} are right instead of {percent(as_read)}; check the order "
        "of the model's classes"
    )


def _list_samples(predictions: Predictions) -> Answers:
    """Rows with one label, their label, and the predicted class."""
    known = predictions.valid & (predictions.truth.sum(axis=1) == 1)
    rows = np.flatnonzero(known & (predictions.predicted_class >= 0))
    return rows, predictions.truth[rows].argmax(axis=1), predictions.predicted_class[rows]


def _describe_shift(predictions: Predictions) -> str:
    """Whether a detector's labels, before they are mapped to the data, seem to be off by one."""
    truth, own = predictions.boxes, predictions.model_to_data_class
    if truth is None or own is None or predictions.raw_detections is None:
        return ""
    _, true, label = _list_objects(truth, predictions.raw_detections)
    if len(true) < LEAST:
        return ""
    # a label beyond the list is of no class
    padded = np.concatenate([[-1], own, [-1]])
    too_low, as_read, too_high = (
        float((padded[label + 1 - off] == true).mean()) for off in (-1, 0, 1)
    )
    best = max(too_low, too_high)
    if best < max(as_read * TIMES, as_read + MORE):
        return ""
    words = "one too high" if best == too_high else "one too low"
    return (
        f"the labels of the detections seem to be {words}: with others, "
        f"{percent(best)} of {number_of(len(true), 'object')} are right instead of "
        f"{percent(as_read)}; labels are places in the list of the model's classes, from 0"
    )


def _list_objects(truth: BoxTable, detections: BoxTable | None) -> Answers:
    """Rows of true objects, their class, and that of the surest detection on them."""
    if detections is None:
        return (np.zeros(0, np.intp),) * 3
    answers: list[tuple[int, int, int]] = []
    for image, own, surest in islice(list_image_boxes(truth, detections), IMAGES):
        is_on = iou(truth.boxes[own], detections.boxes[surest]) >= IOU
        for place in np.flatnonzero(is_on.any(axis=1)):
            label = detections.label[surest[is_on[place].argmax()]]
            answers.append((image, int(truth.label[own[place]]), int(label)))
    rows, true, predicted = np.array(answers, dtype=np.intp).reshape(-1, 3).T
    return rows, true, predicted


def _learn_order(
    true: NDArray[np.intp], predicted: NDArray[np.intp], classes: int
) -> NDArray[np.intp]:
    """(classes + 1,) for each predicted class the true one that goes with it most; −1: none.

    One to one: only where the predicted class also goes with the true one most. The last entry is
    of all that is no class of the data.
    """
    of_data = predicted < classes
    pairs, times = np.unique(predicted[of_data] * classes + true[of_data], return_counts=True)
    # assigned in this order, the most frequent one stays
    answer, label = np.divmod(pairs[np.argsort(times, kind="stable")], classes)
    order, answer_of = np.full(classes + 1, -1, dtype=np.intp), np.full(classes, -1, dtype=np.intp)
    order[answer], answer_of[label] = label, answer
    order[:-1][answer_of[order[:-1]] != np.arange(classes)] = -1
    return order
