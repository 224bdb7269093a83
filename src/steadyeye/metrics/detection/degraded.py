"""Detectors under degradation: mAP and objects still found at each level, and where they fail.

mPC, the mean performance under corruption, is the mean over operators of the mean over their levels
from 1 on, and rPC that ÷ the performance on undegraded images: Michaelis et al., "Benchmarking
Robustness in Object Detection: Autonomous Driving when Winter is Coming", 2019, Equations 1 and 2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, iou, reach_score
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.class_means import Spread, less, mean_difference, mean_of_classes
from steadyeye.core.stats.class_means import spread as find_spread
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Result
from steadyeye.degradation.curves import MEAN, UNKNOWN, Profiles, list_rows
from steadyeye.metrics.detection.assignment import assign
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.frame_ap import frames
from steadyeye.metrics.detection.iou_thresholds import ious
from steadyeye.metrics.detection.matching import Matched
from steadyeye.metrics.detection.positives import find_presence

Weights = NDArray[np.int64] | None
Place = tuple[str, int]
"""An operator and one of its levels."""
FOUND = 0.5
"""Score from which an object counts as found."""

NO_MAP = "none: mAP is 0 at level 0"
NO_OBJECTS = "none: there are no objects"
NONE_FOUND = "none: no object is found at level 0"


@dataclass(frozen=True, eq=False)
class MapProfile:
    """mAP by operator and level, each with how it moves with the images.

    `operators`: name → level → spread, from level 0, which is the same for all. `clean`: of level
    0. `every`: of the mean over operators of the mean over levels from 1. `by_operator`: of the
    mean over an operator's levels from 1. `images`: how many there are.
    """

    operators: Mapping[str, Mapping[int, Spread]]
    clean: Spread
    every: Spread
    by_operator: Mapping[str, Spread]
    images: int
    lost: int

    @property
    def notes(self) -> tuple[str, ...]:
        """On how many images a class stands, and how many images are left out."""
        more = number_of(self.lost, "image")
        left = (f"{more} left out: no prediction at some level",) if self.lost else ()
        return (self.clean.note(), *left)


def profile_map(predictions: Predictions, iou_threshold: float | str) -> MapProfile:
    """MAP at each level of each operator, over the images that were predicted at all of them."""
    sweep = list_rows(predictions)
    thresholds = ious(iou_threshold)
    matches = {
        (operator, int(level)): frames(predictions, rows).match_detections()
        for operator, levels, of_levels in sweep.curves()
        for level, rows in zip(levels, of_levels, strict=True)
    }
    levels_of = {
        operator: [level for name, level in matches if name == operator]
        for operator in sweep.operators
    }
    clean = sweep.operators[0], 0
    videos, evaluate = sweep.videos, _remember(matches, thresholds)
    presence = {place: find_presence(m, len(sweep.images)) for place, m in matches.items()}

    def spread_at(place: tuple[str, int]) -> Spread:
        return find_spread(lambda weight: evaluate(weight)[place], presence[place], videos)

    def spread_of_means(*names: str) -> Spread:
        places = [[(name, level) for level in levels_of[name] if level] for name in names]
        return find_spread(_average(evaluate, clean, places), presence[clean], videos)

    first = spread_at(clean)
    operators = {
        operator: {level: spread_at((operator, level)) if level else first for level in levels}
        for operator, levels in levels_of.items()
    }
    by_operator = {operator: spread_of_means(operator) for operator in sweep.operators}
    every = spread_of_means(*sweep.operators)
    return MapProfile(operators, first, every, by_operator, len(sweep.images), sweep.lost)


def _average(
    evaluate: Callable[[Weights], Mapping[Place, NDArray[np.float64]]],
    clean: Place,
    operators: Sequence[Sequence[Place]],
) -> Callable[[Weights], NDArray[np.float64]]:
    """A function of weights: the mean over operators of the mean over levels of AP by class.

    Its mean over the classes at level 0, `clean`, is the mean of mAP. `operators`: the levels of
    each. Where an operator moves all objects of a class out of the image, mAP is that of the other
    classes, and a level without any object has none.
    """
    whole = evaluate(None)
    has_objects = {place: ~np.isnan(values) for place, values in whole.items()}
    counted = [[place for place in places if has_objects[place].any()] for places in operators]
    classes = has_objects[clean].sum()

    def read(place: Place, weight: Weights) -> NDArray[np.float64]:
        values = evaluate(weight)[place]
        # a resample without the objects of a class does not move it
        filled = np.where(np.isnan(values), whole[place], values)
        scale = classes / has_objects[place].sum()
        return np.asarray(np.nan_to_num(filled) * scale, dtype=np.float64)

    def average(weight: Weights) -> NDArray[np.float64]:
        means = [
            np.mean([read(place, weight) for place in places], axis=0)
            for places in counted
            if places
        ]
        mean = np.mean(means, axis=0) if means else np.nan
        return np.where(np.isnan(evaluate(weight)[clean]), np.nan, mean)

    return average


def _remember(
    matches: Mapping[tuple[str, int], Matched], thresholds: Sequence[float]
) -> Callable[[Weights], Mapping[tuple[str, int], NDArray[np.float64]]]:
    """AP of each class at every operator and level, cached for each weighting."""
    known: dict[bytes, dict[tuple[str, int], NDArray[np.float64]]] = {}

    def evaluate(weight: Weights) -> Mapping[tuple[str, int], NDArray[np.float64]]:
        key = b"" if weight is None else weight.tobytes()
        if key not in known:
            # level 0 is of one match, whatever the operator
            zero = next(
                dataset_ap(m, thresholds, weight).mean(axis=0)
                for (_, level), m in matches.items()
                if level == 0
            )
            known[key] = {
                place: zero if place[1] == 0 else dataset_ap(m, thresholds, weight).mean(axis=0)
                for place, m in matches.items()
            }
        return known[key]

    return evaluate


def retain(part: Spread, clean: Spread, n: int) -> Interval:
    """The retained share of mAP, `part` ÷ `clean`, both of the same images; None if `clean` is 0.

    The interval is that of the ratio, linearised: how far it moves with a video is
    (moves of the part − ratio · moves of the clean) ÷ clean.
    """
    present = clean.is_present
    if not present.any():
        return Interval(None, None, None, n, NO_OBJECTS)
    whole = float(clean.values[present].mean())
    if whole <= 0:
        return Interval(None, None, None, n, NO_MAP)
    if not part.is_present.any():
        return Interval(None, None, None, n, NO_OBJECTS)
    ratio = float(part.values[part.is_present].mean()) / whole
    scaled = replace(
        clean, values=ratio * clean.values, moves=ratio * clean.moves, bias=ratio * clean.bias
    )
    # by class: a class on few images adds no more to the error than its share of the mean
    apart = less(part, scaled)
    values, moves, bias = apart.values / whole + ratio - 1, apart.moves / whole, apart.bias / whole
    own = mean_difference(replace(apart, values=values, moves=moves, bias=bias), n)
    low, high = (None if end is None else max(end + 1, 0.0) for end in (own.low, own.high))
    return Interval(ratio, low, high, n, own.method)


def measure_mpc(predictions: Predictions, iou_threshold: float | str) -> Result:
    """`mpc`, with its operators and their levels as cells."""
    profile = profile_once(predictions, iou_threshold)
    n = profile.images
    cells = []
    for operator, levels in profile.operators.items():
        inner = tuple(
            Result.of(f"level {level}", mean_of_classes(spread, n))
            for level, spread in levels.items()
        )
        own = mean_of_classes(profile.by_operator[operator], n)
        cells.append(replace(Result.of(operator, own), cells=inner))
    whole = mean_of_classes(profile.every, n)
    if len(cells) > 1:
        cells.append(Result.of(MEAN, whole))
    name = f"mpc(iou={iou_threshold})"
    return Result.of(name, whole, notes=profile.notes, cells=tuple(cells))


def measure_rpc(predictions: Predictions, iou_threshold: float | str) -> Result:
    """`rpc`, with its operators as cells."""
    profile = profile_once(predictions, iou_threshold)
    cells = tuple(
        Result.of(operator, retain(spread, profile.clean, profile.images), unit="ratio")
        for operator, spread in profile.by_operator.items()
    )
    whole = retain(profile.every, profile.clean, profile.images)
    name, notes = f"rpc(iou={iou_threshold})", profile.notes
    return Result.of(name, whole, notes=notes, cells=cells, unit="ratio")


profile_once = lru_cache(maxsize=4)(profile_map)
"""Of the last predictions: several numbers and a section of the report read the same profile."""


def find_objects(predictions: Predictions, score: float) -> NDArray[np.bool_]:
    """(b,) which true boxes of the table are found, by detections of `score` or more.

    By their class and with an IoU of 0.5 or more; in each image as many as there can be.
    """
    truth, detections = predictions.boxes, predictions.detections
    assert truth is not None, "a metric of boxes needs the column"
    assert detections is not None, "a metric of detections needs the column"
    hits = np.zeros(len(truth), dtype=np.bool_)
    strong = np.flatnonzero(reach_score(detections.score, score))
    strong = strong[np.argsort(detections.image[strong], kind="stable")]
    starts = np.searchsorted(detections.image[strong], np.arange(len(predictions) + 1))
    bounds = np.searchsorted(truth.image, np.arange(len(predictions) + 1))
    for image in np.flatnonzero((np.diff(starts) > 0) & (np.diff(bounds) > 0)):
        objects = np.arange(bounds[image], bounds[image + 1])
        objects = objects[~truth.crowd[objects]]
        near = strong[starts[image] : starts[image + 1]]
        same = truth.label[objects][:, None] == detections.label[near][None]
        overlap = np.where(same, iou(truth.boxes[objects], detections.boxes[near]), 0.0)
        for place, _ in assign(overlap):
            hits[objects[place]] = True
    return hits


@dataclass(frozen=True, eq=False)
class ObjectProfiles:
    """The objects of a sweep as the images of `Profiles` are, and which are found in which row.

    `hits`: what `profiles.row` points into, 0 or 1; NaN where an operator moved the object out of
    the image, which is then ignored.
    """

    profiles: Profiles
    hits: NDArray[np.float32]

    @property
    def notes(self) -> tuple[str, ...]:
        """Which objects and images are left out, and why."""
        wrong, lost = self.profiles.wrong, self.profiles.lost
        notes = [f"{number_of(wrong, 'object')} left out: not found at level 0"] if wrong else []
        if lost:
            notes.append(f"{number_of(lost, 'image')} left out: no prediction at some level")
        row = self.profiles.row
        outside = int((np.isnan(self.hits[row]) & (row != UNKNOWN)).any(axis=(0, 1)).sum())
        if outside:
            counted = number_of(outside, "object")
            notes.append(f"{counted} ignored at some level: moved outside the image")
        return tuple(notes)


def profile_objects(predictions: Predictions, objects: str, score: float) -> ObjectProfiles | None:
    """Every true object at every level, in images with predictions at all levels.

    `objects`: "found", those found at level 0, or "all". None if there are none. Raises
    `UsageError` for another text.
    """
    if objects not in ("found", "all"):
        raise UsageError(f"objects='{objects}': give 'found', those found at level 0, or 'all'")
    truth = predictions.boxes
    assert truth is not None, "a metric of boxes needs the column"
    sweep = list_rows(predictions)
    hits = find_objects(predictions, score)
    counted = ~truth.crowd & (truth.label != OOD)
    bounds = np.searchsorted(truth.image, np.arange(len(predictions) + 1))
    zero = [np.arange(bounds[row], bounds[row + 1]) for row in sweep.row[0, 0]]
    sizes = np.array([len(part) for part in zero], dtype=np.int64)
    image = np.repeat(np.arange(len(zero)), sizes)
    first = np.concatenate([np.zeros(0, dtype=np.intp), *zero])
    number = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = sweep.row[:, :, image]
    places = np.where(rows == UNKNOWN, UNKNOWN, bounds[rows] + number)
    keep = counted[first] & (hits[first] if objects == "found" else True)
    if not keep.any():
        return None
    names = np.array(
        [f"{sweep.images[i]}#{k}" for i, k in zip(image[keep], number[keep], strict=True)]
    )
    own = replace(
        sweep,
        baseline="right" if objects == "found" else "all",
        images=names,
        videos=sweep.videos[image[keep]],
        row=places[:, :, keep],
        wrong=int((counted[first] & ~keep).sum()),
    )
    return ObjectProfiles(own, np.where(truth.crowd, np.float32(np.nan), hits))
