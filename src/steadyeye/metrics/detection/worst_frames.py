"""AP over the worst frames of pm-sets, by distance."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.class_means import Spread, less, mean_difference
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result
from steadyeye.metrics.detection.frame_ap import (
    ap,
    frame_quality,
    frames,
    mean,
    result,
    spread_of,
    statistic,
    worst,
)
from steadyeye.metrics.detection.iou_thresholds import ious


def worst_frames(
    name: str, predictions: Predictions, k: int | None, iou: float | str, one_class: bool = False
) -> Result:
    """The mAP over the worst frame of each set within ±k; cells: the same at 0, 1 … k.

    The worst frame has the lowest frame AP at the lowest of the thresholds. A set without any
    object has no worst frame and is left out, which the notes count.
    """
    sets = pm_sets(predictions, labels=False)
    distance_limit = farthest(sets, k)
    thresholds = ious(iou)
    quality = frame_quality(predictions, thresholds[0], one_class)
    cells = []
    for near in range(distance_limit + 1):
        rows, _ = worst(sets, quality, near)
        worst_images = frames(predictions, rows, one_class)
        cells.append(result(f"k={near}", worst_images, ap(thresholds)))
    without = len(sets) - cells[-1].n
    # rows that were not predicted are in no set
    blank = predictions.ids[(sets.set_of >= 0) & np.isnan(quality)]
    notes = list(cells[-1].notes)
    if without:
        notes.append(f"{number_of(without, 'set')} left out: no object in any frame")
    if len(blank):
        notes.append(
            f"{number_of(len(blank), 'frame')} without objects cannot be the worst frame, first "
            f"'{blank[0]}'"
        )
    if sets.lost_anchors or sets.lost_neighbours:
        notes.append(
            f"no prediction: {number_of(sets.lost_anchors, 'anchor')} with their sets and "
            f"{number_of(sets.lost_neighbours, 'neighbour')}"
        )
    full_name = name_with_iou(name, distance_limit, iou)
    return replace(cells[-1], name=full_name, notes=tuple(notes), cells=tuple(cells))


def name_with_iou(name: str, k: int, iou: float | str) -> str:
    """The name of a result within ±k, with the IoU where it is not the usual one."""
    return f"{name}(k={k})" if iou == 0.5 else f"{name}(k={k}, iou={iou})"


def worst_statistic(
    predictions: Predictions,
    k: int | None = None,
    iou: float | str = 0.5,
    one_class: bool = False,
) -> Statistic:
    """What models are compared by on `worst_frames`; their worst frames are each one's own."""
    sets = pm_sets(predictions, labels=False)
    thresholds = ious(iou)
    quality = frame_quality(predictions, thresholds[0], one_class)
    rows, members = worst(sets, quality, farthest(sets, k))
    # named after its set, a frame is drawn with that of the other model
    worst_images = replace(frames(predictions, rows, one_class), videos=sets.videos[members])
    return statistic(worst_images, ap(thresholds))


def drop_statistic(
    predictions: Predictions, k: int | None = None, iou: float | str = 0.5
) -> Statistic:
    """The mAP of the anchors less that of the worst frames, both of the same resampled sets."""
    sets = pm_sets(predictions, labels=False)
    thresholds = ious(iou)
    quality = frame_quality(predictions, thresholds[0])
    rows, members = worst(sets, quality, farthest(sets, k))
    table = ap(thresholds)
    plain, least = (
        frames(predictions, of_images).match_detections() for of_images in (sets.anchors, rows)
    )

    def drop(weight: NDArray[np.int64] | None) -> float:
        of_worst = None if weight is None else weight[members]
        return mean(table(plain, weight)) - mean(table(least, of_worst))

    def resample_sets(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.array([drop(weight) for weight in weights.astype(np.int64)])

    def interval() -> Interval:
        if np.isnan(drop(None)):
            return Interval(None, None, None, len(sets), "none: there are no objects")
        return mean_difference(spread(), len(sets))

    def spread() -> Spread:
        anchors = spread_of(plain, table, sets.videos)
        return less(anchors, spread_of(least, table, sets.videos, members))

    return Statistic(drop(None), sets.videos, resample_sets, interval, spread)
