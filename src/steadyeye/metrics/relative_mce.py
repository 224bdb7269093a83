"""Mean corruption error relative to the error on undegraded images."""

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.degradation.corruption_errors import covers_corruptions, measure_corruption_errors


def outcomes(predictions: Predictions) -> Statistic:
    """The images of the sweep, for resampling."""
    return measure_corruption_errors(predictions, relative=True).statistic()


@needs("truth", "operator", "level", "profile", when=covers_corruptions)
@compare_by(outcomes, lower=True)
@among_competing
def relative_mce(predictions: Predictions) -> Result:
    """The rise in error relative to AlexNet's, averaged over the fifteen ImageNet-C corruptions.

    The rise above the error on undegraded images, divided by AlexNet's rise on ImageNet-C, which is
    comparable on the validation images of ImageNet only. Of a sweep over `imagenet_c` at all
    severities, of all images. `cells`: the corruptions. Raises `UsageError` if corruptions or
    severities are missing. Hendrycks and Dietterich 2019, Section 4.2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_corruptions
        >>> print(relative_mce(example_corruptions()))
        relative_mce +53.7 % (95 % interval −10.4 to +99.9 %, n = 20, among 3 classes)
    """
    return measure_corruption_errors(predictions, relative=True).result("relative_mce")
