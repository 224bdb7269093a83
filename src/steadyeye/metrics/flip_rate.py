"""How often the answer changes from one frame to the next; no labels needed."""

from steadyeye.core.competing_classes import among_own
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.trials import Trials, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.answer_runs import find_flips, flip_share


def trials(predictions: Predictions) -> Trials:
    """The pairs of consecutive frames whose top-1 class changes."""
    pairs = consecutive(predictions)
    videos = predictions.videos[pairs[:, 0]]
    return Trials(find_flips(predictions, pairs), videos, block_bootstrap.length(len(pairs)))


@needs("group", "frame")
@compare_by(trials, lower=True)
@among_own
def flip_rate(predictions: Predictions) -> Result:
    """The share of consecutive frame pairs whose top-1 class changes; n counts pairs.

    A pair in several sets counts once. The interval is clustered by video; for one video it is by
    blocks of consecutive pairs. Value None without consecutive frames.

    Example with invented predictions:

        >>> from steadyeye.testing import example_video
        >>> print(flip_rate(example_video()))
        flip_rate 5.0 % (95 % interval 0.7–85.0 %, n = 238, among 3 classes)
    """
    share = flip_share(predictions, consecutive(predictions))
    return Result.of("flip_rate", share)
