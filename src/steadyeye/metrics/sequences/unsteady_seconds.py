"""The seconds in which a detector is least steady: most objects lost, or of another class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.sequences.object_steadiness import select_steady
from steadyeye.metrics.sequences.scenes import list_followed
from steadyeye.metrics.sequences.tracklets import DETECTED, DIP, MISS, UNSURE, Tracklets

SECOND = 1.0
PRESENT, WEAK, RENAMED, LOST, UNKNOWN = "present", "weak", "renamed", "lost", "unsure"
STATES = {DETECTED: PRESENT, DIP: WEAK, MISS: LOST, UNSURE: UNKNOWN}


@dataclass(frozen=True, eq=False)
class UnsteadySecond:
    """A second of a scene. `rows`: of the predictions, in the order of time.

    `faults`: frames of objects that are below the threshold, lost or renamed. `objects`: the
    tracklets found five times or more that are in it, those with most faults first.
    """

    rows: NDArray[np.intp]
    faults: int
    objects: tuple[int, ...]


def name_states(objects: Tracklets, raw: BoxTable) -> NDArray[np.str_]:
    """(m,) the state of each object in each frame: one of `PRESENT`, `WEAK`, … `UNKNOWN`.

    Renamed: detected as another class than in most of its frames (ties: the lower class).
    """
    states = np.array([STATES[int(state)] for state in objects.state], dtype="<U8")
    detected = objects.state == DETECTED
    label = raw.label[np.maximum(objects.detection, 0)]
    votes = np.zeros((len(objects), int(raw.label.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(votes, (objects.track[detected], label[detected]), 1)
    usual = votes.argmax(axis=1)
    states[detected & (label != usual[objects.track])] = RENAMED
    return states


def rank_seconds(predictions: Predictions, objects: Tracklets, most: int) -> list[UnsteadySecond]:
    """The `most` seconds with the most faults, of which none share a frame; none without one.

    Of objects with five detections or more. A second does not cross a scene's end.
    """
    raw = predictions.raw_detections
    assert raw is not None, "they were linked"
    states = name_states(objects, raw)
    fault = np.isin(states, (WEAK, RENAMED, LOST)) & select_steady(objects)
    by_row = np.bincount(objects.row, fault, minlength=len(predictions))
    windows: list[tuple[int, int, NDArray[np.intp]]] = []
    for scene in list_followed(predictions):
        seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)[scene]
        ends = np.searchsorted(seconds, seconds + SECOND - 1e-9)
        sums = np.append(0, np.cumsum(by_row[scene]))
        windows += [
            (-int(sums[stop] - sums[start]), int(scene[start]), scene[start:stop])
            for start, stop in enumerate(ends)
        ]
    chosen: list[UnsteadySecond] = []
    taken = np.zeros(len(predictions), dtype=np.bool_)
    for negative, _, rows in sorted(windows, key=lambda window: window[:2]):
        if len(chosen) == most or not negative:
            break
        if not taken[rows].any():
            taken[rows] = True
            chosen.append(UnsteadySecond(rows, -negative, _order(objects, fault, rows)))
    return chosen


def _order(objects: Tracklets, fault: NDArray[np.bool_], rows: NDArray[np.intp]) -> tuple[int, ...]:
    inside = np.isin(objects.row, rows) & select_steady(objects)
    tracks = np.unique(objects.track[inside])
    faults = np.bincount(objects.track[inside], fault[inside], minlength=len(objects))
    return tuple(int(track) for track in tracks[np.argsort(-faults[tracks], kind="stable")])
