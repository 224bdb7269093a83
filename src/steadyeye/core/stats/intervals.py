"""Intervals for proportions: exact for independent trials, by video for dependent ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.special import betaincinv, ndtri, stdtrit
from steadyeye.core.stats import bounded_means

LEVEL = 0.95
REPLICATES = 2_000


@dataclass(frozen=True)
class Interval:
    """A proportion with its 95 % interval; `value` is None and the interval open on n = 0."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of an interval that has them."""
        assert self.low is not None, "not open"
        assert self.high is not None, "not open"
        return self.low, self.high


def clopper_pearson(successes: int, n: int) -> tuple[float, float]:
    """The exact interval of a binomial proportion, n > 0.

    Without successes the lower end is 0, without failures the upper end is 1.
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.
    """
    tail = (1 - LEVEL) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return low, high


def korn_graubard(value: float, error: float, df: float) -> tuple[float, float]:
    """Clopper and Pearson's interval for the number of trials with this standard error.

    `value`: the share, 0…1; `error`: its standard error, above 0, on `df` degrees of freedom. Korn
    and Graubard, "Confidence Intervals for Proportions with Small Expected Number of Positive
    Counts Estimated from Survey Data", Survey Methodology 24, 1998.
    """
    # the error is that of the value itself; it would vanish if the bias moved the value to an end
    tail = (1 - LEVEL) / 2
    inside = min(max(value, error**2), 1 - error**2)
    trials = inside * (1 - inside) / error**2 * float(ndtri(tail) / stdtrit(df, tail)) ** 2
    low = float(betaincinv(value * trials, (1 - value) * trials + 1, tail)) if value > 0 else 0.0
    high = (
        float(betaincinv(value * trials + 1, (1 - value) * trials, 1 - tail)) if value < 1 else 1.0
    )
    return low, high


def proportion(success: NDArray[np.bool_], videos: NDArray[Any]) -> Interval:
    """The share of successes, with an interval that respects its clustering in videos.

    `success`: (n,) bool; `videos`: (n,) the video of each trial. One trial per video:
    Clopper–Pearson. Several: Gaffke's bounds over videos, which equal Clopper and Pearson's if all
    trials of each video have the same outcome. A single video: Clopper–Pearson, and the method says
    that it is valid within that video only. A further success never lowers either end.
    """
    return mean(success, videos)


def mean(values: NDArray[Any], videos: NDArray[Any]) -> Interval:
    """The mean of values in 0…1 with Gaffke's bounds over videos, or over values of one video.

    `values`: (n,), in any order; `videos`: (n,) the video of each.
    """
    ones = np.ones(len(values), dtype=np.int64)
    return proportions(CellTrials(values, ones, videos, np.zeros(len(values), dtype=np.intp)), 1)[0]


@dataclass(frozen=True, eq=False)
class CellTrials:
    """Trials in cells, such as the distances of a curve; n of them, in any order.

    `wins`: (n,) successes, or parts of one, out of `totals`: (n,) int, the number of models that
    predicted the frame, 0 for one that does not count. `videos`: (n,) the video of each. `cell`:
    (n,) int.
    """

    wins: NDArray[Any]
    totals: NDArray[Any]
    videos: NDArray[Any]
    cell: NDArray[np.integer]


def proportions(trials: CellTrials, cells: int) -> list[Interval]:
    """The share of successes in each of the cells 0 … `cells` − 1, each as by `proportion`.

    Predictions of several models for one frame are not independent: within a single video the
    frames are then the clusters.
    """
    video = _number_videos(trials.videos)
    videos = int(video.max(initial=-1)) + 1
    place = np.asarray(trials.cell, dtype=np.intp) * videos + video

    def count_by_video(values: NDArray[Any]) -> NDArray[np.float64]:
        counts = np.bincount(place, values, cells * videos).reshape(cells, videos)
        return np.asarray(counts, dtype=np.float64)

    wins, totals = count_by_video(trials.wins), count_by_video(trials.totals)
    n, clusters = totals.sum(axis=1), (totals > 0).sum(axis=1)
    whole = np.ones(cells, dtype=np.bool_)
    if np.issubdtype(trials.wins.dtype, np.floating):
        whole = count_by_video(trials.wins % 1 != 0).sum(axis=1) == 0
    clustered = np.flatnonzero((clusters > 1) & ((clusters < n) | ~whole))
    ends = {}
    if len(clustered):
        low, high = bounded_means.intervals(wins[clustered], totals[clustered])
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        ends = dict(zip(clustered.tolist(), pairs, strict=True))
    return [
        _within(trials, cell)
        if clusters[cell] == 1
        else _over_videos(
            float(wins[cell].sum()), int(n[cell]), int(clusters[cell]), ends.get(cell)
        )
        for cell in range(cells)
    ]


def number_clusters(videos: NDArray[Any], block: int = 1) -> NDArray[np.intp]:
    """(n,) the cluster of each value, from 0: the unit of dependence.

    It is the video. Values of a single video count singly, or in blocks of `block` consecutive
    ones, the last block with the remainder: they must be in time order then.
    """
    names, number = np.unique(videos, return_inverse=True)
    if len(names) > 1:
        return np.asarray(number, dtype=np.intp)
    n = len(videos)
    return np.minimum(np.arange(n) // block, max(n // block - 1, 0))


def count_clusters(videos: NDArray[Any]) -> str:
    """The number of videos, or of images if there is one video or one per image, in words."""
    several = len(np.unique(videos))
    if several in (1, len(videos)):
        return number_of(len(videos), "image")
    return number_of(several, "video")


def limit_to_video(videos: NDArray[Any]) -> str:
    """The suffix of a method if several values are all of one video."""
    return f", {WITHIN}" if len(np.unique(videos)) < min(len(videos), 2) else ""


def _number_videos(videos: NDArray[Any]) -> NDArray[np.intp]:
    """(n,) the number of each video; fast, because trials of a video mostly follow each other."""
    first = np.ones(len(videos), dtype=np.bool_)
    first[1:] = videos[1:] != videos[:-1]
    _, number = np.unique(videos[first], return_inverse=True)
    return np.asarray(np.repeat(number, np.diff(np.flatnonzero(np.append(first, True)))))


def _over_videos(hits: float, n: int, videos: int, ends: tuple[float, float] | None) -> Interval:
    if n == 0:
        return Interval(None, None, None, 0, "none: n = 0")
    if ends is None:
        low, high = clopper_pearson(round(hits), n)
        return Interval(hits / n, low, high, n, f"Clopper–Pearson, n = {n}")
    return Interval(hits / n, *ends, n, f"Gaffke's bounds over {number_of(videos, 'video')}")


def _within(trials: CellTrials, cell: int) -> Interval:
    """The interval of a cell whose trials are all of one video."""
    in_cell = (trials.cell == cell) & (trials.totals > 0)
    wins, totals = trials.wins[in_cell], trials.totals[in_cell]
    hits, n, frames = float(wins.sum()), int(totals.sum()), len(wins)
    if frames == n and not np.any(wins % 1):
        low, high = clopper_pearson(round(hits), n)
        method = f"Clopper–Pearson, n = {n}, {WITHIN}"
        return Interval(hits / n, low, high, n, method)
    wins, totals = (np.asarray(column, dtype=np.float64)[None] for column in (wins, totals))
    (low,), (high,) = bounded_means.intervals(wins, totals)
    method = f"Gaffke's bounds over {number_of(frames, 'frame')}, {WITHIN}"
    return Interval(hits / n, float(low), float(high), n, method)
