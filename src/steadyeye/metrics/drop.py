"""The drop from accuracy to pm-k."""

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import proportion
from steadyeye.core.stats.trials import Trials, compare_by
from steadyeye.core.types import Result, needs


def trials(predictions: Predictions, k: int | None = None) -> Trials:
    """The anchors that are right and have a wrong frame within ±k."""
    sets = pm_sets(predictions)
    broken = (sets.breaks_at > 0) & (sets.breaks_at <= farthest(sets, k))
    return Trials(broken, sets.videos)


@needs("truth", "group", "offset")
@compare_by(trials, lower=True)
@among_competing
def drop(predictions: Predictions, k: int | None = None) -> Result:
    """Accuracy − pm-k: the share of right anchors with a wrong frame within ±k.

    Because pm-k is never above accuracy, the drop is a proportion and has a proportion's interval.
    `k`: native frames, by default the largest in the data. Value None on empty input.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> print(drop(example_predictions(margin=0.5), k=1))
        drop(k=1) 50.0 pp (95 % interval 15.9–84.1 pp, n = 12, among 3 classes)
    """
    distance_limit = farthest(pm_sets(predictions), k)
    outcomes = trials(predictions, distance_limit)
    share = proportion(outcomes.success, outcomes.videos)
    return Result.of(f"drop(k={distance_limit})", share)
