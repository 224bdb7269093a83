"""Intervals for proportions: exact where trials are independent, by video where they are not."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

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


def clopper_pearson(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a binomial proportion, n > 0.

    No successes give a lower end of 0 and no failures an upper end of 1.
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.
    """
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, successes, n - successes + 1)) if successes else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, n - successes)) if successes < n else 1.0
    return low, high


def proportion(success: NDArray[np.bool_], videos: NDArray[Any]) -> Interval:
    """The share of successes, with the interval that its clustering in videos allows.

    `success`: (n,) bool; `videos`: (n,) the video of each trial. One trial a video:
    Clopper–Pearson. Several: a bootstrap over videos. A single video: Clopper–Pearson, and the
    method says that it holds within that video only.
    """
    one = np.ones(len(success), dtype=np.int64)
    return proportions(Trials(success, one, videos, np.zeros(len(success), dtype=np.intp)), 1)[0]


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials in cells, such as the distances of a curve; n of them, in any order.

    `wins`: (n,) successes out of `totals`: (n,) int, 1 for a frame that one model saw, m for one
    that m models saw, 0 for one that does not count but whose video may be drawn. `videos`: (n,)
    the video of each. `cell`: (n,) int.
    """

    wins: NDArray[Any]
    totals: NDArray[Any]
    videos: NDArray[Any]
    cell: NDArray[np.integer]


def proportions(trials: Trials, cells: int) -> list[Interval]:
    """The share of successes in each of the cells 0 … `cells` − 1, each as `proportion` has it.

    All cells are resampled by the same draws of the videos; a draw without a trial in a cell does
    not count for it. Where several models saw a frame, their answers are not independent: frames
    of a single video are then resampled as wholes.
    """
    _, video = np.unique(trials.videos, return_inverse=True)
    videos = int(video.max(initial=-1)) + 1
    place = np.asarray(trials.cell, dtype=np.intp) * videos + video

    def counted(values: NDArray[Any]) -> NDArray[np.float64]:
        found = np.bincount(place, values, cells * videos).reshape(cells, videos)
        return np.asarray(found, dtype=np.float64)

    wins, totals = counted(trials.wins), counted(trials.totals)
    n, hits, seen = totals.sum(axis=1), wins.sum(axis=1), (totals > 0).sum(axis=1)
    clustered = np.flatnonzero((seen > 1) & (seen < n) & (hits > 0) & (hits < n))
    ends = dict(
        zip(clustered.tolist(), _bootstrap(wins[clustered], totals[clustered]), strict=True)
    )
    return [
        _interval(int(hits[c]), int(n[c]), int(seen[c]), ends.get(c), _within(trials, c))
        for c in range(cells)
    ]


def _interval(
    hits: int,
    n: int,
    videos: int,
    ends: tuple[float, float] | None,
    within: Callable[[], Interval],
) -> Interval:
    if n == 0:
        return Interval(None, None, None, 0, "none: there is nothing to count")
    if videos == n:
        return Interval(hits / n, *clopper_pearson(hits, n), n, f"Clopper–Pearson, n = {n}")
    if videos == 1:
        return within()
    if ends is None:
        # every resample equals the sample: fall back on one trial a video, which is exact
        low, high = clopper_pearson(videos if hits else 0, videos)
        return Interval(hits / n, low, high, n, f"Clopper–Pearson over {videos} videos")
    return Interval(hits / n, *ends, n, f"bootstrap over {videos} videos")


def _within(trials: Trials, cell: int) -> Callable[[], Interval]:
    """The interval of a cell all of whose trials are of one video."""

    def found() -> Interval:
        here = trials.cell == cell
        wins, totals = trials.wins[here], trials.totals[here]
        hits, n, frames = int(wins.sum()), int(totals.sum()), int((totals > 0).sum())
        if frames == n or hits in (0, n):
            low, high = clopper_pearson(frames if hits == n else min(hits, frames), frames)
            of = f"n = {n}" if frames == n else f"over {frames} frames"
            return Interval(
                hits / n, low, high, n, f"Clopper–Pearson, {of}, within this one video only"
            )
        ((low, high),) = _bootstrap(wins[None], totals[None])
        method = f"bootstrap over {frames} frames, within this one video only"
        return Interval(hits / n, low, high, n, method)

    return found


def _bootstrap(wins: NDArray[Any], totals: NDArray[Any]) -> list[tuple[float, float]]:
    """The percentile interval of Σwins / Σtotals over resampled columns, for each row; seeded."""
    if not len(wins):
        return []
    draws = _draws(wins.shape[1]).astype(np.float64)
    trials = draws @ totals.T
    with np.errstate(invalid="ignore"):
        shares = (draws @ wins.T) / trials
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = (np.quantile if trials.all() else np.nanquantile)(shares, tails, axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


@lru_cache(maxsize=128)
def _draws(videos: int) -> NDArray[np.unsignedinteger]:
    """(replicates, videos) how often each video counts in each resample; the same every time."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(videos, np.full(videos, 1 / videos), size=REPLICATES)
    # counts fit a byte, and many of these are kept
    kept = drawn.astype(np.min_scalar_type(int(drawn.max())))
    kept.flags.writeable = False
    return kept
