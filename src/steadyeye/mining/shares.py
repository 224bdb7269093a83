"""How often a detector is wrong when it is confident, by cause, with intervals."""

from dataclasses import dataclass, replace

import numpy as np

from steadyeye.core.intervals import Interval, Trials, proportions
from steadyeye.core.table import Predictions
from steadyeye.mining.causes import CAUSES, IN_CROWD, MISTAKES, Judged


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
    def judged(self) -> int:
        """How many there are that the annotation can judge."""
        return self.wrong.n


def shares(predictions: Predictions, found: Judged) -> Shares:
    """The shares of a table's confident detections; n = 0 and no value where none is judged.

    Intervals are as those of any share (`core.intervals`), clustered by image, and by video where
    images come from videos.
    """
    said = predictions.said
    assert said is not None, "judged"
    unverified = CAUSES.index("unverified")
    counted = (found.cause != IN_CROWD) & (found.cause != unverified)
    cause, n = found.cause[counted], int(counted.sum())
    filmed = "video" in predictions.tags
    clusters = predictions.tags["video"] if filmed else predictions.ids
    of = np.unique(clusters, return_inverse=True)[1][said.image[found.detection[counted]]]
    cells = 1 + len(MISTAKES)
    wins = np.concatenate([cause >= 0, *(cause == i for i in range(len(MISTAKES)))])
    ones = np.ones(cells * n, dtype=np.int64)
    trials = Trials(wins, ones, np.tile(of, cells), np.repeat(np.arange(cells), n))
    every = [each if filmed else _of_images(each) for each in proportions(trials, cells)]
    return Shares(
        confident=len(found),
        excused=int((found.cause == IN_CROWD).sum()),
        unverified=int((found.cause == unverified).sum()),
        wrong=every[0],
        causes=tuple(every[1:]),
    )


def _of_images(interval: Interval) -> Interval:
    """The interval, said to be over images."""
    told = interval.method.replace("this one video", "this one image").replace("videos", "images")
    return replace(interval, method=told)
