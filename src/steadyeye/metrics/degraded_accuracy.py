"""Accuracy under degradation."""

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.degradation.curves import profiles, shares, statistic


def outcomes(predictions: Predictions, images: str = "right") -> Statistic:
    """The images of the sweep, for resampling."""
    return statistic(predictions, predictions.right, images)


@needs("truth", "operator", "level", "profile")
@compare_by(outcomes)
@among_competing
def degraded_accuracy(predictions: Predictions, images: str = "right") -> Result:
    """The share of images still right, averaged over the levels and then over the operators.

    `images`: "right", those that are right at level 0, so that it starts from 1; or "all". `cells`:
    the operators, each with its levels from 0. Raises `UsageError` if no image is right at level 0.
    Swingler 2022.

    Example with invented predictions:

        >>> from steadyeye.testing import example_sweep
        >>> print(degraded_accuracy(example_sweep()))
        degraded_accuracy 88.8 % (95 % interval 73.2–93.6 %, n = 20, among 3 classes)
    """
    return shares("degraded_accuracy", profiles(predictions, images), predictions.right)
