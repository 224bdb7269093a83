"""How often a detector loses a true object that it found before and finds again."""

import numpy as np

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import LEAST, measure
from steadyeye.metrics.sequences.tracklets import SCORE
from steadyeye.metrics.sequences.true_tracks import follow, note_left_out, rename


@needs("boxes", "detections", "tracks")
def true_blink_rate(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of a true object's frames, from first to last detection, in which it is missed.

    `blink_rate` estimates it without labels. Of objects found in five frames or more; a gap may
    have any length, and an object detected as another class is not found. n frames; the interval as
    of `blink_rate`. Value None without such objects. `score`: the lowest score of a detection,
    above 0.1 and below 1. Raises `UsageError` for another score.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(true_blink_rate(example_true_tracks()))
        true_blink_rate 18.2 % (95 % interval 2.8–87.1 %, n = 478)

    """
    objects = follow(predictions, score)
    hits = objects.is_found
    place = np.arange(len(hits))
    first = np.full(len(objects), len(hits))
    last = np.full(len(objects), -1)
    np.minimum.at(first, objects.track[hits], place[hits])
    np.maximum.at(last, objects.track[hits], place[hits])
    several = np.bincount(objects.track[hits], minlength=len(objects)) >= LEAST
    between = (place >= first[objects.track]) & (place <= last[objects.track])
    counted = between & several[objects.track]
    estimate = measure(predictions, objects.row[counted], ~hits[counted])
    return Result.of(rename("true_blink_rate", score), estimate, notes=note_left_out(objects))
