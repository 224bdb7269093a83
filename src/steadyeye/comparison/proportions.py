"""Two proportions of the same independent trials: an exact test and an interval."""

from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from steadyeye.core.intervals import LEVEL

CLOSE = 1e-9


def mcnemar(only_one: int, only_other: int) -> float:
    """The exact two-sided p value of two proportions being the same.

    `only_one`, `only_other`: trials in which the one alone, or the other alone, succeeds; if
    neither is better each such trial falls either way like a coin. McNemar, Psychometrika 12, 1947.
    """
    discordant = only_one + only_other
    return float(binomtest(only_one, discordant).pvalue) if discordant else 1.0


def tango(only_one: float, only_other: float, n: float) -> tuple[float, float]:
    """The 95 % score interval of the difference of two paired proportions, n > 0 trials.

    The differences that the score test of Tango does not reject; it keeps its level at small n and
    where no or all trials differ. Tango, "Equivalence test and confidence interval for the
    difference in proportions for the paired-sample design", Statistics in Medicine 17, 1998.
    """
    z = float(norm.ppf((1 + LEVEL) / 2))
    value = (only_one - only_other) / n

    def beyond(difference: float) -> float:
        # squared, so that it stays finite where the variance is 0
        apart = only_one - only_other - n * difference
        return apart**2 - z**2 * n * _variance(only_one, only_other, n, difference)

    # at the value itself the score is 0, and the variance may be: the ends lie on either side
    low = brentq(beyond, -1, value - CLOSE) if value - CLOSE > -1 else -1.0
    high = brentq(beyond, value + CLOSE, 1) if value + CLOSE < 1 else 1.0
    return float(low), float(high)


def _variance(only_one: float, only_other: float, n: float, difference: float) -> float:
    """The variance of a trial's difference, estimated where the true one is `difference`."""
    a = 2 * n
    b = -only_one - only_other + (2 * n - only_one + only_other) * difference
    c = -only_other * difference * (1 - difference)
    losing = (max(b * b - 4 * a * c, 0) ** 0.5 - b) / (2 * a)
    return float(2 * losing + difference * (1 - difference))
