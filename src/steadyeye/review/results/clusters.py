"""The videos of reviewed items, and accepted shares with intervals over these videos.

Pairs of one pm-set are alike, and so are sets of one video: a blurred anchor spoils all its pairs.
Clopper and Pearson's interval of single pairs holds the truth in as little as 47 % of simulated
reviews (`docs/explanation/coverage.md`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, cast, func, select

from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.stats.intervals import REPLICATES, CellTrials, Interval, proportions
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.database import items
from steadyeye.review.protocol.stages import DRAWN, ReviewPlan
from steadyeye.review.workflow.sequences import find_videos

Videos: TypeAlias = Mapping[str, str]
"""Anchor or image → its video; empty if the images are no frames, and for a label study."""

UnitCount: TypeAlias = tuple[str, int, int]
"""An anchor or image, the number of its accepted items, and of its reviewed items."""


ALL = slice(None)


def list_videos(folder: SetFolder, plan: ReviewPlan) -> Videos:
    """The video of each anchor, and of each image if the plan says that images are frames."""
    rows = folder.frames.select(["group", "video"]).to_pydict()
    names = folder.boxes.select(["image", "name"]).to_pydict()
    images = dict(zip(names["image"], names["name"], strict=True))
    places = find_videos(images, plan.key_frames)
    frames = dict(zip(rows["group"], rows["video"], strict=True))
    return {**frames, **{image: place.name for image, place in places.items()}}


@dataclass(frozen=True, eq=False)
class ItemClusters:
    """The g clusters of n items. `number`: (n,) that of each, from 0. `size`: g.

    `noun`: what a cluster is. `within`: what their number is followed by.
    """

    number: NDArray[np.intp]
    size: int
    noun: str
    within: str

    def describe(self, size: int) -> str:
        """A number of clusters in words, such as those that hold any of the items."""
        return number_of(size, self.noun) + self.within

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """(replicates, g + 1) random weights of a bootstrap, seeded; the last: one unseen."""
        return np.random.default_rng(0).standard_exponential((REPLICATES, self.size + 1))

    def add_up(
        self, values: NDArray[Any], item: NDArray[np.intp] | slice = ALL
    ) -> NDArray[np.float64]:
        """(g,) sums of values of some items, `item`, over clusters."""
        return np.bincount(self.number[item], values, self.size).astype(np.float64)

    def count_words(
        self, word: NDArray[np.intp], words: int, item: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """(g, words) how often each word, from 0, is said of the items of a cluster."""
        place = self.number[item] * words + word
        counts = np.bincount(place, minlength=self.size * words).astype(np.float64)
        return counts.reshape(self.size, words)


def find_clusters(stage: str, units: Sequence[str], videos: Videos) -> ItemClusters:
    """The clusters of items: their videos; of a single video, or without videos, their units.

    `units`: the anchor or image of each item.
    """
    names = [videos.get(unit, unit) for unit in units]
    is_single = bool(videos) and len(set(names)) == 1
    # an empty list would be of floats
    clusters, number = np.unique(
        np.array(units if is_single else names, dtype=np.str_), return_inverse=True
    )
    unit = "image" if stage in ("classification", *DRAWN) else "set"
    noun = "video" if videos and not is_single else unit
    within = f", {WITHIN}" if is_single else ""
    return ItemClusters(np.asarray(number, dtype=np.intp), len(clusters), noun, within)


def bound_share(stage: str, counts: Iterable[UnitCount], videos: Videos) -> Interval:
    """The accepted share of the reviewed items of a stage, with its interval over clusters.

    Gaffke's bounds (`core.stats.bounded_means`); if each cluster is one item, Clopper–Pearson.
    Value None without a reviewed item.
    """
    rows = [count for count in counts if count[2]]
    clusters = find_clusters(stage, [unit for unit, _, _ in rows], videos)
    accepted, reviewed = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2))
    trials = CellTrials(accepted, reviewed, clusters.number, np.zeros(len(rows), dtype=np.intp))
    (own,) = proportions(trials, 1)
    if own.value is None:
        return own
    single = own.n == clusters.size
    name = "Clopper–Pearson" if single else "Gaffke's bounds"
    return replace(own, method=f"{name} over {clusters.describe(clusters.size)}")


def measure_shares(connection: Connection, videos: Videos) -> Mapping[str, Interval]:
    """Stage → accepted share of its reviewed items; they are defined in `results/status.py`."""
    accepted = func.sum(cast(items.c.verdict == "accepted", Integer))
    query = (
        select(items.c.stage, items.c.unit, accepted, func.count())
        .where(~items.c.known, items.c.state == "done", items.c.parent == "accepted")
        .where(items.c.verdict.in_(("accepted", "rejected")))
        .group_by(items.c.stage, items.c.unit)
        .order_by(items.c.stage, items.c.unit)
    )
    counts: dict[str, list[UnitCount]] = defaultdict(list)
    for stage, unit, right, reviewed in connection.execute(query):
        counts[stage].append((unit, int(right), int(reviewed)))
    return {stage: bound_share(stage, rows, videos) for stage, rows in counts.items()}
