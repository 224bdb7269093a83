"""The identity F1 of the tracks of a detector, by the package `trackeval`."""

import numpy as np

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.track_evaluation import (
    SequenceData,
    TrackShare,
    judge,
    load_metric,
)
from steadyeye.metrics.sequences.tracklets import SCORE

PACKAGES = ("trackeval",)


@needs("boxes", "detections", "tracks", "group", "scene", "frame", "seconds")
def idf1(predictions: Predictions, score: float = SCORE) -> Result:
    """The F1 of boxes whose track is that of their object, 0…1; linked as for `blink_rate`.

    n true objects. For the same data as `hota`. Ristani et al., "Performance Measures and a Data
    Set for Multi-Target, Multi-Camera Tracking", 2016, as computed by `trackeval`. `score`: the
    lowest score of a detection, above 0.1 and below 1. Raises `UsageError` for another score.

    Example of what it needs:

        >>> from steadyeye.core.plugins import install_line
        >>> install_line([], PACKAGES)
        'pip install --no-deps trackeval'
    """
    return judge("idf1", load_metric("identity", "Identity"), _share, predictions, score)


def _share(judged: SequenceData) -> TrackShare:
    right = 2.0 * judged["IDTP"]
    return TrackShare(np.array([right]), np.array([right + judged["IDFN"] + judged["IDFP"]]), 1)
