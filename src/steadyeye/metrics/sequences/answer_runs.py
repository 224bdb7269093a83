"""Answers along the frames of a scene: changes, runs of one answer, the least steady seconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.pm_sets import PmSets, consecutive
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import Interval

SECOND = 1.0
NEAR = 10  # frames, the k of the published pm-sets


def find_flips(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(pairs,) True where the two frames have other top-1 classes, of all the model's own.

    `pairs`: (pairs, 2) rows of consecutive frames, as `core.pm_sets.consecutive` gives them.

    Example:
        >>> from steadyeye.testing import example_video
        >>> video = example_video()
        >>> flips = find_flips(video, consecutive(video))
        >>> int(flips.sum()), len(flips)
        (12, 238)

    """
    before, after = predictions.own[pairs[:, 0]], predictions.own[pairs[:, 1]]
    return np.asarray(before != after, dtype=np.bool_)


def flip_share(predictions: Predictions, pairs: NDArray[np.intp]) -> Interval:
    """The share of pairs, in the order of time, whose answer changes.

    Several videos are its clusters; within one video the interval is over blocks of consecutive
    pairs.
    """
    changed, videos = find_flips(predictions, pairs), predictions.videos[pairs[:, 0]]
    return block_bootstrap.mean(changed, videos, block_bootstrap.length(len(pairs)))


def jumps(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """(pairs,) |Δ confidence| from each frame to the next, 0…1; None without probabilities."""
    sure = certainty(predictions)
    return None if sure is None else np.abs(sure[pairs[:, 1]] - sure[pairs[:, 0]])


def certainty(predictions: Predictions) -> NDArray[np.float64] | None:
    """(n,) the probability of the best of the model's own classes; NaN in rows with an error.

    Scores in 0…1 are taken for probabilities, others for logits: a softmax over all the model's
    own classes. None where they are logits of which only the best was kept, as earlier versions
    did. A detector that finds nothing is sure of nothing: 0.
    """
    valid, best = predictions.valid, predictions.own_score.astype(np.float64)
    if predictions.has_probabilities:
        return best
    if "softmax" in predictions.stored:
        return np.where(valid, predictions.stored["softmax"].astype(np.float64), np.nan)
    if predictions.scores.shape[1] != len(predictions.model_classes):
        return None
    with np.errstate(invalid="ignore"):
        shifted = predictions.scores.astype(np.float64) - best[:, None]
        return np.asarray(1 / np.exp(shifted).sum(axis=1))


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
    _, video = np.unique(predictions.videos, return_inverse=True)
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
    # differences of times that are equal but for rounding are one time
    times, at = np.unique(np.round(lengths, 9), return_inverse=True)
    ends = np.bincount(at, weights=ended, minlength=len(times))
    # those cut off at a time are still there at it
    at_risk = np.bincount(at)[::-1].cumsum()[::-1]
    # a product that is one half may lie above it by rounding
    reached = np.flatnonzero(np.cumprod((at_risk - ends) / at_risk) <= 0.5 + 1e-9)
    return float(times[reached[0]]) if len(reached) else float("inf")


def between(lengths: NDArray[np.floating], ended: NDArray[np.bool_]) -> float:
    """The mean time between changes: all lengths ÷ the runs that ended; `inf` if none did.

    The mean length where lengths are exponential and some cut off; always the time shown over the
    number of changes.
    """
    changes = int(ended.sum())
    return float(lengths.sum() / changes) if changes else float("inf")


@dataclass(frozen=True, eq=False)
class Window:
    """One second of a scene, or the whole of a shorter one.

    `rows`: its frames in order. `changes`: of answer between them. `jump`: Σ |Δ confidence|.
    """

    rows: NDArray[np.intp]
    changes: int
    jump: float


def windows(predictions: Predictions, most: int) -> list[Window]:
    """The `most` least steady seconds in which the answer changes, none overlapping another.

    They are ranked by changes + jump. The least steady one comes first (ties: the earlier in the
    source), then the least steady that shares no frame with it, and so on. Without probabilities
    the changes alone count.
    """
    pairs = consecutive(predictions)
    changed = find_flips(predictions, pairs)
    moved = jumps(predictions, pairs)
    jump = np.zeros(len(pairs)) if moved is None else moved
    stops = _stops(predictions, pairs)
    changes = _sums(changed.astype(np.float64), stops)
    sums = _sums(jump, stops)
    free = changes > 0
    begins, ends = pairs[:, 0], pairs[stops - 1, 1]
    least_steady: list[Window] = []
    while len(least_steady) < most and free.any():
        first = int(np.where(free, changes + sums, -np.inf).argmax())
        stop = int(stops[first])
        rows = np.append(pairs[first:stop, 0], pairs[stop - 1, 1])
        least_steady.append(Window(rows, round(float(changes[first])), float(sums[first])))
        # neither what begins within it or on its last frame, nor what reaches into it
        free[first:stop] = False
        free &= (begins != ends[first]) & (ends != begins[first])
        free[:first] &= stops[:first] <= first
    return least_steady


def _stops(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    """For the window that begins with each pair, the pair after its last.

    Both frames of a pair lie within a second of the first frame, and all are of one scene.
    """
    groups, seconds = predictions.groups, np.asarray(predictions.tags["seconds"])
    frame = np.asarray(predictions.tags["frame"])
    breaks = np.flatnonzero(
        (groups[pairs[1:, 0]] != groups[pairs[:-1, 1]])
        | (frame[pairs[1:, 0]] != frame[pairs[:-1, 1]])
    )
    stops = np.zeros(len(pairs), dtype=np.intp)
    for start, stop in zip([0, *(breaks + 1)], [*(breaks + 1), len(pairs)], strict=True):
        begins, ends = seconds[pairs[start:stop, 0]], seconds[pairs[start:stop, 1]]
        # half a millisecond less, so that 25 frames are a second whatever 1/25 is rounded to
        near = np.searchsorted(ends, begins + SECOND - 0.0005, side="left")
        stops[start:stop] = start + np.maximum(near, np.arange(stop - start) + 1)
    return stops


def _sums(values: NDArray[np.floating], stops: NDArray[np.intp]) -> NDArray[np.float64]:
    """The sum of the values from each place to its stop."""
    upto = np.append(0.0, np.cumsum(values))
    return np.asarray(upto[stops] - upto[:-1], dtype=np.float64)


def choose_distance(predictions: Predictions, k: int | None) -> tuple[int, int]:
    """How many frames a window reaches to each side, and how many one predicted frame is apart.

    `k`: what the user asks for, None: `NEAR`. Raises `UsageError` for one below the second.
    """
    step = int(np.max(predictions.tags.get("step", 1), initial=1))
    distance = max(NEAR, step) if k is None else k
    if distance < step:
        raise UsageError(
            f"k={k}, but the frames that were predicted are {step} apart; choose k from {step} up"
        )
    return distance, step


def steady_sets(sets: PmSets, answers: NDArray[np.intp], k: int) -> NDArray[np.bool_]:
    """(m,) True where every frame of a set within ±k has the answer of its anchor.

    `answers`: (n,) the class of each row.
    """
    near = np.flatnonzero((sets.set_of >= 0) & (np.abs(sets.offsets) <= k))
    set_of = sets.set_of[near]
    steady = np.ones(len(sets), dtype=np.bool_)
    steady[set_of[answers[near] != answers[sets.anchors][set_of]]] = False
    return steady


def steady_windows(
    predictions: Predictions, rows: NDArray[np.intp], answers: NDArray[np.intp], k: int
) -> NDArray[np.bool_]:
    """(rows,) True where no other answer is within ±k frames of the scene.

    `rows`: in the order of time, as `in_time` gives them. `answers`: (n,) the class of each row.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    frame = np.asarray(predictions.tags["frame"], dtype=np.int64)[rows]
    before, after = rows[:-1], rows[1:]
    scene = predictions.groups[before] != predictions.groups[after]
    change = scene | (answers[before] != answers[after])
    run = np.append(0, np.cumsum(change))
    starts = np.append(0, np.flatnonzero(change) + 1)
    far = np.iinfo(np.int64).max // 2
    # the last frame before each run and the first after it, where they are of the same scene
    left = np.append(-far, np.where(scene[starts[1:] - 1], -far, frame[starts[1:] - 1]))
    right = np.append(np.where(scene[starts[1:] - 1], far, frame[starts[1:]]), far)
    return np.asarray((frame - left[run] > k) & (right[run] - frame > k), dtype=np.bool_)
