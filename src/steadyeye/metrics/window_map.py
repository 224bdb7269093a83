"""mAP over the worst frame near each frame of whole sequences."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.frame_ap import ap, frame_quality, frames, result
from steadyeye.metrics.detection.iou_thresholds import ious
from steadyeye.metrics.detection.worst_frames import name_with_iou


@needs("boxes", "detections", "tracks", "group", "frame")
def window_map(predictions: Predictions, k: int = 10, iou: float | str = 0.5) -> Result:
    """pm-k mAP of whole sequences: for every frame, the frame of lowest frame AP within ±k.

    As `pm_k_map` with each frame that has objects as an anchor; ties go to the smaller distance,
    then to the earlier frame. `k`: frames, 0 or more. `iou` as in `map`. n frames; the interval is
    over videos. Value None without objects. Raises `UsageError` for a negative `k`.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(window_map(example_true_tracks(), k=2))
        window_map(k=2) 68.3 % (n = 240)

    """
    if k < 0:
        raise UsageError(f"k={k}: the distance cannot be negative")
    thresholds = ious(iou)
    quality = frame_quality(predictions, thresholds[0])
    rows = find_worst(predictions, quality, k)
    return result(name_with_iou("window_map", k, iou), frames(predictions, rows), ap(thresholds))


def find_worst(predictions: Predictions, quality: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """(anchors,) the row of the worst frame within ±k of each row that has a quality, no NaN."""
    frame = np.asarray(predictions.tags["frame"], dtype=np.int64)
    _, group = predictions.distinct_groups
    anchors = np.flatnonzero(~np.isnan(quality))
    order = anchors[np.lexsort((frame[anchors], group[anchors]))]
    worst = order.copy()
    # nearer frames first, the earlier of two before the later, so that only a lower one is taken
    for distance in range(1, k + 1):
        for step in (-distance, distance):
            other = _shift(order, group, frame, step)
            known = other >= 0
            lower = known & (quality[np.where(known, other, order)] < quality[worst])
            worst = np.where(lower, other, worst)
    return np.asarray(worst, dtype=np.intp)


def _shift(
    order: NDArray[np.intp], group: NDArray[np.intp], frame: NDArray[np.int64], step: int
) -> NDArray[np.intp]:
    """(anchors,) the row `step` frames later in the same group, −1 where there is none."""
    span = int(frame.max(initial=0)) + 1
    limits = frame[order] + step
    key, own = group[order] * span + limits, group[order] * span + frame[order]
    place = np.minimum(np.searchsorted(own, key), len(own) - 1)
    same = (own[place] == key) & (limits >= 0) & (limits < span)
    return np.where(same, order[place], -1)
