"""The three errors of Zhang and Wang, "On the Stability of Video Detection and Tracking", 2016.

Of a true object k that is in t frames: the **fragment error** is f ÷ (t − 1), where f counts how
often it changes between found and not found. Over the frames in which it is found, with the centre
(x, y), width w and height h of the detection and, with a bar, of the true box, the **centre
position error** is σ((x − x̄)/w̄) + σ((y − ȳ)/h̄), and the **scale and ratio error** is
σ(√(wh/w̄h̄)) + σ((w/h)/(w̄/h̄)). σ is the standard deviation of all (÷ n); each error is the mean
over objects. The paper sums them up over thresholds on the score; here the threshold is fixed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result
from steadyeye.metrics.sequences.true_tracks import (
    FOUND,
    TrueTracks,
    follow,
    mean_of_objects,
    rename,
)

FEWEST = 2
"""Frames in which an object has to be found for a standard deviation, or be for a change."""
MOST_CENTRE = 1.0
"""Boxes with an IoU of 0.5 or more have centres within half of the true width: σ is at most 0.5."""
MOST_SCALE = (2**0.5 - 0.5**0.5) / 2 + (2.25 - 1 / 2.25) / 2
"""Their areas differ by a factor of 2 at most, their ratios by one of 2.25 (a box 1.5 as wide and
0.75 as high): σ is at most half of each range."""


@dataclass(frozen=True, eq=False)
class ObjectErrors:
    """(t,) each: the errors of every true object; NaN where it is in too few frames for one."""

    fragment: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def measure_errors(predictions: Predictions, objects: TrueTracks) -> ObjectErrors:
    """The three errors of each object."""
    truth, raw = predictions.boxes, predictions.raw_detections
    assert truth is not None, "they were followed"
    assert raw is not None, "so were these"
    state = objects.is_found
    same = objects.track[1:] == objects.track[:-1]
    changes = np.bincount(
        objects.track[1:][same], (state[1:] != state[:-1])[same], minlength=len(objects)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        fragment = np.where(objects.lengths < FEWEST, np.nan, changes / (objects.lengths - 1))
    hits = np.flatnonzero(objects.state == FOUND)
    track = objects.track[hits]
    (x, y, w, h), (tx, ty, tw, th) = (
        _describe(table[rows])
        for table, rows in (
            (raw.boxes, objects.detection[hits]),
            (truth.boxes, objects.box[hits]),
        )
    )
    spread = _spread_by(track, len(objects))
    centre = spread((x - tx) / tw) + spread((y - ty) / th)
    scale = spread(np.sqrt(w * h / (tw * th))) + spread((w / h) / (tw / th))
    return ObjectErrors(fragment, centre, scale)


def _describe(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """(4, n) centres, widths and heights of (n, 4) boxes."""
    sides = corners[:, 2:] - corners[:, :2]
    return np.concatenate([corners[:, :2] + sides / 2, sides], axis=1).T


def _spread_by(
    track: NDArray[np.intp], tracks: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """What gives the standard deviation of values by track; NaN for fewer than `FEWEST`."""
    count = np.bincount(track, minlength=tracks)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = np.bincount(track, values, tracks) / np.maximum(count, 1)
        square = np.bincount(track, (values - mean[track]) ** 2, tracks)
        return np.where(count < FEWEST, np.nan, np.sqrt(square / np.maximum(count, 1)))

    return spread


def average_error(name: str, predictions: Predictions, score: float) -> Result:
    """The mean over true objects of the error that the metric `name` is about."""
    objects = follow(predictions, score)
    errors = measure_errors(predictions, objects)
    values, most, why = {
        "fragment_error": (errors.fragment, 1.0, "in fewer than two frames"),
        "center_position_error": (errors.centre, MOST_CENTRE, "found in fewer than two frames"),
        "scale_and_ratio_error": (errors.scale, MOST_SCALE, "found in fewer than two frames"),
    }[name]
    known = ~np.isnan(values)
    return mean_of_objects(rename(name, score), objects, np.nan_to_num(values), known, most, why)
