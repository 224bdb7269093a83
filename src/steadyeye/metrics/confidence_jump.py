"""How much confidence moves from one frame to the next; no labels needed."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import blocks, bootstrap
from steadyeye.core.competition import among_own
from steadyeye.core.intervals import Interval
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.sequences.changes import jumps, video_of

TAIL = 0.95


@needs("group", "frame")
@among_own
def confidence_jump(predictions: Predictions) -> Result:
    """The mean |Δ confidence| of consecutive frames, 0…1, n pairs.

    Confidence is the probability of the frame's own top-1 class, whichever it is; scores outside
    0…1 are taken for logits (softmax). `cells`: the 95th percentile of the jumps. Intervals: a
    bootstrap over videos, or over blocks of one video. Value None where no two frames are
    consecutive, or only the best of each frame's logits was kept.
    """
    pairs = consecutive(predictions)
    moved = jumps(predictions, pairs)
    if moved is None:
        why = "none: the scores are no probabilities"
        return Result("confidence_jump", None, None, None, 0, why)
    videos, block = video_of(predictions, pairs[:, 0]), blocks.length(len(pairs))
    if len(np.unique(videos)) > 1:
        mean, tail = _over_videos(moved, videos)
    else:
        mean = blocks.bootstrap(lambda rows: float(moved[rows].mean()), videos, block)
        tail = blocks.bootstrap(lambda rows: _tail(moved[rows]), videos, block)
    cell = Result("95th percentile", tail.value, tail.low, tail.high, tail.n, tail.method)
    return Result(
        "confidence_jump", mean.value, mean.low, mean.high, mean.n, mean.method, cells=(cell,)
    )


def _over_videos(moved: NDArray[np.float64], videos: NDArray[np.str_]) -> tuple[Interval, Interval]:
    """The mean and the 95th percentile, with intervals of the same resamples of whole videos."""
    names, video = np.unique(videos, return_inverse=True)
    sums, totals = np.bincount(video, weights=moved), np.bincount(video)
    draws = bootstrap.weights(names)
    means = (draws @ sums) / (draws @ totals)
    tails = np.concatenate(
        [_tails(moved, video, some, totals) for some in np.array_split(draws, 20)]
    )
    n, how = len(moved), blocks.method(len(names), 0)
    return (
        Interval(float(moved.mean()), *bootstrap.ends(means), n, how),
        Interval(_tail(moved), *bootstrap.ends(tails), n, how),
    )


def _tails(
    moved: NDArray[np.float64],
    video: NDArray[np.intp],
    draws: NDArray[np.float32],
    totals: NDArray[np.intp],
) -> NDArray[np.float64]:
    """(r,) the 95th percentile of each resample of videos, `draws`: (r, videos)."""
    every = draws @ totals
    above = (every - np.ceil(TAIL * every))[:, None]  # how many may lie above it
    falling = np.argsort(-moved)
    # the largest fifth holds it but for odd resamples
    for order in (falling[: ceil(len(moved) / 5)], falling):
        reached = np.cumsum(draws[:, video[order]], axis=1) > above
        if reached[:, -1].all():
            break
    return np.asarray(moved[order[reached.argmax(axis=1)]], dtype=np.float64)


def _tail(moved: NDArray[np.float64]) -> float:
    return float(np.quantile(moved, TAIL, method="inverted_cdf"))
