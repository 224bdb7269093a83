"""Metrics of linked objects: missed frames, changes of class, place and score."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, areas
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.trials import Statistic, share_statistic
from steadyeye.core.types import Result
from steadyeye.metrics.sequences.scenes import ROUNDED, list_followed, note_sparse
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    DIP,
    MISS,
    SCORE,
    UNSURE,
    WEAK,
    Tracklets,
    link,
)
from steadyeye.metrics.sequences.true_tracks import rename

LEAST = 5
"""Detections from which an object counts; fewer may be a false one, which `flicker_rate` counts."""
FEW = 2
"""Frames up to which an object is a flicker."""
AROUND = 2
"""Frames on each side through which the smooth path of a box is laid."""
Values: TypeAlias = Callable[
    [Predictions, float], tuple[NDArray[np.intp], NDArray[np.floating | np.bool_]]
]
"""Predictions and a score → rows of the predictions, and the value in 0…1 of an object in each."""
UNEVEN = 0.2
"""Share by which the times between these frames may differ; a path through others is not smooth."""


@dataclass(frozen=True, eq=False)
class Blinks:
    """The b runs of frames in which an object was not found, between frames in which it was.

    `first`, `last`: (b,) rows of the `Tracklets`. `state`: (b,) `UNSURE`, as then all frames of it
    are; else `MISS` where any is, else `DIP`.
    """

    first: NDArray[np.intp]
    last: NDArray[np.intp]
    state: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.first)


def find_blinks(objects: Tracklets) -> Blinks:
    """All runs of frames without the object, in the order of objects and time."""
    gap = objects.state != DETECTED
    # an object begins and ends with a frame in which it was found: no run goes over two objects
    first = np.flatnonzero(gap & ~np.append(False, gap[:-1]))
    last = np.flatnonzero(gap & ~np.append(gap[1:], False))
    missed = np.append(0, np.cumsum(objects.state == MISS))
    state = np.where(missed[last + 1] > missed[first], MISS, objects.state[first])
    return Blinks(first, last, state.astype(np.int8))


def count_detections(objects: Tracklets) -> NDArray[np.int64]:
    """(t,) in how many frames each object was found."""
    return np.bincount(objects.track[objects.state == DETECTED], minlength=len(objects))


def select_steady(objects: Tracklets) -> NDArray[np.bool_]:
    """(m,) the frames of objects that were found at least `LEAST` times."""
    return np.asarray(count_detections(objects)[objects.track] >= LEAST)


def measure(
    predictions: Predictions, rows: NDArray[np.intp], values: NDArray[np.floating | np.bool_]
) -> Interval:
    """The mean of values in 0…1 of rows of the predictions, clustered by video or in blocks."""
    videos = predictions.videos[rows]
    # objects of a frame follow each other, and a block is a stretch of time
    frames = np.asarray(predictions.tags["frame"])[rows]
    order = np.lexsort((frames, videos))
    return block_bootstrap.mean(values[order], videos[order], block_bootstrap.length(len(order)))


def compare_values(values: Values) -> Callable[..., Statistic]:
    """The statistic by which models are compared on the mean of `values` over their own objects."""

    def outcomes(predictions: Predictions, score: float = SCORE) -> Statistic:
        rows, own = values(predictions, score)
        # rows of scenes in the order of videos and time, the same for all models
        frames = np.concatenate([np.zeros(0, dtype=np.intp), *list_followed(predictions)])
        n = len(predictions.clusters[1])
        sums, totals = (
            np.bincount(rows, weights, minlength=n)[frames].astype(np.float64)
            for weights in (own, None)
        )
        return share_statistic(
            (sums, totals),
            predictions.videos[frames],
            lambda: measure(predictions, rows, own),
            block_bootstrap.length(len(frames)),
        )

    return outcomes


def _select_sure(objects: Tracklets) -> NDArray[np.bool_]:
    """(m,) the frames that `blink_rate` counts."""
    return np.asarray(select_steady(objects) & (objects.state != UNSURE))


def find_lost(predictions: Predictions, score: float) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The values of `blink_rate`: whether an object is lost."""
    objects = link(predictions, score)
    sure = _select_sure(objects)
    return objects.row[sure], np.asarray(objects.state[sure] != DETECTED)


def count_blinks(predictions: Predictions, score: float) -> Result:
    """`blink_rate`, with its parts as cells."""
    objects = link(predictions, score)
    sure = _select_sure(objects)
    rows, state = objects.row[sure], objects.state[sure]
    total = measure(predictions, rows, state != DETECTED)
    cells = tuple(
        Result.of(name, measure(predictions, rows, state == kind))
        for name, kind in (("not found", MISS), ("below the threshold", DIP))
    )
    return Result.of(
        rename("blink_rate", score), total, notes=_notes(predictions, objects), cells=cells
    )


def _notes(predictions: Predictions, objects: Tracklets) -> tuple[str, ...]:
    frames = select_steady(objects)
    blinks = find_blinks(objects)
    states = blinks.state[frames[blinks.first]]
    unsure = int((states == UNSURE).sum())
    steady = int((count_detections(objects) >= LEAST).sum())
    notes: tuple[str, ...] = (
        f"{number_of(len(states) - unsure, 'blink')} of {number_of(steady, 'object')}; {unsure:,} "
        "more are not counted, because the detector may not be their cause",
    )
    lowest = predictions.recipe.get("threshold")
    if lowest is not None and float(lowest) > WEAK:
        notes += (
            f"{predictions.model} gives no score below {float(lowest):g}: an object whose score "
            "falls below it counts as not found",
        )
    return notes + note_sparse(predictions)


def find_flickers(
    predictions: Predictions, score: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The values of `flicker_rate`: whether an object has `FEW` frames at most.

    Of objects that are not cut by a scene's ends, in the row where they begin.
    """
    objects = link(predictions, score)
    whole = ~objects.starts & ~objects.ends
    first = np.flatnonzero(np.append(True, np.diff(objects.track) > 0)[: len(objects.track)])
    frames = np.bincount(objects.track, minlength=len(objects))
    return objects.row[first][whole], np.asarray(frames[whole] <= FEW)


def count_flickers(predictions: Predictions, score: float) -> Result:
    """`flicker_rate`, with a note on the objects that do not count."""
    objects = link(predictions, score)
    estimate = measure(predictions, *find_flickers(predictions, score))
    cut = int((objects.starts | objects.ends).sum())
    note = f"{number_of(cut, 'object')} left out, cut off by the beginning or end of a scene"
    notes = ((note,) if cut else ()) + note_sparse(predictions)
    return Result.of(rename("flicker_rate", score), estimate, notes=notes)


def find_pairs(objects: Tracklets, *states: int) -> NDArray[np.intp]:
    """(p, 2) rows of neighbouring frames of one object, at least `LEAST` times found, in `states`.

    Other frames between them are left out, so that a pair may span a gap.
    """
    rows = np.flatnonzero(np.isin(objects.state, states) & select_steady(objects))
    pairs = np.stack([rows[:-1], rows[1:]], axis=1)
    same = objects.track[pairs[:, 0]] == objects.track[pairs[:, 1]]
    return np.asarray(pairs[same], dtype=np.intp)


def find_class_changes(
    predictions: Predictions, score: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The values of `class_change_rate`: whether an object's next detection has another class."""
    objects = link(predictions, score)
    pairs = find_pairs(objects, DETECTED)
    labels = _raw(predictions).label[objects.detection[pairs]]
    return objects.row[pairs[:, 0]], np.asarray(labels[:, 0] != labels[:, 1])


def find_swings(
    predictions: Predictions, score: float
) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
    """The values of `confidence_swing`: |Δ score| to the next frame, below the threshold too."""
    objects = link(predictions, score)
    pairs = find_pairs(objects, DETECTED, DIP)
    scores = _raw(predictions).score[objects.detection[pairs]]
    return objects.row[pairs[:, 0]], np.abs(scores[:, 1] - scores[:, 0])


def measure_values(name: str, predictions: Predictions, score: float, values: Values) -> Result:
    """The mean of `values`, as the result of the metric `name`."""
    estimate = measure(predictions, *values(predictions, score))
    return Result.of(rename(name, score), estimate, notes=note_sparse(predictions))


def find_moves(
    predictions: Predictions, score: float
) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
    """The values of `box_jitter`: how far a box is off its path, as a share of √area, at most 1."""
    objects = link(predictions, score)
    rows, place, _ = find_jitter(objects, np.asarray(predictions.tags["seconds"], dtype=np.float64))
    return objects.row[rows], np.minimum(place, 1.0)


def measure_jitter(predictions: Predictions, score: float) -> Result:
    """`box_jitter`, with that of the size and that in pixels as its cells."""
    objects = link(predictions, score)
    seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)
    rows, place, size = find_jitter(objects, seconds)
    at = objects.row[rows]
    cell = Result.of("size", measure(predictions, at, np.minimum(size, 1.0)))
    estimate = measure(predictions, at, np.minimum(place, 1.0))
    pixels = _average_pixels(predictions, at, place * find_lengths(objects.boxes[rows]))
    uneven = int((~_list_windows(objects, seconds)[1]).sum())
    rest = (
        f"{number_of(uneven, 'frame')} left out: their neighbours are not equally far apart in time"
    )
    notes = ((rest,) if uneven else ()) + note_sparse(predictions)
    return Result.of(rename("box_jitter", score), estimate, cells=(cell, pixels), notes=notes)


def find_lengths(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) √area of (n, 4) boxes, in pixels."""
    return np.asarray(np.sqrt(np.maximum(areas(boxes), 1e-9)), dtype=np.float64)


def _average_pixels(
    predictions: Predictions, rows: NDArray[np.intp], pixels: NDArray[np.float64]
) -> Result:
    """The mean of distances in pixels, which nothing bounds: a bootstrap over videos, or blocks.

    Of 20 videos or more: one far box moves such a mean, and fewer videos hardly show any.
    """
    videos = predictions.videos[rows]
    order = np.lexsort((np.asarray(predictions.tags["frame"])[rows], videos))
    estimate = block_bootstrap.bootstrap(
        lambda places: float(pixels[order][places].mean()),
        videos[order],
        block_bootstrap.length(len(order)),
        block_bootstrap.FEW_OF_MEAN,
    )
    return Result.of("pixels", estimate, unit="pixels")


def find_jitter(
    objects: Tracklets, seconds: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Where a box lies in the middle of 2 · `AROUND` + 1 frames with one, and how far it is off.

    `seconds`: (n,) the time of each row of the predictions; those of a window are equally far
    apart. Returns three (j,) arrays: rows of the objects; the distance of the centre from the
    parabola of least squares through the window's centres, as a share of √area; and |ln| of √area
    over its own parabola. A camera that shakes moves the boxes too: the centres of an object are
    those in the picture or those without the motion of the camera, whichever are less far off.
    """
    windows, is_even = _list_windows(objects, seconds)
    windows = windows[is_even]
    middle = windows[:, AROUND]
    sides = objects.boxes[..., 2:] - objects.boxes[..., :2]
    centres = objects.boxes[..., :2] + sides / 2
    length = find_lengths(objects.boxes)
    places = [
        np.hypot(*_residual(path[windows]).T) / length[middle]
        for path in (centres, centres - objects.camera)
    ]
    track = objects.track[middle]
    sums = [np.bincount(track, place, minlength=len(objects)) for place in places]
    place = np.where((sums[1] < sums[0])[track], places[1], places[0])
    size = np.abs(_residual(np.log(length)[windows][..., None])[:, 0])
    return middle, place, size


def _list_windows(
    objects: Tracklets, seconds: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """(w, 2 · `AROUND` + 1) rows of frames in a row with a box of one object; (w,) if in even time.

    Where a frame was not predicted, or the frame rate changes, they are not.
    """
    boxed = np.isin(objects.state, (DETECTED, DIP)) & select_steady(objects)
    rows = np.flatnonzero(boxed)
    width = 2 * AROUND + 1
    if len(rows) < width:
        return np.zeros((0, width), dtype=np.intp), np.zeros(0, dtype=np.bool_)
    windows = np.lib.stride_tricks.sliding_window_view(rows, width)
    # rows of an object follow each other frame by frame, so that a gap shows in the numbers
    whole = windows[:, -1] - windows[:, 0] == width - 1
    whole &= objects.track[windows[:, 0]] == objects.track[windows[:, -1]]
    windows = windows[whole]
    apart = np.diff(seconds[objects.row[windows]], axis=1)
    is_even = np.ptp(apart, axis=1) <= UNEVEN * apart.mean(axis=1) + ROUNDED
    return windows, np.asarray(is_even, dtype=np.bool_)


def _residual(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(w, d) the middle of (w, 2 · AROUND + 1, d) values less the parabola through all."""
    steps = np.arange(-AROUND, AROUND + 1)
    powers = np.stack([np.ones(len(steps)), steps, steps**2], axis=1)
    weights = np.linalg.pinv(powers)[0]
    return np.asarray(values[:, AROUND] - np.einsum("s,wsd->wd", weights, values))


def _raw(predictions: Predictions) -> BoxTable:
    raw = predictions.raw_detections
    assert raw is not None, "they were linked"
    return raw
