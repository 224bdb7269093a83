"""How often every frame nearby gets the same answer; no labels needed."""

from steadyeye.core.competing_classes import among_own
from steadyeye.core.format import number_of, percent
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.answer_runs import (
    choose_distance,
    in_time,
    steady_sets,
    steady_windows,
)


@needs("group", "frame")
@among_own
def self_consistency(predictions: Predictions, k: int | None = None) -> Result:
    """The share of frames with the same top-1 class on every frame within ±k in the scene.

    The top-1 class among all the model's own classes, whether or not the data have them. It is pm-k
    with the anchor's own prediction in place of the label: steady, right or wrong. `k`: native
    frames; by default 10, for pm-sets the largest in the data. For pm-sets n counts the anchors and
    the interval is that of `pm_k`. For whole videos n counts all frames, each an anchor: they share
    neighbours, so one video is resampled in blocks longer than a window. Value None on empty input.
    Raises `UsageError` for a `k` below the distance of the frames.

    Example with invented predictions:

        >>> from steadyeye.testing import example_video
        >>> print(self_consistency(example_video(), k=5))
        self_consistency(k=5) 69.2 % (95 % interval 10.8–95.4 %, n = 240, among 3 classes)
    """
    if "offset" in predictions.tags:
        share, distance_limit = _of_sets(predictions, k)
        of = f"of these {number_of(share.n, 'set')}"
        notes = _say_bound(predictions, share, distance_limit, of)
    else:
        share, distance_limit, notes = _of_clips(predictions, k)
    name = f"self_consistency(k={distance_limit})"
    return Result.of(name, share, notes=notes)


def _of_sets(predictions: Predictions, k: int | None) -> tuple[Interval, int]:
    sets = pm_sets(predictions, labels=False)
    distance_limit = farthest(sets, k)
    agrees = steady_sets(sets, predictions.own, distance_limit)
    return proportion(agrees, sets.videos), distance_limit


def _say_bound(predictions: Predictions, share: Interval, k: int, of: str) -> tuple[str, ...]:
    """The bound on pm-k without labels, under the premise, in words; `of`: the subject."""
    if share.value is None or "truth" in predictions.columns:
        return ()
    return (
        f"without labels: pm_k(k={k}) {of} is at most "
        f"{percent(share.value)}, whatever is in them, if each shows one class on all its frames: "
        "a set with two predictions is then wrong on a frame",
    )


def _of_clips(predictions: Predictions, k: int | None) -> tuple[Interval, int, tuple[str, ...]]:
    distance_limit, step = choose_distance(predictions, k)
    rows = in_time(predictions)
    agrees = steady_windows(predictions, rows, predictions.own, distance_limit)
    near = 2 * (distance_limit // step) + 1
    block = block_bootstrap.length(len(rows), near)
    share = block_bootstrap.mean(agrees, predictions.videos[rows], block)
    few = "frames near the end of a video or a scene cut have fewer neighbours"
    of = f"of the {number_of(share.n, 'set')} around each of these frames"
    return share, distance_limit, (few, *_say_bound(predictions, share, distance_limit, of))
