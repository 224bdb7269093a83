"""Compares tracks of detections with true tracks by the package `trackeval`.

Only its metrics are imported, because the rest needs OpenCV and more.
"""

import contextlib
import importlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, in_classes, iou, take
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.bootstrap import ends
from steadyeye.core.stats.intervals import REPLICATES, Interval
from steadyeye.core.types import Result
from steadyeye.metrics.detection.assignment import assign
from steadyeye.metrics.sequences.scenes import list_followed, note_sparse
from steadyeye.metrics.sequences.tracklets import DETECTED, link
from steadyeye.metrics.sequences.true_tracks import follow, rename

SequenceData = dict[str, Any]
"""The input of `trackeval` for a sequence: ids from 0 and similarities, frame by frame."""


@dataclass(frozen=True, eq=False)
class TrackShare:
    """What is right of a whole at each of t thresholds, (t,) each, and the power of their ratio.

    The sums of both over sequences, divided, to that power, are what a metric is of all of them.
    """

    right: NDArray[np.float64]
    whole: NDArray[np.float64]
    power: float


def load_metric(module: str, name: str) -> Any:
    """A metric of `trackeval`, imported without its printed output."""
    with contextlib.redirect_stdout(io.StringIO()):
        metrics: Any = importlib.import_module("trackeval.metrics")
        return getattr(getattr(metrics, module), name)({"PRINT_CONFIG": False})


def judge(
    name: str,
    metric: Any,
    share: Callable[[SequenceData], TrackShare],
    predictions: Predictions,
    score: float,
) -> Result:
    """A metric of `trackeval`, over all videos and classes together.

    `share`: of what the metric says of a sequence. Tracks are those of `link` with `score`; a class
    of a video is a sequence of its own, so that an object with another class is not found.
    """
    follow(predictions, score)  # refuses what has no tracks
    sequences = list(list_sequences(predictions, score))
    timing = contextlib.redirect_stdout(io.StringIO())
    with timing:
        shares = [share(metric.eval_sequence(data)) for _, data in sequences]
    estimate = bound_mean(shares, [video for video, _ in sequences])
    objects = sum(data["num_gt_ids"] for _, data in sequences)
    own = Result.of(rename(name, score), estimate, notes=note_sparse(predictions))
    return replace(own, n=objects)


def bound_mean(shares: Sequence[TrackShare], of_video: Sequence[str]) -> Interval:
    """The mean over thresholds of the powers of shares of all sequences together.

    With Gaffke's bounds over videos (`core.stats.bounded_means`) by random draws: every draw rises
    with what is right. Classes of a video are no samples of it: a single video has no interval.
    """
    names, video = np.unique(np.asarray(of_video, dtype=np.str_), return_inverse=True)
    if not len(names):
        return Interval(None, None, None, 0, "none: n = 0")
    right, whole = (np.zeros((len(names), shares[0].right.size)) for _ in range(2))
    np.add.at(right, video, [share.right for share in shares])
    np.add.at(whole, video, [share.whole for share in shares])
    power = shares[0].power

    def average(part: NDArray[np.float64], of: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.mean((part / of) ** power, axis=-1), dtype=np.float64)

    value = float(average(right.sum(axis=0), whole.sum(axis=0)))
    if len(names) == 1:
        return Interval(value, None, None, 1, "none: one video is too few")
    draws = np.random.default_rng(0).standard_exponential((REPLICATES, len(names) + 1))
    further = draws[:, -1:] * np.sum(whole**2, axis=0) / whole.sum(axis=0)
    sums, weights = draws[:, :-1] @ right, draws[:, :-1] @ whole + further
    low, high = ends(average(sums, weights))[0], ends(average(sums + further, weights))[1]
    method = f"Gaffke's bounds over {number_of(len(names), 'video')}"
    return Interval(value, min(low, value), max(high, value), len(names), method)


def list_sequences(predictions: Predictions, score: float) -> Iterator[tuple[str, SequenceData]]:
    """The name of the video and the data of every class of every video that has either.

    Of the scenes alone in which objects are followed.
    """
    raw, own = predictions.raw_detections, predictions.model_to_data_class
    assert predictions.boxes is not None, "they were followed"
    assert raw is not None, "so were these"
    assert own is not None, "and their classes are known"
    truth = in_classes(predictions.boxes)
    objects = link(predictions, score)
    linked = np.flatnonzero(objects.state == DETECTED)
    detected = take(raw, objects.detection[linked])
    label, track = own[detected.label], objects.track[linked]
    counted = (label >= 0) & ~on_ignored(truth, detected)
    names, video = predictions.clusters
    followed = np.zeros(len(predictions), dtype=np.bool_)
    for rows in list_followed(predictions):
        followed[rows] = True
    for number, name in enumerate(names):
        rows = np.flatnonzero((video == number) & followed)
        rows = rows[np.argsort(np.asarray(predictions.tags["frame"])[rows], kind="stable")]
        real = np.isin(truth.image, rows) & ~truth.crowd
        hits = np.isin(detected.image, rows) & counted
        for of_class in np.unique(np.append(truth.label[real], label[hits])):
            some, those = real & (truth.label == of_class), hits & (label == of_class)
            yield (
                str(name),
                _lay_out(rows, take(truth, np.flatnonzero(some)), detected, track, those),
            )


def on_ignored(truth: BoxTable, detected: BoxTable) -> NDArray[np.bool_]:
    """(d,) the detections that an ignored true box takes, as MOTChallenge removes them.

    In each image they are assigned to all true boxes, whatever the class.
    """
    taken = np.zeros(len(detected), dtype=np.bool_)
    for image in np.unique(truth.image[truth.crowd]):
        boxes, near = (
            np.flatnonzero(truth.image == image),
            np.flatnonzero(detected.image == image),
        )
        for place, other in assign(iou(truth.boxes[boxes], detected.boxes[near])):
            taken[near[other]] = truth.crowd[boxes[place]]
    return taken


def _lay_out(
    rows: NDArray[np.intp],
    truth: BoxTable,
    detected: BoxTable,
    track: NDArray[np.intp],
    those: NDArray[np.bool_],
) -> SequenceData:
    assert truth.track is not None, "they were asked for"
    hits, of_track = take(detected, np.flatnonzero(those)), track[those]
    true_ids, true_number = np.unique(truth.track, return_inverse=True)
    own_ids, own_number = np.unique(of_track, return_inverse=True)
    at = [(np.flatnonzero(truth.image == r), np.flatnonzero(hits.image == r)) for r in rows]
    return {
        "num_gt_ids": len(true_ids),
        "num_tracker_ids": len(own_ids),
        "num_gt_dets": len(truth),
        "num_tracker_dets": len(hits),
        "num_timesteps": len(rows),
        "gt_ids": [true_number[some] for some, _ in at],
        "tracker_ids": [own_number[others] for _, others in at],
        "similarity_scores": [iou(truth.boxes[some], hits.boxes[others]) for some, others in at],
    }
