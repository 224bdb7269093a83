"""Frames of a detector's predictions: their AP, the worst of each pm-set, and intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable, in_classes, select, take
from steadyeye.core.errors import UsageError
from steadyeye.core.pm_sets import PmSets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.class_means import Spread, mean_of_classes
from steadyeye.core.stats.class_means import spread as find_spread
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result
from steadyeye.metrics.detection.average_precision import dataset_ap, frame_ap
from steadyeye.metrics.detection.matching import IOUS, Matched, excused, match

Table = Callable[[Matched, NDArray[np.int64] | None], NDArray[np.float64]]
"""`(matched, weight) -> (ious, classes)`, each image counting `weight` times; NaN for classes
without an object. What is measured is its mean."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Some images of a table with their boxes, n of them.

    `rows`: (n,) their rows. `videos`: (n,) what intervals are clustered by. `outside`: objects on
    which a detection that was matched to nothing is ignored; None: it is a false positive.
    """

    rows: NDArray[np.intp]
    videos: NDArray[np.str_]
    truth: BoxTable
    detections: BoxTable
    classes: int
    outside: BoxTable | None = None

    def matched(self) -> Matched:
        """The detections matched to what is there, once for all thresholds."""
        found = match(self.truth, self.detections, len(self.rows), self.classes)
        if self.outside is None:
            return found
        return excused(found, self.detections, self.outside)


def frames(predictions: Predictions, rows: NDArray[np.intp], one_class: bool = False) -> Frames:
    """The images of `rows`; `one_class`: all categories made one, for localization.

    Without the objects outside the classes: a detection of one is a false positive.
    """
    truth, found = predictions.boxes, predictions.detections
    assert truth is not None, "a metric of boxes needs the column"
    assert found is not None, "a metric of detections needs the column"
    videos = predictions.tags.get("video", predictions.ids)[rows]
    there, said = in_classes(select(truth, rows)), select(found, rows)
    classes = len(predictions.classes)
    if one_class:
        there, said = (replace(each, label=np.zeros_like(each.label)) for each in (there, said))
        classes = 1
    return Frames(rows, np.asarray(videos, dtype=np.str_), there, said, classes)


def frames_without_ood(predictions: Predictions, rows: NDArray[np.intp]) -> Frames:
    """The images of `rows` with the objects outside the model's classes apart, as `outside`.

    Those are the boxes labelled so, and the boxes of classes that no class of the model maps to.
    """
    plain = frames(predictions, rows)
    assert predictions.boxes is not None, "checked by frames"
    there = select(predictions.boxes, rows)
    apart = outside(predictions, there)
    truth = take(there, np.flatnonzero(~apart))
    return replace(plain, truth=truth, outside=take(there, np.flatnonzero(apart)))


def outside(predictions: Predictions, truth: BoxTable) -> NDArray[np.bool_]:
    """(n,) the true boxes of objects outside the classes of the data or of the model.

    Of the model are the classes that one of its own maps to, without those below them in a
    hierarchy: AP takes a box for found by its own class alone, so that for a detector of persons a
    woman is a box that it can never find, and "person" on her no mistake to count. What a mistake
    is on is asked otherwise, of `explain.mining.class_hierarchy.stood_for`.
    """
    reached = np.ones(len(predictions.classes), dtype=np.bool_)
    if predictions.model_to_data_class is not None:
        reached = np.isin(np.arange(len(reached)), predictions.model_to_data_class)
    return np.asarray((truth.label == OOD) | ~reached[truth.label], dtype=np.bool_)


def counted(predictions: Predictions) -> NDArray[np.intp]:
    """The rows that plain numbers are of: anchors where there are pm-sets, all that there are else.

    Without those that were not predicted.
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
    quality[rows] = frame_ap(frames(predictions, rows, one_class).matched(), iou)
    return quality


def ious(iou: float | str) -> tuple[float, ...]:
    """The thresholds of a parameter: one of 0.5 … 0.95, or "coco" for all ten.

    Raises `UsageError` for another.
    """
    if iou == "coco":
        return IOUS
    near = [each for each in IOUS if isinstance(iou, int | float) and abs(each - iou) < 1e-9]
    if not near:
        raise UsageError(f"iou={iou!r}: give 0.5, 0.55 … 0.95, or 'coco' for all ten")
    return (near[0],)


def ap(thresholds: Sequence[float]) -> Table:
    """AP at some thresholds, whose mean is mAP."""
    return lambda matched, weight: dataset_ap(matched, thresholds, weight)


def mean(table: NDArray[np.float64]) -> float:
    """The mean of a `Table` over thresholds and the classes that are there; NaN without any."""
    there = table[~np.isnan(table)]
    return float(there.mean()) if there.size else float("nan")


def spread_of(
    matched: Matched, table: Table, videos: NDArray[np.str_], rows: NDArray[np.intp] | None = None
) -> Spread:
    """How the values of classes move with the videos.

    `rows`: (images,) which of `videos`, and of the weights of a resample, is that of each image;
    None: the same in order.
    """
    groups = matched.groups
    at = np.arange(groups.images) if rows is None else rows
    presence = np.zeros((len(videos), groups.classes), dtype=np.bool_)
    some = matched.positives > 0
    presence[at[groups.image[some]], groups.label[some]] = True

    def evaluate(weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
        found = table(matched, None if weight is None else weight[at])
        return np.asarray(found.mean(axis=0), dtype=np.float64)

    return find_spread(evaluate, presence, videos)


def result(name: str, found: Frames, table: Table, notes: tuple[str, ...] = ()) -> Result:
    """A mean over classes with its interval (`class_means`), and on how much a class stands.

    Matched once; what is counted anew only weighs images. Value None without objects.
    """
    measured = spread_of(found.matched(), table, found.videos)
    own = mean_of_classes(measured, len(found.rows))
    notes = notes if own.value is None else (*notes, measured.note())
    return Result(name, own.value, own.low, own.high, own.n, own.method, notes)


def statistic(found: Frames, table: Table) -> Statistic:
    """What models are compared by on a measure of images."""
    matched = found.matched()

    def resampled(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.array([mean(table(matched, weight)) for weight in weights.astype(np.int64)])

    def spread() -> Spread:
        return spread_of(matched, table, found.videos)

    def interval() -> Interval:
        return mean_of_classes(spread(), len(found.rows))

    value = mean(table(matched, None))
    return Statistic(value, found.videos, resampled, interval, spread)
