"""Which classes are taken for which: egregious misclassifications counted by pair."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.explain.mining.candidates import name_of
from steadyeye.explain.mining.causes import CAUSES, SCORE, judge_detections
from steadyeye.explain.mining.error_rates import of_images

LOWER = 0.3
"""Above this the control counts: as sure of the same mistake, or less."""

EGREGIOUS = tuple(CAUSES.index(name) for name in ("misclassification", "out_of_distribution"))


@dataclass(frozen=True)
class Confusion:
    """Objects of one class, taken for another.

    `true`: the class of the data in words; `predicted`: among the detector's own. `sure`: the share
    of the objects of that class that a detection above `SCORE` takes so; `unsure`: above `LOWER`.
    `foreign`: whether no class of the detector stands for the object. `rows`: the most confident
    such detection of each object, in `Predictions.raw_detections`; `places`: the objects, in
    `Predictions.boxes`; both by falling score.
    """

    true: str
    predicted: str
    sure: Interval
    unsure: Interval
    foreign: bool
    rows: tuple[int, ...]
    places: tuple[int, ...]


def confusions(predictions: Predictions, score: float = SCORE) -> list[Confusion]:
    """The pairs true → said above `score`, the most frequent first, ties by name.

    An object counts once a pair. Intervals are over the videos or images of the objects. Lau et
    al. 2021, Section 3.1.
    """
    lower, _ = _find_confusions(predictions, min(LOWER, score))
    sure, foreign = _find_confusions(predictions, score)
    several = [
        _confusion(predictions, pair, mine, lower[pair], foreign[pair])
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
    for place in _rising(verdicts.detection, raw.score):
        if verdicts.cause[place] not in EGREGIOUS:
            continue
        thing, row = int(verdicts.object[place]), int(verdicts.detection[place])
        pair = int(boxes.label[thing]), int(raw.label[row])
        first.setdefault(pair, {})[thing] = row
        foreign[pair] = bool(verdicts.cause[place] == CAUSES.index("out_of_distribution"))
    return first, foreign


def _rising(rows: NDArray[np.int64], score: NDArray[np.float64]) -> Iterator[int]:
    """Places of detections by rising score, so that the most confident comes last; ties by row."""
    return iter(np.lexsort((-rows, score[rows])).tolist())


def _confusion(
    predictions: Predictions,
    pair: tuple[int, int],
    mine: dict[int, int],
    lower: dict[int, int],
    foreign: bool,
) -> Confusion:
    boxes, raw = predictions.boxes, predictions.raw_detections
    assert boxes is not None, "asked for by judged"
    assert raw is not None, "asked for by judged"
    label, own = pair
    things = np.flatnonzero((boxes.label == label) & ~boxes.crowd)
    videos = predictions.tags.get("video", predictions.ids)[boxes.image[things]]
    over = (lambda share: share) if "video" in predictions.tags else of_images
    falling = sorted(mine.items(), key=lambda place: (-raw.score[place[1]], place[1]))
    return Confusion(
        true=name_of(predictions, label),
        predicted=predictions.model_classes[own],
        sure=over(proportion(np.isin(things, list(mine)), videos)),
        unsure=over(proportion(np.isin(things, list(lower)), videos)),
        foreign=foreign,
        rows=tuple(row for _, row in falling),
        places=tuple(thing for thing, _ in falling),
    )
