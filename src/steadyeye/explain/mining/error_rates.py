"""How often a detector is wrong when it is confident, by cause, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from steadyeye.core.format import interval, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import limit
from steadyeye.core.stats.intervals import CellTrials, Interval, proportions
from steadyeye.core.types import Result
from steadyeye.explain.mining.causes import CAUSES, IN_CROWD, MISTAKES, Judged

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
    cause, n = verdicts.cause[judgeable], int(judgeable.sum())
    filmed = "video" in predictions.tags
    clusters = predictions.tags["video"] if filmed else predictions.ids
    of = np.unique(clusters, return_inverse=True)[1][raw.image[verdicts.detection[judgeable]]]
    cells = 1 + len(MISTAKES)
    wins = np.concatenate([cause >= 0, *(cause == i for i in range(len(MISTAKES)))])
    ones = np.ones(cells * n, dtype=np.int64)
    trials = CellTrials(wins, ones, np.tile(of, cells), np.repeat(np.arange(cells), n))
    every = [share if filmed else of_images(share) for share in proportions(trials, cells)]
    return Shares(
        confident=len(verdicts),
        excused=int((verdicts.cause == IN_CROWD).sum()),
        unverified=int((verdicts.cause == unverified).sum()),
        wrong=every[0],
        causes=tuple(every[1:]),
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
