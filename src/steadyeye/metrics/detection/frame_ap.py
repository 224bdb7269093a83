"""Frames of detections: their AP, the worst of each pm-set, with intervals, and of each class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable, in_classes, select, take
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import PmSets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.class_means import Spread, mean_of_classes, of_class
from steadyeye.core.stats.class_means import spread as find_spread
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result
from steadyeye.metrics.detection.average_precision import (
    average_recall,
    dataset_ap,
    frame_ap,
)
from steadyeye.metrics.detection.box_groups import MOST
from steadyeye.metrics.detection.matching import (
    ALL,
    AREAS,
    Matched,
    Range,
    ignore_detections_on,
    match,
)
from steadyeye.metrics.detection.positives import find_presence

Table = Callable[[Matched, NDArray[np.int64] | None], NDArray[np.float64]]
"""`(matched, weight) -> (ious, classes)`, each image counting `weight` times; NaN for classes
without an object. The metric is its mean."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Some images of a table with their boxes, n of them.

    `rows`: (n,) their rows. `videos`: (n,) what intervals are clustered by. `outside`: objects on
    which a detection that was matched to nothing is ignored; None: it is a false positive. `area`:
    square pixels of the objects that count, see `matching.match`.
    """

    rows: NDArray[np.intp]
    videos: NDArray[np.str_]
    truth: BoxTable
    detections: BoxTable
    classes: int
    outside: BoxTable | None = None
    area: Range = ALL

    def match_detections(self) -> Matched:
        """The detections matched to true boxes, once for all thresholds."""
        matches = match(self.truth, self.detections, len(self.rows), self.classes, self.area)
        if self.outside is None:
            return matches
        return ignore_detections_on(matches, self.detections, self.outside)


def frames(predictions: Predictions, rows: NDArray[np.intp], one_class: bool = False) -> Frames:
    """The images of `rows`; `one_class`: all categories made one, for localization.

    Without the objects outside the classes: a detection of one is a false positive.
    """
    truth, detections = predictions.boxes, predictions.detections
    assert truth is not None, "a metric of boxes needs the column"
    assert detections is not None, "a metric of detections needs the column"
    videos = predictions.tags.get("video", predictions.ids)[rows]
    objects, detected = in_classes(select(truth, rows)), select(detections, rows)
    classes = len(predictions.classes)
    if one_class:
        objects, detected = (
            # zeros that nobody wrote take no memory
            replace(boxes, label=np.zeros(len(boxes), dtype=np.int64))
            for boxes in (objects, detected)
        )
        classes = 1
    return Frames(rows, np.asarray(videos, dtype=np.str_), objects, detected, classes)


def limit_frames(images: Frames, size: str, detections: int) -> Frames:
    """The images with the objects of a size alone, and so many detections an image and class.

    `size`: COCO's "all", "small" (up to 32² square pixels), "medium" (up to 96²) or "large".
    `detections`: the most confident, at most 100. Objects of other sizes, detections on them, and
    unmatched detections of other sizes are ignored. Raises `UsageError` for other values.
    """
    if size not in AREAS:
        raise unknown("size of objects", size, tuple(AREAS))
    if isinstance(detections, bool) or not 1 <= detections <= MOST:
        raise UsageError(f"detections={detections}: give 1 to {MOST}")
    limited = replace(images, area=AREAS[size])
    if detections == MOST:
        return limited  # which matching itself does
    table = images.detections
    order = np.lexsort((-table.score, table.label, table.image))
    key = table.image[order] * images.classes + table.label[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    rank = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return replace(limited, detections=take(table, np.sort(order[rank < detections])))


def frames_without_ood(predictions: Predictions, rows: NDArray[np.intp]) -> Frames:
    """The images of `rows` with the objects outside the model's classes apart, as `outside`.

    Those are the boxes labelled so, and the boxes of classes that no class of the model maps to.
    """
    plain = frames(predictions, rows)
    assert predictions.boxes is not None, "checked by frames"
    true_boxes = select(predictions.boxes, rows)
    apart = outside(predictions, true_boxes)
    truth = take(true_boxes, np.flatnonzero(~apart))
    return replace(plain, truth=truth, outside=take(true_boxes, np.flatnonzero(apart)))


def outside(predictions: Predictions, truth: BoxTable) -> NDArray[np.bool_]:
    """(n,) the true boxes of objects outside the classes of the data or of the model.

    The model's classes are those to which one of its own maps, without their descendants: AP
    matches a box only with its own class, so a detector of persons can never find a woman, and
    "person" on her is no mistake. The causes of mistakes use
    `explain.mining.causes.find_known_classes` instead.
    """
    reached = np.ones(len(predictions.classes), dtype=np.bool_)
    if predictions.model_to_data_class is not None:
        reached = np.isin(np.arange(len(reached)), predictions.model_to_data_class)
    return np.asarray((truth.label == OOD) | ~reached[truth.label], dtype=np.bool_)


def select_counted_rows(predictions: Predictions) -> NDArray[np.intp]:
    """The rows that count for plain metrics: anchors if there are pm-sets, otherwise all.

    Without rows that were not predicted.
    """
    rows = predictions.valid
    if "offset" in predictions.tags:
        rows = rows & (predictions.tags["offset"] == 0)
    return np.flatnonzero(rows)


def worst(
    sets: PmSets, quality: NDArray[np.float64], k: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of every set the frame of lowest quality within ±k, and the sets that have one.

    `quality`: (rows,) frame AP, NaN for frames without objects, which are no candidates. Ties go
    to the smallest |offset|, then to the earlier frame.
    """
    near = (sets.set_of >= 0) & (np.abs(sets.offsets) <= k) & ~np.isnan(quality)
    rows = np.flatnonzero(near)
    offset = sets.offsets[rows]
    order = rows[np.lexsort((offset, np.abs(offset), quality[rows], sets.set_of[rows]))]
    members, first = np.unique(sets.set_of[order], return_index=True)
    return order[first], members


def frame_quality(
    predictions: Predictions, iou: float, one_class: bool = False
) -> NDArray[np.float64]:
    """(rows,) the frame AP of every row; NaN where it has no object or was not predicted."""
    rows = np.flatnonzero(predictions.valid)
    quality = np.full(len(predictions), np.nan)
    quality[rows] = frame_ap(frames(predictions, rows, one_class).match_detections(), iou)
    return quality


def ap(thresholds: Sequence[float]) -> Table:
    """AP at some thresholds, whose mean is mAP."""
    return lambda matched, weight: dataset_ap(matched, thresholds, weight)


def mean(table: NDArray[np.float64]) -> float:
    """The mean of a `Table` over thresholds and the classes that are there; NaN without any."""
    values = table[~np.isnan(table)]
    return float(values.mean()) if values.size else float("nan")


def spread_of(
    matched: Matched, table: Table, videos: NDArray[np.str_], rows: NDArray[np.intp] | None = None
) -> Spread:
    """How the values of classes move with the videos.

    `rows`: (images,) which of `videos`, and of the weights of a resample, is that of each image;
    None: the same in order.
    """

    def evaluate(weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
        values = table(matched, weight if weight is None or rows is None else weight[rows])
        return np.asarray(values.mean(axis=0), dtype=np.float64)

    return find_spread(evaluate, find_presence(matched, len(videos), rows), videos)


def result(name: str, images: Frames, table: Table, notes: tuple[str, ...] = ()) -> Result:
    """A mean over classes with its interval (`class_means`), and the images per class.

    Matched once; resamples only weigh images. Value None without objects.
    """
    moves = spread_of(images.match_detections(), table, images.videos)
    own = mean_of_classes(moves, len(images.rows))
    notes = notes if own.value is None else (*notes, moves.note())
    return Result(name, own.value, own.low, own.high, own.n, own.method, notes)


def statistic(images: Frames, table: Table) -> Statistic:
    """The statistic by which models are compared on a measure of images."""
    matched = images.match_detections()

    def resample_images(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.array([mean(table(matched, weight)) for weight in weights.astype(np.int64)])

    def spread() -> Spread:
        return spread_of(matched, table, images.videos)

    def interval() -> Interval:
        return mean_of_classes(spread(), len(images.rows))

    value = mean(table(matched, None))
    return Statistic(value, images.videos, resample_images, interval, spread)


@dataclass(frozen=True, eq=False)
class ClassMeasures:
    """A measure of images by class, and how it moves with them.

    `objects`: (classes,) to be found. `images`: how many there are.
    """

    spread: Spread
    objects: NDArray[np.int64]
    images: int

    @property
    def whole(self) -> Interval:
        """The mean over the classes that are there."""
        return mean_of_classes(self.spread, self.images)


def recall(matched: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Recall of the 100 best detections of an image and class at each threshold."""
    return average_recall(matched, weight=weight)


def measure_by_class(frames: Frames, table: Table) -> ClassMeasures:
    """A measure of images, matched once."""
    matched = frames.match_detections()
    groups = matched.groups
    objects = np.bincount(groups.label, matched.positives, frames.classes).astype(np.int64)
    return ClassMeasures(spread_of(matched, table, frames.videos), objects, len(frames.rows))


def by_class(name: str, measures: ClassMeasures, classes: Sequence[str]) -> Result:
    """The mean over thresholds and classes; `cells`: that of each class that is there.

    The n of a class is how many objects of it are to be found, that of the whole the images. Each
    class has the interval of the images that it stands on. Value None without objects.
    """
    whole, spread = measures.whole, measures.spread
    if whole.value is None:
        return Result(name, None, None, None, measures.images, whole.method)

    def make_cell(at: int) -> Result:
        own = of_class(spread, at, int(measures.objects[at]))
        return Result(classes[at], own.value, own.low, own.high, own.n, own.method)

    cells = tuple(make_cell(int(at)) for at in np.flatnonzero(spread.is_present))
    ends = (whole.low, whole.high, whole.n, whole.method)
    return Result(name, whole.value, *ends, (spread.note(),), cells)


def relative_drop(own: Interval, other: Interval) -> Result:
    """The relative drop of a mean from a reference set: 1 − own ÷ other.

    `other`: that of the reference set. Below 0 where it is higher. The two sets share no image; the
    interval is recovered from those of the two (Donner and Zou, "Closed-form confidence intervals
    for functions of the normal mean and standard deviation", 2012, Equation 9). Value None if
    either has no value or the reference is 0; no lower end if the reference may be 0.
    """
    n = own.n
    if own.value is None or not other.value:
        return Result("drop", None, None, None, n, "none: the reference value is 0")
    value = 1 - own.value / other.value
    if own.low is None or own.high is None or other.low is None or other.high is None:
        why = own.method if own.low is None else f"{other.method} of the reference data"
        return Result("drop", value, None, None, n, why)
    least = _ratio(own.value, own.low, other.value, other.high)
    most = _ratio(own.value, own.high, other.value, other.low)
    method = (
        f"from the intervals of both: {own.method}; {number_of(other.n, 'image')} of the reference "
        "data"
    )
    low = None if most is None else 1 - most
    return Result("drop", value, low, 1 if least is None else 1 - least, n, method)


def _ratio(value: float, end: float, other: float, far: float) -> float | None:
    """An end of one ÷ other, from the `end` of the one and the opposite of the other; None: ∞."""
    below = far * (2 * other - far)
    if below <= 0:
        return None
    product = value * other
    root = sqrt(max(product**2 - end * (2 * value - end) * below, 0.0))
    return (product + (root if end > value else -root)) / below
