"""Probability of the true class under degradation."""

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.degradation.curves import averages, profiles, statistic


def outcomes(predictions: Predictions, images: str = "right") -> Statistic:
    """The images of the sweep, for resampling."""
    values = predictions.probability
    known = values if predictions.has_probabilities else np.full_like(values, np.nan)
    return statistic(predictions, known, images)


@needs("truth", "operator", "level", "profile")
@compare_by(outcomes)
@among_competing
def degraded_probability(predictions: Predictions, images: str = "right") -> Result:
    """The mean probability of the true class, over levels and then over operators.

    The true class's own score, not the top-1 confidence, in fp32. `images` and `cells` as in
    `degraded_accuracy`. Value None if the model's scores are no probabilities. Swingler 2022.

    Example with invented predictions:

        >>> from steadyeye.testing import example_sweep
        >>> print(degraded_probability(example_sweep()))
        degraded_probability 54.3 % (95 % interval 45.0–62.2 %, n = 20, among 3 classes)
    """
    if not predictions.has_probabilities:
        why = f"none: the scores of {predictions.model} are no probabilities"
        return Result("degraded_probability", None, None, None, 0, why)
    sweep = profiles(predictions, images)
    return averages("degraded_probability", sweep, predictions.probability, "share")
