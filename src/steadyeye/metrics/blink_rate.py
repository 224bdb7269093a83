"""How often a detector loses an object that it found before and finds again; no labels needed."""

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.object_steadiness import compare_values, count_blinks, find_lost
from steadyeye.metrics.sequences.tracklets import SCORE, can_follow


@needs("detections", "group", "scene", "frame", "seconds", when=can_follow)
@compare_by(compare_values(find_lost), lower=True)
def blink_rate(predictions: Predictions, score: float = SCORE) -> Result:
    """The share of an object's frames, from its first to its last detection, without a detection.

    Detections from `score` on are linked to objects; of a gap of up to a second every frame is
    looked up among all detections. Where one from `score` on is there, or another object covers the
    place, the frame does not count. `cells`: the share not found at all, and the share below the
    threshold. n frames of objects with 5 detections or more; intervals as of `flip_rate`. Value
    None without such objects.

    Example, on made-up detections of which every tenth frame lacks one:

        >>> from steadyeye.testing import example_tracks
        >>> print(blink_rate(example_tracks()))
        blink_rate 16.1 % (95 % interval 2.5–86.7 %, n = 478)
    """
    return count_blinks(predictions, score)
