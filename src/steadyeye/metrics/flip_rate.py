"""How often the answer changes from one frame to the next; no labels needed."""

from steadyeye.core.intervals import proportion
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs


@needs("group", "offset")
def flip_rate(predictions: Predictions) -> Result:
    """The share of consecutive frame pairs whose top-1 class changes, n pairs.

    A pair that several sets share counts once. The interval is clustered by video. Value None
    where no two frames are consecutive.
    """
    pairs = consecutive(predictions)
    before, after = predictions.predicted[pairs[:, 0]], predictions.predicted[pairs[:, 1]]
    videos = predictions.filmed[1][pairs[:, 0]]
    found = proportion(before != after, videos)
    return Result("flip_rate", found.value, found.low, found.high, found.n, found.method)
