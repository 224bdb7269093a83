"""Which neighbours of right anchors broke, and what is independent of what among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions

VIDEOS = 10  # fewer videos than this say too little of how videos differ


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The labelled neighbours of anchors that are right, n of them.

    `rows`: (n,) rows of the table; `anchors`: (n,) those of their anchors. `broken`: (n,) bool,
    True: wrong. `clusters`: (n,) the video of each, or its pm-set where there are fewer than ten
    videos; `within` then says that the numbers hold for these videos only.
    """

    rows: NDArray[np.intp]
    anchors: NDArray[np.intp]
    broken: NDArray[np.bool_]
    clusters: NDArray[np.str_]
    within: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counted(self) -> str:
        """How many of them broke, in words."""
        return (
            f"{int(self.broken.sum()):,} of {number_of(len(self), 'neighbour')} of right anchors "
            "are wrong"
        )

    @property
    def unit(self) -> str:
        """What the intervals are over."""
        return "sets" if self.within else "videos"

    @property
    def over(self) -> str:
        """What the intervals are over, and how many of them."""
        return f"{len(np.unique(self.clusters)):,} {self.unit}"


def outcomes(predictions: Predictions) -> Outcomes:
    """Every predicted and labelled neighbour whose anchor is right: broken, or kept."""
    sets = pm_sets(predictions)
    anchor = np.where(sets.set_of >= 0, sets.anchors[np.maximum(sets.set_of, 0)], -1)
    judged = (anchor >= 0) & (sets.offsets != 0) & predictions.has_label
    rows = np.flatnonzero(judged & predictions.right[np.maximum(anchor, 0)])
    clusters, within = clusters_of(predictions, rows)
    return Outcomes(rows, anchor[rows], ~predictions.right[rows], clusters, within)


def clusters_of(predictions: Predictions, rows: NDArray[np.intp]) -> tuple[NDArray[np.str_], str]:
    """(n,) the video of each row, or its pm-set where there are fewer than ten videos.

    And, in the second case, the words that tell within how many videos it holds.
    """
    videos = np.asarray(predictions.tags.get("video", predictions.groups)[rows], dtype=np.str_)
    several = len(np.unique(videos))
    if several >= VIDEOS:
        return videos, ""
    return np.asarray(predictions.groups[rows], dtype=np.str_), _within(several)


def _within(videos: int) -> str:
    return "within this one video only" if videos == 1 else f"within these {videos} videos only"
