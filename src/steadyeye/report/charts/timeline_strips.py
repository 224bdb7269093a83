"""A model's answers along one video, drawn: runs of one answer, and how sure it was."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.metrics.sequences.answer_runs import certainty, in_time, video_of

COLUMNS = 1_200  # more would be finer than the page shows


@dataclass(frozen=True)
class Stretch:
    """Seconds `start` … `stop` of one answer; −1: a detector found nothing."""

    start: float
    stop: float
    answer: int


@dataclass(frozen=True)
class Point:
    """The mean confidence, 0…1 or None, of the frames from `second` on, in the scene `scene`."""

    second: float
    confidence: float | None
    scene: int


@dataclass(frozen=True)
class Strip:
    """One video along time. `frames`: how many frames one point and one answer stand for."""

    stretches: tuple[Stretch, ...]
    points: tuple[Point, ...]
    frames: int


def strip(predictions: Predictions, video: str) -> Strip:
    """The answers to a video along time, in at most about 1,200 steps.

    Where a step holds several frames their commonest answer stands for them (ties: the first class)
    and their mean confidence. Steps do not cross scene cuts.
    """
    rows = in_time(predictions)
    rows = rows[video_of(predictions, rows) == video]
    tags = predictions.tags
    frame, seconds = np.asarray(tags["frame"])[rows], np.asarray(tags["seconds"])[rows]
    scene, step = np.asarray(tags["scene"])[rows], np.asarray(tags["step"])[rows]
    period = step / np.asarray(tags["fps"])[rows]
    frames = max(-(-len(rows) // COLUMNS), 1)
    starts = _starts(frame // step, scene, frames)
    stops = np.append(starts[1:], len(rows))
    spans = list(zip(starts, stops, strict=True))
    joined = np.append(_follow(frame, scene, step, stops[:-1]), False)
    until = np.where(joined, np.append(seconds, 0.0)[stops], seconds[stops - 1] + period[stops - 1])
    answers = [_commonest(predictions.own[rows[a:b]]) for a, b in spans]
    sure = certainty(predictions)
    means = [None if sure is None else float(sure[rows[a:b]].mean()) for a, b in spans]
    return Strip(
        _stretches(seconds[starts], until, answers, joined),
        tuple(
            Point(float(seconds[a]), mean, int(scene[a]))
            for a, mean in zip(starts, means, strict=True)
        ),
        frames,
    )


def _starts(
    number: NDArray[np.integer], scene: NDArray[np.integer], frames: int
) -> NDArray[np.intp]:
    """Where the steps begin: every `frames` frames, and with every scene."""
    if not len(number):
        return np.zeros(0, dtype=np.intp)
    new = (np.diff(number // frames) != 0) | (np.diff(scene) != 0)
    return np.append(0, np.flatnonzero(new) + 1)


def _follow(
    frame: NDArray[np.integer],
    scene: NDArray[np.integer],
    step: NDArray[np.integer],
    at: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Whether the frame at each position directly follows the one before it."""
    near = frame[at] - frame[at - 1] == step[at]
    return np.asarray(near & (scene[at] == scene[at - 1]), dtype=np.bool_)


def _commonest(answers: NDArray[np.integer]) -> int:
    names, times = np.unique(answers, return_counts=True)
    return int(names[times.argmax()])


def _stretches(
    start: NDArray[np.floating],
    until: NDArray[np.floating],
    answers: list[int],
    joined: NDArray[np.bool_],
) -> tuple[Stretch, ...]:
    found: list[Stretch] = []
    goes_on = False
    for first, last, answer, next_joined in zip(start, until, answers, joined, strict=True):
        if goes_on and found[-1].answer == answer:
            found[-1] = Stretch(found[-1].start, float(last), answer)
        else:
            found.append(Stretch(float(first), float(last), answer))
        goes_on = bool(next_joined)
    return tuple(found)
