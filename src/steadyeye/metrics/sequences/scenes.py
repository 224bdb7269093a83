"""The scenes of a run in which objects can be followed from frame to frame."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.sequences.answer_runs import in_time

APART = 0.2
"""Seconds between two frames up to which an object can be followed from one to the next."""
ROUNDED = 0.001
"""Seconds that containers round times to."""


def can_follow(predictions: Predictions) -> bool:
    """Whether they are a detector's, with all that it gave, on frames that are close together.

    Of any scene: those with frames further apart are left out, and `note_sparse` says so.
    """
    sparse = _find_sparse(predictions) if predictions.raw_detections is not None else [True]
    return not sparse or not all(sparse)


def note_sparse(predictions: Predictions) -> tuple[str, ...]:
    """A note on the scenes that are left out, if there are any."""
    sparse = sum(_find_sparse(predictions))
    if not sparse:
        return ()
    return (
        f"{number_of(sparse, 'scene')} left out: frames more than {APART:g} s apart, too far to "
        "follow objects",
    )


def _find_sparse(predictions: Predictions) -> list[bool]:
    """Of each scene, whether its frames are too far apart; not of a single frame.

    Times are rounded, and 0.2 − 0.0 is less than 0.6 − 0.4.
    """
    seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)
    return [
        len(rows) > 1 and float(np.median(np.diff(seconds[rows]))) > APART + ROUNDED
        for rows in _split_scenes(predictions)
    ]


def time_apart(predictions: Predictions) -> float:
    """Seconds from a frame to the next of its scene, the median; 0 where none has a next."""
    rows = in_time(predictions)
    seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)[rows]
    same = predictions.groups[rows][1:] == predictions.groups[rows][:-1]
    return float(np.median(np.diff(seconds)[same])) if same.any() else 0.0


def list_followed(predictions: Predictions) -> list[NDArray[np.intp]]:
    """The rows of each scene in which objects are followed, in the order of videos and time."""
    scenes = zip(_split_scenes(predictions), _find_sparse(predictions), strict=True)
    return [rows for rows, is_sparse in scenes if not is_sparse]


def _split_scenes(predictions: Predictions) -> Iterator[NDArray[np.intp]]:
    """The rows of each scene that were predicted, in the order of time."""
    rows = in_time(predictions)
    if len(rows):
        groups = predictions.groups[rows]
        yield from np.split(rows, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
