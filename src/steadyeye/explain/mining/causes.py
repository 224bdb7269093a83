"""Why a confident detection is a mistake, or that it is none.

Lau et al., "Natural Adversarial Objects", 2021, Section 3: a detection with a score above 0.8 that
no true box meets at IoU above 0.5 is a hard false positive; one that such boxes meet, none of them
of its class, is an egregious misclassification.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable, Verified, take
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.explain.mining.class_hierarchy import kin, stood_for
from steadyeye.explain.mining.overlap_kernel import overlaps

SCORE, IOU = 0.8, 0.5  # Section 3 of the paper; both are to be exceeded

CAUSES = ("misclassification", "out_of_distribution", "background", "unverified")
"""Of a mistake: on an object of a class that the detector has; on one of none of its classes; on
nothing; and, which is no mistake, on nothing where nobody verified whether its class is there."""

MISTAKES = CAUSES[:3]

WORDS = {
    "misclassification": "on an object of another class",
    "out_of_distribution": "on an object of a class that the detector does not have",
    "background": "no labelled object",
    "unverified": "of a class that the labels of the image do not cover",
}
"""What a cause is, for people."""

RIGHT, IN_CROWD = -1, -2


@dataclass(frozen=True, eq=False)
class Judged:
    """What the confident detections of a table are, n of them.

    `detection`: (n,) their rows in `Predictions.raw_detections`. `cause`: (n,) an index into
    `CAUSES`, or `RIGHT`, or `IN_CROWD` for what a crowd of its class excuses. `object`: (n,) the
    row in `Predictions.boxes` of the true box of highest IoU, −1 where none overlaps; `iou`: (n,)
    that IoU, which may be below the threshold.
    """

    detection: NDArray[np.int64]
    cause: NDArray[np.int64]
    object: NDArray[np.int64]
    iou: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.detection)

    def rows(self, cause: str) -> NDArray[np.intp]:
        """The places of those of one cause."""
        return np.flatnonzero(self.cause == CAUSES.index(cause))


def judge_detections(predictions: Predictions, score: float = SCORE, iou: float = IOU) -> Judged:
    """The confident detections of a table, each with its cause.

    `score`, `iou`: 0…1, to be exceeded. A detection is right where any box above `iou` has its
    class, or one above or below it in the hierarchy of the data; then it is excused where half of
    it lies in a crowd of such a class; then it is a mistake of the box of highest IoU, if that is
    above `iou`: out of distribution where the box is labelled so, or of a class that no class of
    the detector stands for. Else it is background, or unverified where the data has not its class
    or nobody verified that class in that image. Raises `UsageError` for a table of an earlier
    version, without what the detector said of classes that the data has not.
    """
    said, truth = _tables(predictions)
    rows = np.flatnonzero(said.score > score)
    confident = take(said, rows)
    reach = (
        np.full(len(predictions.model_classes), -1)
        if predictions.model_to_data_class is None
        else (predictions.model_to_data_class)
    )
    label = np.asarray(reach[confident.label], dtype=np.int64)
    near = kin(predictions.parents, len(predictions.classes))
    best, share, own, crowd = overlaps(confident, label, truth, near, iou)
    known = stood_for(reach, predictions.parents, len(predictions.classes))
    # the last entry speaks of the label −1 of objects outside the classes
    foreign = ~np.append(known, False)
    there = np.append(truth.label, OOD)[best]
    cause = np.select(
        [own, crowd, (share > iou) & foreign[there], share > iou],
        [RIGHT, IN_CROWD, CAUSES.index("out_of_distribution"), CAUSES.index("misclassification")],
        np.where(
            (label < 0) | ~_is_verified(predictions.verified, confident.image, label),
            CAUSES.index("unverified"),
            CAUSES.index("background"),
        ),
    )
    return Judged(rows, np.asarray(cause, dtype=np.int64), best, share)


def _tables(predictions: Predictions) -> tuple[BoxTable, BoxTable]:
    """All that was said and all that is there."""
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
    """(n,) whether somebody verified a class in an image, there or not; True without such lists."""
    if verified is None:
        return np.ones(len(image), dtype=np.bool_)
    width = max(int(verified.label.max(initial=0)), int(label.max(initial=0))) + 1
    listed = np.isin(image * width + label, verified.image * width + verified.label)
    return np.asarray(listed | ~verified.known[image], dtype=np.bool_)
