"""A detector at one score threshold: precision, recall and F1, and the threshold of the best F1.

Detections of a score or more count, at most 100 an image and class, matched as for AP
(`steadyeye.metrics.detection.matching`): a detection below a threshold never takes an object from
one above it. A detection on a crowd or on an ignored object is neither right nor wrong. Classes are
pooled (micro averages), also those without an object: their detections are false positives, while
COCO leaves such classes out of its means.

F1: van Rijsbergen, "Information Retrieval", 1979.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import reach_score
from steadyeye.core.errors import UsageError
from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import CellTrials, Interval, proportions
from steadyeye.core.stats.trials import Statistic, share_statistic
from steadyeye.core.types import Result
from steadyeye.metrics.detection.frame_ap import Frames, frames, select_counted_rows
from steadyeye.metrics.detection.iou_thresholds import IOUS, ious

SCORE = 0.5
"""The default threshold."""

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranked:
    """The n detections of some images that are right or wrong at one IoU, by falling score.

    `score`: (n,) float64. `image`, `label`: (n,) int64. `hit`: (n,) bool, true positives.
    `object_image`, `object_label`: (m,) int64, of the objects to be found. `videos`: (images,) what
    intervals are clustered by.
    """

    score: Floats
    image: Ints
    label: Ints
    hit: NDArray[np.bool_]
    object_image: Ints
    object_label: Ints
    videos: NDArray[np.str_]

    def select_from(self, score: float) -> "Ranked":
        """The detections of a score or more, in single precision, all objects."""
        return self.select_first(int(np.count_nonzero(reach_score(self.score, score))))

    def select_first(self, end: int) -> "Ranked":
        """The first `end` detections, all objects."""
        detections = {
            name: getattr(self, name)[:end] for name in ("score", "image", "label", "hit")
        }
        return replace(self, **detections)


@dataclass(frozen=True, eq=False)
class DetectionCounts:
    """True positives, detections that are right or wrong, and objects to be found: float64."""

    right: Floats
    detected: Floats
    objects: Floats


Ratio: TypeAlias = Callable[[DetectionCounts], tuple[Floats, Floats]]
"""Successes, and how many there could be."""


def precision(counts: DetectionCounts) -> tuple[Floats, Floats]:
    """True positives of the detections."""
    return counts.right, counts.detected


def recall(counts: DetectionCounts) -> tuple[Floats, Floats]:
    """True positives of the objects."""
    return counts.right, counts.objects


def f1(counts: DetectionCounts) -> tuple[Floats, Floats]:
    """The harmonic mean of both: twice the true positives of detections and objects."""
    return 2 * counts.right, counts.detected + counts.objects


LACKING: dict[Ratio, str] = {
    precision: "none: no detection has this score",
    recall: "none: there are no objects",
    f1: "none: there are neither detections nor objects",
}


def rank_detections(images: Frames, iou: float) -> Ranked:
    """The detections matched at `iou`, the best first; raises `UsageError` for another IoU."""
    thresholds = ious(iou)
    if len(thresholds) > 1:
        raise UsageError(f"iou={iou!r}: give one of 0.5, 0.55 … 0.95")
    matched = images.match_detections()
    groups, bit = matched.groups, np.uint16(1 << IOUS.index(thresholds[0]))
    counted = np.flatnonzero((matched.ignored & bit) == 0)
    score = images.detections.score[groups.row[counted]]
    best_first = np.argsort(-score, kind="stable")
    order = counted[best_first]
    label = np.repeat(np.arange(groups.classes), np.diff(groups.bounds))
    return Ranked(
        score[best_first],
        groups.row_image[order].astype(np.int64),
        label[order],
        (matched.hit[order] & bit) > 0,
        np.repeat(groups.image.astype(np.int64), matched.positives),
        np.repeat(groups.label.astype(np.int64), matched.positives),
        images.videos,
    )


def rank_predictions(predictions: Predictions, iou: float) -> Ranked:
    """The detections of the images that count, as for `map`."""
    return rank_detections(frames(predictions, select_counted_rows(predictions)), iou)


def count(detections: Ranked, of_detection: Ints, of_object: Ints, size: int) -> DetectionCounts:
    """Counts in `size` cells; `of_detection`, `of_object`: the cell of each."""
    right, detected, objects = (
        np.bincount(cells, minlength=size).astype(np.float64)
        for cells in (of_detection[detections.hit], of_detection, of_object)
    )
    return DetectionCounts(right, detected, objects)


def count_by_image(detections: Ranked) -> DetectionCounts:
    """Counts of each image, all classes together."""
    return count(detections, detections.image, detections.object_image, len(detections.videos))


def check_score(score: float) -> None:
    """Raises `UsageError` for a score that is no number."""
    if isinstance(score, bool | str) or not isfinite(score):
        raise UsageError(f"score={score!r}: give a number, such as {SCORE:g}")


def measure(predictions: Predictions, ratio: Ratio, score: float, iou: float) -> Result:
    """A ratio of the detections of a score or more, its interval clustered by video or image.

    `cells`: of each class with a detection or an object that counts in it. n detections for
    precision, objects for recall; images for F1, whose classes have objects. Value None without
    anything to count; the method says what is missing.
    """
    check_score(score)
    every = rank_predictions(predictions, iou)
    some = every.select_from(score)
    name = name_result(f"{ratio.__name__}_at", {"score": score}, iou)
    whole = find_interval(some, ratio)
    n = len(some.videos) if ratio is f1 else whole.n
    if whole.value is None:
        return Result(name, None, None, None, n, LACKING[ratio])
    cells = _measure_classes(some, ratio, predictions.classes)
    return Result.of(name, replace(whole, n=n), notes=note_absent(some), cells=cells)


def name_result(name: str, parameters: dict[str, float], iou: float) -> str:
    """The name of a result, with the IoU where it is not the usual one."""
    parameters = parameters | ({} if iou == 0.5 else {"iou": iou})
    text = ", ".join(f"{key}={value:g}" for key, value in parameters.items())
    return f"{name}({text})" if text else name


def find_interval(some: Ranked, ratio: Ratio) -> Interval:
    """A ratio over all classes, clustered by video, or by image where each is its own."""
    image = np.arange(len(some.videos))
    return _find_intervals(some, ratio(count_by_image(some)), image, np.zeros_like(image))[0]


def _measure_classes(some: Ranked, ratio: Ratio, classes: Sequence[str]) -> tuple[Result, ...]:
    """A ratio of each class that has any part in it."""
    size = len(some.videos)
    of_detection = some.label * size + some.image
    of_object = some.object_label * size + some.object_image
    counts = count(some, of_detection, of_object, len(classes) * size)
    wins, totals = ratio(counts)
    rows = np.flatnonzero(totals)
    present, cell = np.unique(rows // size, return_inverse=True)
    intervals = _find_intervals(some, (wins[rows], totals[rows]), rows % size, cell)
    objects = counts.objects.reshape(-1, size).sum(axis=1).astype(np.int64)
    return tuple(
        Result.of(classes[at], replace(own, n=int(objects[at])) if ratio is f1 else own)
        for at, own in zip(present.tolist(), intervals, strict=True)
    )


def _find_intervals(
    some: Ranked, sums: tuple[Floats, Floats], image: Ints, cell: NDArray[np.intp]
) -> list[Interval]:
    """The ratio of each cell; `sums`: the parts of one cell in one image, which `image` says."""
    wins, totals = (np.rint(values).astype(np.int64) for values in sums)
    trials = CellTrials(wins, totals, some.videos[image], cell)
    intervals = proportions(trials, int(cell.max(initial=0)) + 1)
    if len(np.unique(some.videos)) < len(some.videos):
        return intervals
    return [replace(own, method=_name_images(own.method)) for own in intervals]


def _name_images(method: str) -> str:
    """The method with images for videos, of images that are each a cluster of its own."""
    return method.removesuffix(f", {WITHIN}").replace("video", "image").replace("frame", "image")


def note_absent(some: Ranked) -> tuple[str, ...]:
    """How many detections are of classes without an object."""
    absent = int(np.count_nonzero(~np.isin(some.label, some.object_label)))
    if not absent:
        return ()
    return (
        f"{absent:,} of {number_of(len(some.label), 'detection')} "
        f"{'is' if absent == 1 else 'are'} of classes without an object here: false positives, "
        "which map leaves out",
    )


def statistic(
    ratio: Ratio, predictions: Predictions, score: float = SCORE, iou: float = 0.5
) -> Statistic:
    """The statistic by which models are compared on a ratio at one score."""
    check_score(score)
    some = rank_predictions(predictions, iou).select_from(score)
    parts = ratio(count_by_image(some))
    return share_statistic(parts, some.videos, lambda: find_interval(some, ratio))
