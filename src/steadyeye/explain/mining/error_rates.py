"""The error rates of confident detections, by cause and by pair of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.disk_columns import read_entries
from steadyeye.core.format import interval, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import limit
from steadyeye.core.stats.intervals import CellTrials, Interval, proportion, proportions
from steadyeye.core.types import Result
from steadyeye.explain.mining.causes import (
    CAUSES,
    IN_CROWD,
    MISTAKES,
    SCORE,
    WORDS,
    Judged,
    judge_detections,
)
from steadyeye.explain.mining.mistakes import name_of

COUNTED = {**WORDS, "background": "where no object is labelled"}
"""Cause → words after its count, on the place of the mistakes."""


@dataclass(frozen=True)
class Shares:
    """Numbers of one model's confident detections by verdict.

    `excused`: in a crowd of their class; `unverified`: as the cause. All others are judged.
    `wrong`: the share of mistakes among the judged ones; `causes`: the share of each of `MISTAKES`.
    """

    confident: int
    excused: int
    unverified: int
    wrong: Interval
    causes: tuple[Interval, ...]

    @property
    def n_judged(self) -> int:
        """The number of detections that the annotation can judge."""
        return self.wrong.n


def shares(predictions: Predictions, verdicts: Judged) -> Shares:
    """The shares of a table's confident detections; n = 0 and no value if none is judged.

    Intervals are those of shares (`core.stats.intervals`), clustered by image, or by video if
    images come from videos.
    """
    raw = predictions.raw_detections
    assert raw is not None, "judged"
    unverified = CAUSES.index("unverified")
    judgeable = (verdicts.cause != IN_CROWD) & (verdicts.cause != unverified)
    cause = verdicts.cause[judgeable]
    filmed = "video" in predictions.tags
    clusters = predictions.tags["video"] if filmed else predictions.ids
    images = read_entries(raw.image, verdicts.detection[judgeable])
    of = np.unique(clusters, return_inverse=True)[1][images]
    wins = [cause >= 0, *(cause == i for i in range(len(MISTAKES)))]
    every = proportions(_count_by_cluster(wins, of), len(wins))
    every = every if filmed else list(map(of_images, every))
    return Shares(
        confident=len(verdicts),
        excused=int((verdicts.cause == IN_CROWD).sum()),
        unverified=int((verdicts.cause == unverified).sum()),
        wrong=every[0],
        causes=tuple(every[1:]),
    )


def _count_by_cluster(wins: Sequence[NDArray[Any]], cluster: NDArray[np.intp]) -> CellTrials:
    """The trials of cells of the same detections; `wins`, `cluster`: (n,) of each detection.

    With several clusters, all trials of one are counted together, because there may be millions.
    """
    times = np.bincount(cluster)
    several = np.flatnonzero(times)
    # with a single cluster each trial counts by itself
    place, totals = cluster, np.ones(len(cluster), dtype=np.int64)
    if len(several) > 1:
        place, totals = several, times[several]
        wins = [np.bincount(cluster, own)[several].astype(np.int64) for own in wins]
    cells = len(wins)
    return CellTrials(
        np.concatenate(wins),
        np.tile(totals, cells),
        np.tile(place, cells),
        np.repeat(np.arange(cells), len(place)),
    )


def share_results(of: Shares, classes: int) -> Mapping[str, Result]:
    """The shares as results: all mistakes, then each cause; empty if nothing is judged.

    `classes`: number of the detector's classes.
    """
    if not of.n_judged:
        return {}
    every = {"confident_mistakes": of.wrong, **dict(zip(MISTAKES, of.causes, strict=True))}
    return {name: Result.of(name, share, classes=classes) for name, share in every.items()}


def summarize(predictions: Predictions, of: Shares, score: float, several: bool) -> str:
    """One sentence: the share of a model's confident detections that is wrong, and where.

    `score`: above it a detection is confident. `several`: whether there are other data too.
    """
    name = predictions.model + (f" on {predictions.data}" if several else "")
    above = f"with a score above {score:g}"
    if not of.confident:
        return f"{name} has no detection {above} on {number_of(len(predictions), 'image')}."
    if not of.n_judged:
        return f"{name}: none of {number_of(of.confident, 'detection')} {above} can be checked."
    only = limit(of.wrong.method)
    ends = f" ({only})" if only else ""
    if of.wrong.low is not None:
        within = f", {only}" if only else ""
        ends = f" (95\u202f% interval {interval(of.wrong.low, of.wrong.high)}{within})"
    counts = [
        f"{round((share.value or 0) * share.n):,} {COUNTED[cause]}"
        for cause, share in zip(MISTAKES, of.causes, strict=True)
        if share.value
    ]
    return (
        f"{name} is wrong in {percent(of.wrong.value)} of "
        f"{number_of(of.n_judged, 'detection')} {above}, among "
        f"{len(predictions.model_classes):,} classes{ends}{': ' if counts else ''}"
        f"{', '.join(counts)}."
    )


def of_images(interval: Interval) -> Interval:
    """The interval, said to be over images."""
    method = interval.method.replace("this one video", "this one image").replace("videos", "images")
    return replace(interval, method=method)


LOWER = 0.3
"""The lower score threshold, at which the same confusions are counted for comparison."""

EGREGIOUS = tuple(CAUSES.index(name) for name in ("misclassification", "out_of_distribution"))


@dataclass(frozen=True, eq=False)
class Confusion:
    """Objects of one class that are detected as another.

    `true`: the class of the data in words; `predicted`: the detector's class. `foreign`: whether
    the detector does not have the class of the object. `rows`: the most confident such detection of
    each object, in `Predictions.raw_detections`; `places`: the objects, in `Predictions.boxes`;
    both by falling score. `weak_places`: (m,) the objects with such a detection above `LOWER`.
    `objects`: (n,) all objects of the class, in `Predictions.boxes`; `image`: the image of each of
    these boxes; `videos`: the video of each image, or its id where `are_images`.
    """

    true: str
    predicted: str
    foreign: bool
    rows: tuple[int, ...]
    places: tuple[int, ...]
    objects: NDArray[np.int64]
    image: NDArray[np.int64]
    videos: NDArray[np.str_]
    weak_places: NDArray[np.int64]
    are_images: bool

    # a report lists few of hundreds of pairs, and only those need an interval
    @cached_property
    def sure(self) -> Interval:
        """The share of the objects of the class with such a detection above `SCORE`."""
        return self._share(self.places)

    @cached_property
    def unsure(self) -> Interval:
        """The share of the objects of the class with such a detection above `LOWER`."""
        return self._share(self.weak_places)

    def _share(self, places: Sequence[int] | NDArray[np.int64]) -> Interval:
        # names take more memory than all other data of an object
        videos = self.videos[self.image[self.objects]]
        share = proportion(np.isin(self.objects, places), videos)
        return of_images(share) if self.are_images else share


def confusions(predictions: Predictions, score: float = SCORE) -> list[Confusion]:
    """The pairs label → prediction above `score`, the most frequent first, ties by name.

    An object counts once per pair. Intervals are over the videos or images of the objects. Lau et
    al. 2021, Section 3.1.
    """
    boxes = predictions.boxes
    assert boxes is not None, "asked for by judged"
    lower = _find_confusions(predictions, min(LOWER, score))
    sure = _find_confusions(predictions, score)
    of_class = {
        label: np.flatnonzero((boxes.label == label) & ~boxes.crowd)
        for label in {pair[0] for pair in sure}
    }
    pairs = [
        Confusion(
            true=name_of(predictions, label),
            predicted=predictions.model_classes[own],
            foreign=mine.foreign,
            rows=tuple(mine.rows.tolist()),
            places=tuple(mine.places.tolist()),
            objects=of_class[label],
            image=boxes.image,
            videos=predictions.tags.get("video", predictions.ids),
            weak_places=lower[label, own].places,
            are_images="video" not in predictions.tags,
        )
        for (label, own), mine in sure.items()
    ]
    return sorted(pairs, key=lambda pair: (-len(pair.rows), pair.true, pair.predicted))


class Taken(NamedTuple):
    """Confused objects, each with its most confident such detection, by falling score.

    `rows`: (n,) the detections; `places`: (n,) the objects; `foreign`: as in `Confusion`.
    """

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    foreign: bool


def _find_confusions(predictions: Predictions, score: float) -> dict[tuple[int, int], Taken]:
    """The confused objects by label of the data and class of the detector."""
    boxes, raw = predictions.boxes, predictions.raw_detections
    verdicts = judge_detections(predictions, score)
    assert boxes is not None, "asked for by judged"
    assert raw is not None, "asked for by judged"
    wrong = np.flatnonzero(np.isin(verdicts.cause, EGREGIOUS))
    rows, things, cause = (
        read_entries(column, wrong)
        for column in (verdicts.detection, verdicts.object, verdicts.cause)
    )
    label, own, scores = (
        read_entries(column, places)
        for column, places in ((boxes.label, things), (raw.label, rows), (raw.score, rows))
    )
    # the most confident detection of each pair and object comes first; ties by row
    order = np.lexsort((rows, -scores, things, own, label))
    is_first = np.arange(len(order)) == 0
    for column in (label, own, things):
        is_first[1:] |= np.diff(column[order]) != 0
    order = order[is_first]
    order = order[np.lexsort((rows[order], -scores[order], own[order], label[order]))]
    pairs = np.stack([label[order], own[order]])
    bounds = np.flatnonzero((pairs[:, 1:] != pairs[:, :-1]).any(axis=0)) + 1
    foreign = CAUSES.index("out_of_distribution")
    return {
        (int(label[part[0]]), int(own[part[0]])): Taken(
            rows[part], things[part], bool(cause[part[0]] == foreign)
        )
        for part in np.split(order, bounds)
        if len(part)
    }
