"""Mean average precision that forgives detections of objects outside the model's classes."""

from dataclasses import replace

import numpy as np

from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.frame_ap import (
    ap,
    by_class,
    frames_without_ood,
    measure_by_class,
    outside,
    select_counted_rows,
    statistic,
)
from steadyeye.metrics.detection.iou_thresholds import ious


def outcomes(predictions: Predictions, iou: float | str = 0.5) -> Statistic:
    """The images that count, for resampling."""
    return statistic(
        frames_without_ood(predictions, select_counted_rows(predictions)), ap(ious(iou))
    )


def has_outside(predictions: Predictions) -> bool:
    """Whether any object lies outside the classes; without one it is mAP again."""
    return predictions.boxes is not None and bool(outside(predictions, predictions.boxes).any())


@needs("boxes", "detections", when=has_outside)
@compare_by(outcomes)
def map_without_ood(predictions: Predictions, iou: float | str = 0.5) -> Result:
    """The mAP that ignores detections which match nothing but an out-of-distribution object.

    Such a detection overlaps, by the threshold or more, an object labelled as outside the classes,
    or of a class without a mapped model class, and is no true positive: at that threshold it is
    ignored, and so is any other there. Classes without a mapped model class do not count as AP 0
    either, and in a hierarchy neither do children of a mapped class. The rest, also `iou`, as in
    `map`; `cells`: AP of every present class, with its number of objects. Value None without
    objects. Lau et al., "Natural Adversarial Objects", 2021, Section 4 and Table 2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(map_without_ood(example_detections()))
        map_without_ood(iou=0.5) 92.7 % (95 % interval 69.0–99.7 %, n = 30)
    """
    of_images = frames_without_ood(predictions, select_counted_rows(predictions))
    of_classes = measure_by_class(of_images, ap(ious(iou)))
    result = by_class(f"map_without_ood(iou={iou})", of_classes, predictions.classes)
    assert of_images.outside is not None, "given by frames_without_ood"
    images = len(np.unique(of_images.outside.image))
    note = (
        (
            f"{number_of(len(of_images.outside), 'object')} of classes that the model does not "
            f"have (OOD), in {number_of(images, 'image')}"
        )
        if len(of_images.outside)
        else "no OOD objects: the same as mAP"
    )
    return replace(result, notes=(note, *result.notes))
