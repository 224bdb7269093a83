"""Runs: consecutive frames of a scene with one answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a table, m of them, by video and in the order of time.

    `first`, `last`: (m,) rows. `frames`: (m,) how many frames it holds. `seconds`: (m,) from its
    first frame to the first of the next run, or to when the frame after its last one would come;
    to the microsecond, so that equal lengths are equal.
    `ended`: (m,) True where the answer changed; False where the scene or the video ended first, or
    a frame was not predicted: the run is cut off, and would have lasted at least as long.
    `videos`: (m,).
    """

    first: NDArray[np.intp]
    last: NDArray[np.intp]
    frames: NDArray[np.int64]
    seconds: NDArray[np.float64]
    ended: NDArray[np.bool_]
    videos: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.first)


def runs(predictions: Predictions) -> Runs:
    """The runs of whole videos, whose rows carry group, video, frame, step, seconds and fps.

    A scene's first run begins with the scene. Rows that were not predicted are in none.
    """
    tags = predictions.tags
    rows = in_time(predictions)
    frame, seconds = np.asarray(tags["frame"])[rows], np.asarray(tags["seconds"])[rows]
    step = np.asarray(tags["step"])[rows]
    before, after = rows[:-1], rows[1:]
    follows = predictions.groups[before] == predictions.groups[after]
    follows &= np.diff(frame) == step[:-1]
    same = predictions.own[before] == predictions.own[after]
    starts = np.flatnonzero(np.append(True, ~(follows & same))[: len(rows)])
    stops = np.append(starts[1:], len(rows)) - 1 if len(rows) else starts
    ended = np.append(follows & ~same, False)[stops]
    period = step / np.asarray(tags["fps"])[rows]
    upto = np.append(seconds[1:], 0.0)[stops]
    until = np.where(ended, upto, seconds[stops] + period[stops])
    return Runs(
        first=rows[starts],
        last=rows[stops],
        frames=stops - starts + 1,
        seconds=np.round(until - seconds[starts], 6),
        ended=ended,
        videos=np.asarray(tags["video"][rows[starts]], dtype=np.str_),
    )


def in_time(predictions: Predictions) -> NDArray[np.intp]:
    """The rows that were predicted, by video and frame."""
    rows = np.flatnonzero(predictions.valid)
    _, video = np.unique(predictions.tags.get("video", predictions.groups), return_inverse=True)
    order = np.lexsort((np.asarray(predictions.tags["frame"])[rows], video[rows]))
    return np.asarray(rows[order], dtype=np.intp)


def median(lengths: NDArray[np.floating], ended: NDArray[np.bool_]) -> float:
    """The Kaplan–Meier median of lengths of which some were cut off; `inf` where it is not reached.

    `ended`: (m,) False where a length is a lower bound. The median is the first length by which at
    most half of the runs go on. Kaplan and Meier, "Nonparametric estimation from incomplete
    observations", 1958.
    """
    if not ended.any():
        return float("inf")
    times, at = np.unique(lengths, return_inverse=True)
    ends = np.bincount(at, weights=ended, minlength=len(times))
    # those cut off at a time are still there at it
    there = np.bincount(at)[::-1].cumsum()[::-1]
    # where nothing is cut off the product is a share, which is 0.5 or not without rounding
    left = 1 - ends.cumsum() / len(at) if ended.all() else np.cumprod((there - ends) / there)
    reached = np.flatnonzero(left <= 0.5)
    return float(times[reached[0]]) if len(reached) else float("inf")


def between(lengths: NDArray[np.floating], ended: NDArray[np.bool_]) -> float:
    """What passes from change to change: all lengths ÷ the runs that ended; `inf` where none did.

    The mean length where lengths are exponential and some cut off; always the time shown over the
    number of changes.
    """
    changes = int(ended.sum())
    return float(lengths.sum() / changes) if changes else float("inf")
