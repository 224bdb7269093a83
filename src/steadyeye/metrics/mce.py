"""Mean corruption error."""

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.degradation.corruption_errors import covers_corruptions, measure_corruption_errors


def outcomes(predictions: Predictions, baseline: str = "alexnet") -> Statistic:
    """The images of the sweep, for resampling."""
    return measure_corruption_errors(predictions, baseline).statistic()


@needs("truth", "operator", "level", "profile", when=covers_corruptions)
@compare_by(outcomes, lower=True)
@among_competing
def mce(predictions: Predictions, baseline: str = "alexnet") -> Result:
    """The error relative to AlexNet's, averaged over the fifteen corruptions of ImageNet-C.

    Of a sweep over `imagenet_c` at all severities, of all images. 100 % means as many errors as
    AlexNet on ImageNet-C, which is comparable on the validation images of ImageNet only.
    `baseline`: "alexnet", or "none": the mean error itself, for other data. `cells`: the
    corruptions. Raises `UsageError` if corruptions or severities are missing. Hendrycks and
    Dietterich 2019, Section 4.2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_corruptions
        >>> print(mce(example_corruptions()))
        mce 21.8 % (95 % interval 17.2–40.1 %, n = 20, among 3 classes)
    """
    name = "mce" if baseline == "alexnet" else f"mce(baseline={baseline})"
    return measure_corruption_errors(predictions, baseline).result(name)
