"""The cause of a confident mistake, or the verdict that it is none.

Lau et al., "Natural Adversarial Objects", 2021, Section 3: a detection with a score above 0.8
without a true box at IoU above 0.5 is a hard false positive; one that overlaps true boxes, but none
of its class, is an egregious misclassification.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable, Verified, exceed_score, take
from steadyeye.core.disk_columns import DiskColumn, release_pages
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.data.classes.class_map import Parents, ancestors, descendants
from steadyeye.metrics.detection.matching import share_of

HALF = 0.5  # share of a detection inside a crowd that may then be the detected object

ObjectMatches: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]
]

SCORE, IOU = 0.8, 0.5  # Section 3 of the paper; both are to be exceeded

CAUSES = ("misclassification", "out_of_distribution", "background", "unverified")
"""Causes of mistakes: on an object of a class that the detector has; on an object of none of its
classes; on background; and, which is no mistake, on background in an image whose class nobody
verified."""

MISTAKES = CAUSES[:3]

WORDS = {
    "misclassification": "on an object of another class",
    "out_of_distribution": "on an object of a class that the detector does not have",
    "background": "no labelled object",
    "unverified": "of a class that the labels of the image do not cover",
}
"""Cause → its description."""

RIGHT, IN_CROWD = -1, -2

PIECE = 100_000  # detections that are processed together


@dataclass(frozen=True, eq=False)
class Relatives:
    """The ancestors and descendants of each of n classes, without itself.

    Class i has `members[first[i]:first[i + 1]]`, rising; `first`: (n + 1,) int64, `members`: int64.
    """

    first: NDArray[np.int64]
    members: NDArray[np.int64]


def find_relatives(parents: Parents, classes: int) -> Relatives:
    """The ancestors and descendants of each of n classes; none without a hierarchy."""
    pairs = zip(ancestors(parents, classes), descendants(parents, classes), strict=True)
    near = [above | below for above, below in pairs]
    counts = [len(labels) for labels in near]
    members = [label for labels in near for label in sorted(labels)]
    first = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Relatives(np.asarray(first, dtype=np.int64), np.array(members, dtype=np.int64))


def find_known_classes(
    model_to_data: NDArray[np.int64], parents: Parents, classes: int
) -> NDArray[np.bool_]:
    """(n,) bool, the data's classes that the detector has.

    Its mapped classes and all their descendants: for a detector of persons a woman is not out of
    distribution, so a wrong detection of her is a misclassification.
    `metrics.detection.frame_ap.outside` is for AP and leaves the descendants out. `model_to_data`:
    the data's class of each of the detector's own, −1: none.
    """
    reached = {int(label) for label in model_to_data if label >= 0}
    above = ancestors(parents, classes)
    return np.array([i in reached or bool(reached & above[i]) for i in range(classes)], np.bool_)


def overlaps(
    raw: BoxTable, label: NDArray[np.int64], truth: BoxTable, relatives: Relatives, iou: float
) -> ObjectMatches:
    """The true boxes under each of n detections of any classes.

    `label`: (n,) the data's class of each, −1: none. Returns four (n,) arrays: the row of the true
    box of highest IoU (int64; −1 where none overlaps, the first of equals), that IoU (float64),
    whether any true box at an IoU *above* `iou` has its class or one above or below it (bool), and
    whether half of it or more lies in a crowd of such a class (bool). Crowds are no true boxes.
    """
    # the boxes of other images are not copied: a piece of a table has few images
    lowest = raw.image.min(initial=np.iinfo(np.int64).max)
    highest = raw.image.max(initial=-1)
    near = np.flatnonzero((truth.image >= lowest) & (truth.image <= highest))
    order = near[np.argsort(truth.image[near], kind="stable")]
    images = truth.image[order]
    first = np.searchsorted(images, raw.image, side="left")
    last = np.searchsorted(images, raw.image, side="right")
    corners = np.ascontiguousarray(truth.boxes[order])
    row, best, own, crowd = _find_overlaps(
        (np.ascontiguousarray(raw.boxes), np.asarray(label, dtype=np.int64), first, last),
        (corners, truth.label[order].astype(np.int64), truth.crowd[order]),
        (relatives.first, relatives.members),
        iou,
    )
    # −1 stays −1
    return np.append(order, -1)[row].astype(np.int64), best, own, crowd


# no tuples within its loops: numba counts references to every array in a tuple
@njit(nogil=True, cache=True)
def _find_overlaps(raw: Any, truth: Any, relatives: Any, limit: float) -> ObjectMatches:
    boxes, label, first, last = raw
    corners, true_label, crowd = truth
    relatives_first, relatives_members = relatives
    n = len(label)
    row, best = np.full(n, -1, dtype=np.int64), np.zeros(n)
    own, inside = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for d in range(n):
        for t in range(first[d], last[d]):
            share = share_of(boxes, d, corners, t, crowd[t])
            if share <= 0:
                continue
            same = label[d] >= 0 and label[d] == true_label[t]
            if label[d] >= 0 and true_label[t] >= 0 and not same:
                for k in range(relatives_first[label[d]], relatives_first[label[d] + 1]):
                    same = same or relatives_members[k] == true_label[t]
            if crowd[t]:
                inside[d] = inside[d] or (same and share >= HALF)
                continue
            if share > best[d]:
                row[d], best[d] = t, share
            own[d] = own[d] or (same and share > limit)
    return row, best, own, inside


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdicts on the n confident detections of a table.

    `detection`: (n,) their rows in `Predictions.raw_detections`. `cause`: (n,) an index into
    `CAUSES`, or `RIGHT`, or `IN_CROWD` for one in a crowd of its class. `object`: (n,) the row in
    `Predictions.boxes` of the true box of highest IoU, −1 if none overlaps; `iou`: (n,) that IoU,
    which may be below the threshold.
    """

    detection: NDArray[np.int64]
    cause: NDArray[np.int64]
    object: NDArray[np.int64]
    iou: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.detection)


_JUDGED: WeakKeyDictionary[Predictions, dict[tuple[float, float], Judged]] = WeakKeyDictionary()
"""Cache of `judge_detections`, because several parts of a report use the same verdicts."""


def judge_detections(predictions: Predictions, score: float = SCORE, iou: float = IOU) -> Judged:
    """The confident detections of a table, each with its cause.

    `score`, `iou`: 0…1, to be exceeded. A detection is right if any box above `iou` has its class,
    an ancestor or a descendant of it in the hierarchy of the data. Otherwise it is excluded if half
    of it is in a crowd of such a class. Otherwise it is a mistake about the box of highest IoU, if
    that is above `iou`: out of distribution if the box is labelled so, or of a class that the
    detector does not have. Otherwise it is background, or unverified if the data do not have its
    class or nobody verified that class in that image. Raises `UsageError` for a table of an earlier
    version, which lacks detections of classes that the data do not have.
    """
    known = _JUDGED.setdefault(predictions, {})
    if (score, iou) not in known:
        known[score, iou] = _judge(predictions, score, iou)
    return known[score, iou]


def _judge(predictions: Predictions, score: float, iou: float) -> Judged:
    scores = _tables(predictions)[0].score
    columns = tuple(DiskColumn(kind) for kind in (np.int64, np.int64, np.int64, np.float64))
    # all columns of one piece at a time: there may be millions of detections
    for start in range(0, len(scores), PIECE):
        rows = np.flatnonzero(exceed_score(scores[start : start + PIECE], score)) + start
        parts = (rows, *_judge_rows(predictions, rows, iou))
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
        release_pages()
    detection, cause, best, share = (column.array() for column in columns)
    return Judged(detection, cause, best, share)


def _judge_rows(
    predictions: Predictions, rows: NDArray[np.intp], iou: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The cause, the object and the IoU of some detections, as `Judged` has them."""
    raw, truth = _tables(predictions)
    confident = take(raw, rows)
    model_to_data = predictions.model_to_data_class
    if model_to_data is None:
        model_to_data = np.full(len(predictions.model_classes), -1)
    label = np.asarray(model_to_data[confident.label], dtype=np.int64)
    near = find_relatives(predictions.parents, len(predictions.classes))
    best, share, own, crowd = overlaps(confident, label, truth, near, iou)
    known = find_known_classes(model_to_data, predictions.parents, len(predictions.classes))
    # the last entry is for the label −1 of objects outside the classes
    foreign = ~np.append(known, False)
    object_label = np.full(len(best), OOD)
    object_label[best >= 0] = truth.label[best[best >= 0]]
    cause = np.select(
        [own, crowd, (share > iou) & foreign[object_label], share > iou],
        [RIGHT, IN_CROWD, CAUSES.index("out_of_distribution"), CAUSES.index("misclassification")],
        np.where(
            (label < 0) | ~_is_verified(predictions.verified, confident.image, label),
            CAUSES.index("unverified"),
            CAUSES.index("background"),
        ),
    )
    return np.asarray(cause, dtype=np.int64), best, share


def _tables(predictions: Predictions) -> tuple[BoxTable, BoxTable]:
    """All detections and all true boxes."""
    if predictions.raw_detections is None:
        raise UsageError(
            f"the detections of {predictions.model} on {predictions.data} were written by an "
            "earlier version, which left out classes that the data does not have; run again "
            "into another --out"
        )
    assert predictions.boxes is not None, "checked by needs"
    return predictions.raw_detections, predictions.boxes


def _is_verified(
    verified: Verified | None, image: NDArray[np.int64], label: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(n,) whether a class was verified in an image, present or absent; True without such lists."""
    if verified is None:
        return np.ones(len(image), dtype=np.bool_)
    width = max(int(verified.label.max(initial=0)), int(label.max(initial=0))) + 1
    verified_there = np.isin(image * width + label, verified.image * width + verified.label)
    return np.asarray(verified_there | ~verified.known[image], dtype=np.bool_)
