"""How often a detector is wrong when it is confident, by cause and by pair of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import interval, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import limit
from steadyeye.core.stats.intervals import CellTrials, Interval, proportion, proportions
from steadyeye.core.types import Result
from steadyeye.explain.mining.candidates import name_of
from steadyeye.explain.mining.causes import (
    CAUSES,
    IN_CROWD,
    MISTAKES,
    SCORE,
    Judged,
    judge_detections,
)

COUNTED = {
    "misclassification": "on an object of another class",
    "out_of_distribution": "on an object of a class that the detector does not have",
    "background": "where no object is labelled",
}
"""Where a mistake of each cause lies, after its count."""


@dataclass(frozen=True)
class Shares:
    """Of one model's confident detections: how many there are, and what they are.

    `excused`: by a crowd of their class; `unverified`: as the cause. All others are judged.
    `wrong`: the share of the judged that are mistakes, `causes`: that of each of `MISTAKES`.
    """

    confident: int
    excused: int
    unverified: int
    wrong: Interval
    causes: tuple[Interval, ...]

    @property
    def n_judged(self) -> int:
        """How many there are that the annotation can judge."""
        return self.wrong.n


def shares(predictions: Predictions, verdicts: Judged) -> Shares:
    """The shares of a table's confident detections; n = 0 and no value where none is judged.

    Intervals are as those of any share (`core.stats.intervals`), clustered by image, and by video
    where images come from videos.
    """
    raw = predictions.raw_detections
    assert raw is not None, "judged"
    unverified = CAUSES.index("unverified")
    judgeable = (verdicts.cause != IN_CROWD) & (verdicts.cause != unverified)
    cause = verdicts.cause[judgeable]
    filmed = "video" in predictions.tags
    clusters = predictions.tags["video"] if filmed else predictions.ids
    of = np.unique(clusters, return_inverse=True)[1][raw.image[verdicts.detection[judgeable]]]
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

    Where there are several clusters, all trials of one are counted together: there may be millions.
    """
    times = np.bincount(cluster)
    several = np.flatnonzero(times)
    # of a single one each trial counts by itself
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
    """The shares as results: all mistakes, then each cause; none where nothing is judged.

    `classes`: how many the detector has.
    """
    if not of.n_judged:
        return {}
    every = {"confident_mistakes": of.wrong, **dict(zip(MISTAKES, of.causes, strict=True))}
    return {
        name: Result(
            name, share.value, share.low, share.high, share.n, share.method, classes=classes
        )
        for name, share in every.items()
    }


def summarize(predictions: Predictions, of: Shares, score: float, several: bool) -> str:
    """One sentence: the share of a model's confident detections that is wrong, and where.

    `score`: above it a detection is confident. `several`: whether there are other data too.
    """
    name = predictions.model + (f" on {predictions.data}" if several else "")
    above = f"with a score above {score:g}"
    if not of.confident:
        return f"{name} has no detection {above} on {len(predictions):,} images."
    if not of.n_judged:
        return f"{name}: none of {of.confident:,} detections {above} can be checked."
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
        f"{name} is wrong in {percent(of.wrong.value)} of {of.n_judged:,} "
        f"detection{'' if of.n_judged == 1 else 's'} {above}, among "
        f"{len(predictions.model_classes):,} classes{ends}{': ' if counts else ''}"
        f"{', '.join(counts)}."
    )


def of_images(interval: Interval) -> Interval:
    """The interval, said to be over images."""
    method = interval.method.replace("this one video", "this one image").replace("videos", "images")
    return replace(interval, method=method)


LOWER = 0.3
"""Above this the control counts: as sure of the same mistake, or less."""

EGREGIOUS = tuple(CAUSES.index(name) for name in ("misclassification", "out_of_distribution"))


@dataclass(frozen=True, eq=False)
class Confusion:
    """Objects of one class, taken for another.

    `true`: the class of the data in words; `predicted`: among the detector's own. `foreign`:
    whether no class of the detector stands for the object. `rows`: the most confident such
    detection of each object, in `Predictions.raw_detections`; `places`: the objects, in
    `Predictions.boxes`; both by falling score. `weak_places`: the objects that a detection
    above `LOWER` takes so. `objects`: (n,) all objects of the class, in `Predictions.boxes`;
    `videos`: (n,) the video of each, or its image where `are_images`.
    """

    true: str
    predicted: str
    foreign: bool
    rows: tuple[int, ...]
    places: tuple[int, ...]
    objects: NDArray[np.int64]
    videos: NDArray[Any]
    weak_places: tuple[int, ...]
    are_images: bool

    # of hundreds of pairs a report lists a few, and only those need an interval
    @cached_property
    def sure(self) -> Interval:
        """The share of the objects of the class that a detection above `SCORE` takes so."""
        return self._share(self.places)

    @cached_property
    def unsure(self) -> Interval:
        """The same above `LOWER`."""
        return self._share(self.weak_places)

    def _share(self, places: Sequence[int]) -> Interval:
        share = proportion(np.isin(self.objects, places), self.videos)
        return of_images(share) if self.are_images else share


def confusions(predictions: Predictions, score: float = SCORE) -> list[Confusion]:
    """The pairs true → said above `score`, the most frequent first, ties by name.

    An object counts once a pair. Intervals are over the videos or images of the objects. Lau et
    al. 2021, Section 3.1.
    """
    boxes = predictions.boxes
    assert boxes is not None, "asked for by judged"
    lower, _ = _find_confusions(predictions, min(LOWER, score))
    sure, foreign = _find_confusions(predictions, score)
    videos = predictions.tags.get("video", predictions.ids)
    of_class = {}
    for label in {pair[0] for pair in sure}:
        objects = np.flatnonzero((boxes.label == label) & ~boxes.crowd)
        of_class[label] = objects, videos[boxes.image[objects]]
    several = [
        _confusion(predictions, pair, mine, tuple(lower[pair]), foreign[pair], of_class[pair[0]])
        for pair, mine in sure.items()
    ]
    return sorted(
        several, key=lambda confusion: (-len(confusion.rows), confusion.true, confusion.predicted)
    )


Taken = dict[tuple[int, int], dict[int, int]]
"""(label of the data, the detector's own) → object → its most confident such detection."""


def _find_confusions(
    predictions: Predictions, score: float
) -> tuple[Taken, dict[tuple[int, int], bool]]:
    """The objects taken for something else, and the pairs whose object is foreign."""
    boxes, raw = predictions.boxes, predictions.raw_detections
    verdicts = judge_detections(predictions, score)
    assert boxes is not None, "asked for by judged"
    assert raw is not None, "asked for by judged"
    first: Taken = {}
    foreign: dict[tuple[int, int], bool] = {}
    rows, objects = verdicts.detection, verdicts.object
    # by rising score, so that the most confident comes last; ties by row
    order = np.lexsort((-rows, raw.score[rows]))
    order = order[np.isin(verdicts.cause[order], EGREGIOUS)]
    is_foreign = verdicts.cause[order] == CAUSES.index("out_of_distribution")
    columns = (boxes.label[objects[order]], raw.label[rows[order]], objects[order], rows[order])
    mistakes = zip(*(column.tolist() for column in (*columns, is_foreign)), strict=True)
    for label, own, thing, row, has_no_class in mistakes:
        first.setdefault((label, own), {})[thing] = row
        foreign[label, own] = has_no_class
    return first, foreign


def _confusion(
    predictions: Predictions,
    pair: tuple[int, int],
    mine: dict[int, int],
    weak_places: tuple[int, ...],
    foreign: bool,
    objects: tuple[NDArray[np.int64], NDArray[Any]],
) -> Confusion:
    """The confusion of a pair; `objects`: those of its class, and the video of each."""
    raw = predictions.raw_detections
    assert raw is not None, "asked for by judged"
    label, own = pair
    falling = sorted(mine.items(), key=lambda place: (-raw.score[place[1]], place[1]))
    return Confusion(
        true=name_of(predictions, label),
        predicted=predictions.model_classes[own],
        foreign=foreign,
        rows=tuple(row for _, row in falling),
        places=tuple(thing for thing, _ in falling),
        objects=objects[0],
        videos=objects[1],
        weak_places=weak_places,
        are_images="video" not in predictions.tags,
    )
