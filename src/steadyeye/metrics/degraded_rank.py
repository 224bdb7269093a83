"""Rank of the true class under degradation."""

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.degradation.curves import averages, profiles, statistic


def outcomes(predictions: Predictions, images: str = "right") -> Statistic:
    """The images of the sweep, for resampling."""
    return statistic(predictions, predictions.rank, images, "rank")


@needs("truth", "operator", "level", "profile")
@compare_by(outcomes, lower=True)
@among_competing
def degraded_rank(predictions: Predictions, images: str = "right") -> Result:
    """The mean rank of the true class (0 = first), over levels and then over operators.

    Among the competing classes, computed in fp32. `images` and `cells` as in `degraded_accuracy`.
    Swingler 2022.

    Example with invented predictions:

        >>> from steadyeye.testing import example_sweep
        >>> print(degraded_rank(example_sweep()))
        degraded_rank 0.1 (95 % interval 0.1–0.4, n = 20, among 3 classes)
    """
    sweep = profiles(predictions, images)
    return averages("degraded_rank", sweep, predictions.rank.astype(np.float32), "rank")
