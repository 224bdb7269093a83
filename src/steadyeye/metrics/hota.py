"""Higher order tracking accuracy of the tracks of a detector, by the package `trackeval`."""

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
def hota(predictions: Predictions, score: float = SCORE) -> Result:
    """HOTA, averaged over its 19 thresholds, 0…1; objects are linked as for `blink_rate`.

    It measures the detector and the linking together, and counts every detection of a class of the
    data without a true box as wrong: only for data in which all objects are labelled. Luiten et
    al., "HOTA: A Higher Order Metric for Evaluating Multi-Object Tracking", 2021, as computed by
    `trackeval`. `score`: the lowest score of a detection, above 0.1 and below 1. Raises
    `UsageError` for another score.

    Example of what it needs:

        >>> from steadyeye.core.plugins import install_line
        >>> install_line([], PACKAGES)
        'pip install --no-deps trackeval'
    """
    return judge("hota", load_metric("hota", "HOTA"), _share, predictions, score)


def _share(judged: SequenceData) -> TrackShare:
    """HOTA² is Σ association accuracy of the true positives ÷ (true and false ones, and misses)."""
    hits = judged["HOTA_TP"]
    return TrackShare(judged["AssA"] * hits, hits + judged["HOTA_FN"] + judged["HOTA_FP"], 0.5)
