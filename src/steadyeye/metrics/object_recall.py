"""In how many of its frames a true object is found."""

from dataclasses import replace

from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.tracklets import SCORE
from steadyeye.metrics.sequences.true_tracks import (
    LOST,
    RENAMED,
    WEAKLY_FOUND,
    follow,
    mean_of_objects,
    rename,
)


@needs("boxes", "detections", "tracks")
def object_recall(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of a true object's frames in which it is detected, averaged over objects.

    Found: a detection of `score` or more, of its class, with an IoU of 0.5 or more. `cells`: the
    shares found as another class, found below the threshold, and not found. n objects; intervals
    clustered by video. Value None without true objects.

    Example:
        >>> from steadyeye.testing import example_true_tracks
        >>> print(object_recall(example_true_tracks()))
        object_recall 81.5 % (95 % interval 12.9–97.1 %, n = 4)

    """
    objects = follow(predictions, score)
    kinds = (("another class", RENAMED), ("below the threshold", WEAKLY_FOUND), ("not found", LOST))
    whole = mean_of_objects(
        rename("object_recall", score), objects, objects.share(objects.is_found)
    )
    cells = tuple(
        mean_of_objects(name, objects, objects.share(objects.state == kind)) for name, kind in kinds
    )
    return replace(whole, cells=cells)
