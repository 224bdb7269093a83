"""How much confidence moves from one frame to the next; no labels needed."""

from steadyeye.core.competing_classes import among_own
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.answer_runs import jumps

TAIL = 0.95


@needs("group", "frame")
@among_own
def confidence_jump(predictions: Predictions) -> Result:
    """The mean |Δ confidence| between consecutive frames, 0…1; n counts pairs.

    Confidence is the probability of each frame's own top-1 class; scores outside 0…1 count as
    logits (softmax). `cells`: the 95th percentile of the jumps. Intervals: over videos, or over
    blocks of one video. Value None without consecutive frames, or if only the best logit of each
    frame was stored.

    Example with invented predictions:

        >>> from steadyeye.testing import example_video
        >>> print(confidence_jump(example_video()))
        confidence_jump 13.8 % (95 % interval 2.2–86.4 %, n = 238, among 3 classes)
    """
    pairs = consecutive(predictions)
    moved = jumps(predictions, pairs)
    if moved is None:
        why = "none: the scores are no probabilities"
        return Result("confidence_jump", None, None, None, 0, why)
    videos, block = predictions.videos[pairs[:, 0]], block_bootstrap.length(len(pairs))
    if not len(moved):
        return Result("confidence_jump", None, None, None, 0, "none: there is nothing to count")
    mean = block_bootstrap.mean(moved, videos, block)
    tail = block_bootstrap.quantile(moved, TAIL, videos, block)
    cell = Result.of("95th percentile", tail)
    return Result.of("confidence_jump", mean, cells=(cell,))
