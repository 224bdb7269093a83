"""True objects along videos, and in which of their frames a detector finds them."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, iou, reach_score
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import intervals
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Result
from steadyeye.metrics.detection.assignment import assign
from steadyeye.metrics.sequences.answer_runs import in_time
from steadyeye.metrics.sequences.tracklets import SCORE, WEAK

FOUND, RENAMED, WEAKLY_FOUND, LOST = range(4)
"""The state of a true object in a frame: found with its class; found with another class; found
below the threshold; not found."""


@dataclass(frozen=True, eq=False)
class TrueTracks:
    """t true objects and the m frames that each is in, object by object in the order of time.

    `track`: (m,) which object, 0…t−1. `row`: (m,) the row of the predictions. `frame`: (m,) its
    frame number. `box`: (m,) the row in the true boxes. `state`: (m,) `FOUND`, `RENAMED`,
    `WEAKLY_FOUND` or `LOST`. `detection`: (m,) the row in the raw detections, −1 of a lost one.
    `video`: (t,) of each object. `unknown`: objects left out, as the model has not their class.
    """

    track: NDArray[np.intp]
    row: NDArray[np.intp]
    frame: NDArray[np.int64]
    box: NDArray[np.intp]
    state: NDArray[np.int8]
    detection: NDArray[np.intp]
    video: NDArray[np.str_]
    unknown: int

    def __len__(self) -> int:
        return len(self.video)

    @property
    def is_found(self) -> NDArray[np.bool_]:
        """(m,) the frames in which the object is found by its class."""
        return np.asarray(self.state == FOUND)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(t,) in how many frames each object is."""
        return np.bincount(self.track, minlength=len(self))

    def share(self, marks: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(t,) the share of each object's frames that are marked in `marks`, (m,)."""
        marked = np.bincount(self.track, marks, minlength=len(self))
        return np.asarray(marked / np.maximum(self.lengths, 1))


_followed: WeakKeyDictionary[Predictions, dict[float, TrueTracks]] = WeakKeyDictionary()
"""Of predictions in use: several numbers and a section of the report read the same objects."""


def follow(predictions: Predictions, score: float = SCORE) -> TrueTracks:
    """The true objects of whole videos, and the frames in which the detector finds them.

    In each frame the detections of `score` or more are assigned to the true boxes of their class,
    as many as there can be with an IoU of `MATCH` or more; then those that are left to the boxes
    that are left, whatever the class; then those with a lower score above `WEAK`, of the class.
    Ignored boxes, and objects of classes that the model does not have, are left out. Raises
    `UsageError` for another score, and where no tracks or no detections are known.
    """
    if not WEAK < score < 1:
        raise UsageError(f"score={score:g}: give a score between {WEAK:g} and 1, such as {SCORE:g}")
    if predictions.boxes is None or predictions.boxes.track is None:
        raise UsageError(f"{predictions.data} has no true tracks; use mot_tracks or davis_tracks")
    if predictions.raw_detections is None or predictions.model_to_data_class is None:
        raise UsageError(f"no detections of {predictions.model} are stored; run the detector again")
    by_score = _followed.setdefault(predictions, {})
    if score not in by_score:
        by_score[score] = _follow(predictions, predictions.boxes, score)
    return by_score[score]


def _follow(predictions: Predictions, truth: BoxTable, score: float) -> TrueTracks:
    raw, own = predictions.raw_detections, predictions.model_to_data_class
    assert raw is not None, "they were asked for"
    assert own is not None, "the classes too"
    assert truth.track is not None, "and the tracks"
    rows = in_time(predictions)
    known = np.isin(truth.label, own[own >= 0])
    counted = np.flatnonzero(~truth.crowd & known & np.isin(truth.image, rows))
    state = np.full(len(truth), LOST, dtype=np.int8)
    detection = np.full(len(truth), -1, dtype=np.intp)
    label, of_row = own[raw.label], truth.image[counted]
    for row in rows:
        own_boxes = counted[slice(*np.searchsorted(of_row, [row, row + 1]))]
        first, last = np.searchsorted(raw.image, [row, row + 1])
        near = np.arange(first, last)[raw.score[first:last] >= WEAK]
        overlap = iou(truth.boxes[own_boxes], raw.boxes[near])
        same = truth.label[own_boxes][:, None] == label[near][None]
        strong = reach_score(raw.score[near], score)
        for allowed, kind in (
            (same & strong, FOUND),
            (np.broadcast_to(strong, same.shape), RENAMED),
            (same & ~strong, WEAKLY_FOUND),
        ):
            free = (state[own_boxes] == LOST)[:, None] & ~np.isin(near, detection[own_boxes])
            for place, other in assign(np.where(allowed & free, overlap, 0.0)):
                state[own_boxes[place]], detection[own_boxes[place]] = kind, near[other]
    return _sort(predictions, truth, counted, state, detection)


def _sort(
    predictions: Predictions,
    truth: BoxTable,
    counted: NDArray[np.intp],
    state: NDArray[np.int8],
    detection: NDArray[np.intp],
) -> TrueTracks:
    assert truth.track is not None, "they were asked for"
    names, video = predictions.clusters
    frame = np.asarray(predictions.tags["frame"], dtype=np.int64)
    row = truth.image[counted]
    order = np.lexsort((frame[row], truth.track[counted], video[row]))
    counted, row = counted[order], row[order]
    identity = np.stack([video[row], truth.track[counted]], axis=1)
    objects, track = np.unique(identity, axis=0, return_inverse=True)
    every = np.flatnonzero(~truth.crowd & predictions.valid[truth.image])
    several = len(
        np.unique(np.stack([video[truth.image[every]], truth.track[every]], axis=1), axis=0)
    )
    return TrueTracks(
        track.reshape(-1),
        row.astype(np.intp),
        frame[row],
        counted,
        state[counted],
        detection[counted],
        names[objects[:, 0].astype(np.intp)],
        several - len(objects),
    )


def note_left_out(objects: TrueTracks, more: str = "") -> tuple[str, ...]:
    """Notes on objects left out because the model does not have their class, and further notes."""
    notes = [more] if more else []
    if objects.unknown:
        notes.append(
            f"{number_of(objects.unknown, 'object')} left out: of classes that the model does not "
            "have"
        )
    return tuple(notes)


def mean_of_objects(
    name: str,
    objects: TrueTracks,
    values: NDArray[np.float64],
    counted: NDArray[np.bool_] | None = None,
    most: float = 1.0,
    why: str = "",
) -> Result:
    """The mean of a value of each object, 0…`most`, with an interval clustered by video.

    `counted`: (t,) the objects that have one; None: all. `why`: the others do not, for the note.
    """
    known = np.ones(len(objects), dtype=np.bool_) if counted is None else counted
    estimate = intervals.mean(values[known] / most, objects.video[known])
    left = int((~known).sum())
    more = f"{number_of(left, 'object')} left out: {why}" if left else ""
    return Result.of(name, _stretch(estimate, most), notes=note_left_out(objects, more))


def _stretch(estimate: Interval, most: float) -> Interval:
    value, low, high = (
        None if end is None else end * most for end in (estimate.value, estimate.low, estimate.high)
    )
    # what `intervals` takes for frames, in a single video, are objects here
    return Interval(value, low, high, estimate.n, estimate.method.replace(" frame", " object"))


def rename(metric: str, score: float) -> str:
    """The name of a metric, with the threshold where it is not the usual one."""
    return metric if score == SCORE else f"{metric}(score={score:g})"
