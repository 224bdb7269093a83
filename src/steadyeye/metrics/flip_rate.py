"""How often the answer changes from one frame to the next; no labels needed."""

from steadyeye.core.intervals import proportion
from steadyeye.core.outcomes import Trials, compared
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs


def trials(predictions: Predictions) -> Trials:
    """The pairs of consecutive frames whose top-1 class changes."""
    pairs = consecutive(predictions)
    before, after = predictions.predicted[pairs[:, 0]], predictions.predicted[pairs[:, 1]]
    names, of = predictions.filmed
    videos = names[of[pairs[:, 0]]]
    return Trials(before != after, videos)


@needs("group", "offset")
@compared(trials, lower=True)
def flip_rate(predictions: Predictions) -> Result:
    """The share of consecutive frame pairs whose top-1 class changes, n pairs.

    A pair that several sets share counts once. The interval is clustered by video. Value None
    where no two frames are consecutive.
    """
    counted = trials(predictions)
    found = proportion(counted.success, counted.videos)
    return Result("flip_rate", found.value, found.low, found.high, found.n, found.method)
