"""Blind spots of reference data: from sealed vectors to spots and their contents."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN
from sklearn.neighbors import NearestNeighbors

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.explain.embedding.density_ratio import LEAST, Thinness, Vectors, space, thinness
from steadyeye.explain.embedding.regions import WRONG

SMALLEST = 5
DIMENSIONS = 16

REACH = 0.9
"""The share of points whose neighbours are within the height at which a single spot is cut."""

FAR = 0.95
"""A point is far if it is farther than this share of the reference from the rest: only a hint."""


def spots(points: Vectors) -> NDArray[np.int64]:
    """(n,) the spot of each point, from 0 by falling size; −1 for a point in none.

    `points`: (n, d) float32, of which the first `DIMENSIONS` are used. HDBSCAN (Campello, Moulavi
    and Sander, "Density-Based Clustering Based on Hierarchical Density Estimates", PAKDD 2013): a
    spot has at least `SMALLEST` points and a twentieth of them. Its choice of clusters assumes
    several and keeps only the core of a single one; if it leaves out more than half of the points,
    its tree is cut at one height. No spots with fewer than `SMALLEST` points.
    """
    if len(points) < SMALLEST:
        return np.full(len(points), -1, dtype=np.int64)
    # so that the order of the points does not matter
    order = np.lexsort(points.T[::-1])
    ordered = points[order, :DIMENSIONS].astype(np.float64)
    smallest = max(SMALLEST, len(points) // 20)
    tree = HDBSCAN(min_cluster_size=smallest, min_samples=SMALLEST, copy=True).fit(ordered)
    labels = tree.labels_
    if (labels < 0).mean() > 0.5:
        near = NearestNeighbors(n_neighbors=SMALLEST).fit(ordered).kneighbors(ordered)[0][:, -1]
        labels = tree.dbscan_clustering(float(np.quantile(near, REACH)), smallest)
    numbers = np.empty(len(points), dtype=np.int64)
    numbers[order] = _by_size(labels)
    return numbers


def _by_size(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """The labels renumbered by falling size, ties by first occurrence; −1 stays."""
    names, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    rank = np.full(int(labels.max(initial=-1)) + 2, -1, dtype=np.int64)
    rank[names[np.lexsort((first, -sizes))]] = np.arange(len(names))
    return np.asarray(rank[labels])


@dataclass(frozen=True, eq=False)
class Blindness:
    """Where the reference is sparse for one set of vectors.

    `rows`: (n,) rows of the predictions, in the order of their ids, `points`: (n, d) their
    vectors; `reference`: (n,) bool. Of the m others, in the same order: `thinness`; `chosen`: (m,)
    bool, the sparse ones, or the only far ones if there are none (see `proven`); `spot`: (m,) the
    spot of each from 0, −1 for none.
    """

    predictions: Predictions
    rows: NDArray[np.intp]
    points: Vectors
    reference: NDArray[np.bool_]
    thinness: Thinness
    chosen: NDArray[np.bool_]
    spot: NDArray[np.int64]

    @property
    def proven(self) -> bool:
        """Whether any point is sparse by the test."""
        return bool(self.thinness.thin.any())

    @property
    def noun(self) -> str:
        """The name of a spot: a blind spot only if it is sparse by the test."""
        return "blind spot" if self.proven else "cluster"

    @property
    def model(self) -> str:
        """The detector whose mistakes they are."""
        return str(self.predictions.probe["model"])

    @property
    def spots(self) -> int:
        """How many spots there are."""
        return int(self.spot.max(initial=-1)) + 1

    @property
    def others(self) -> NDArray[np.intp]:
        """(m,) the rows of the predictions on the tested data."""
        return self.rows[~self.reference]

    def tag(self, name: str) -> NDArray[np.str_]:
        """(m,) a tag of those rows."""
        return np.asarray(self.predictions.tags[name])[self.others]


@dataclass(frozen=True)
class SpotContents:
    """The contents of a spot: `count` regions from `videos` images or videos.

    `mistakes`: the share of mistakes, without unverified regions; `wrong`: their number. `name`:
    the most frequent pair label → prediction of its mistakes, if more than half of the regions have
    it, otherwise the most frequent class; `times`: number of regions with it.
    """

    count: int
    videos: int
    mistakes: Interval
    wrong: int
    name: str
    times: int


def blindness(predictions: Predictions) -> Blindness | None:
    """The blind spots in the sealed vectors of a probe; None if a set is too small."""
    rows = np.flatnonzero(predictions.valid)
    rows = rows[np.argsort(predictions.ids[rows], kind="stable")]
    reference = np.asarray(predictions.tags["set"])[rows] == "reference"
    videos = np.asarray(predictions.tags["video"])[rows]
    groups = np.char.add(np.where(reference, "r/", "d/"), videos)
    if len(np.unique(groups[reference])) <= LEAST or len(np.unique(groups[~reference])) < 2:
        return None
    points = space(predictions.scores[rows])
    thin = thinness(points, groups, reference)
    is_blind = thin.thin if thin.thin.any() else thin.far >= FAR
    spot = np.full(len(is_blind), -1, dtype=np.int64)
    spot[is_blind] = spots(points[~reference][is_blind])
    return Blindness(predictions, rows, points, reference, thin, is_blind, spot)


def contents(measured: Blindness, inside: NDArray[np.bool_]) -> SpotContents:
    """The contents of a part of the regions; `inside`: (m,) bool."""
    cause, predicted, true = (measured.tag(name)[inside] for name in ("cause", "said", "true"))
    videos = measured.tag("video")[inside]
    known = cause != "unverified"
    wrong = np.isin(cause, WRONG)
    pairs = [pair(t, s) for t, s in zip(true[wrong], predicted[wrong], strict=True)]
    count, shares = int(inside.sum()), proportion(wrong[known], videos[known])
    name, times = _most(pairs)
    if 2 * times <= count:
        # one mistake of eleven does not describe the spot
        name, times = _most(true.tolist())
    return SpotContents(count, len(np.unique(videos)), shares, int(wrong.sum()), name, times)


def _most(names: list[str]) -> tuple[str, int]:
    """The most frequent name and its count; ties by name."""
    return min(Counter(names).items(), key=lambda item: (-item[1], item[0]), default=("", 0))


def pair(true: str, predicted: str) -> str:
    """A confusion in words."""
    return f"{true} → {predicted}"


def examples(measured: Blindness, spot: int, most: int = 3) -> tuple[list[int], int]:
    """Rows of a spot to show, and the row of the reference that is nearest to the first.

    The first is in the middle of the spot; each next one is of an image or video that is not shown
    yet, if possible, and there the one farthest from those shown.
    """
    members = np.flatnonzero(measured.spot == spot)
    points, videos = measured.points[~measured.reference][members], measured.tag("video")[members]
    first = int(_apart(points, np.median(points, axis=0)).argmin())
    chosen = [first]
    while len(chosen) < min(most, len(members)):
        apart = np.min([_apart(points, points[place]) for place in chosen], axis=0)
        is_shown = np.isin(videos, videos[chosen])
        if not is_shown.all():
            apart[is_shown] = -np.inf
        apart[chosen] = -np.inf
        chosen.append(int(apart.argmax()))
    of_reference = np.flatnonzero(measured.reference)
    nearest = of_reference[_apart(measured.points[of_reference], points[first]).argmin()]
    return [int(measured.others[members[place]]) for place in chosen], int(measured.rows[nearest])


def _apart(points: Vectors, point: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(points - point, axis=1), dtype=np.float64)
