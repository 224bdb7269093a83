"""Two proportions of the same independent trials: an exact test and an interval."""

from collections.abc import Callable

from steadyeye.core.special import ndtri
from steadyeye.core.stats.intervals import LEVEL

CLOSE = 1e-9
STEPS = 200  # a dozen are enough but where the function is flat


def mcnemar(only_one: int, only_other: int) -> float:
    """The exact two-sided p value of two proportions being the same.

    `only_one`, `only_other`: trials in which the one alone, or the other alone, succeeds; if
    neither is better each such trial falls either way like a coin. McNemar, Psychometrika 12, 1947.
    """
    discordant, fewer = only_one + only_other, min(only_one, only_other)
    ways = tail = 1
    for k in range(fewer):
        ways = ways * (discordant - k) // (k + 1)
        tail += ways
    # whole numbers up to here: the one rounding is that of the division
    return min(float(2 * tail / 2**discordant), 1.0)


def tango(only_one: float, only_other: float, n: float) -> tuple[float, float]:
    """The 95 % score interval of the difference of two paired proportions, n > 0 trials.

    The differences that the score test of Tango does not reject; it keeps its level at small n and
    where no or all trials differ. Tango, "Equivalence test and confidence interval for the
    difference in proportions for the paired-sample design", Statistics in Medicine 17, 1998.
    """
    z = float(ndtri((1 + LEVEL) / 2))
    value = (only_one - only_other) / n

    def excess(difference: float) -> float:
        # squared, so that it stays finite where the variance is 0
        apart = only_one - only_other - n * difference
        return apart**2 - z**2 * n * _variance(only_one, only_other, n, difference)

    # at the value itself the score is 0, and the variance may be: the ends lie on either side
    low = _root(excess, -1, value - CLOSE) if value - CLOSE > -1 else -1.0
    high = _root(excess, value + CLOSE, 1) if value + CLOSE < 1 else 1.0
    return low, high


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that has another sign at `low` than at `high` is 0.

    The Illinois method: the secant, with the value at an end that stays halved. Dowell and Jarratt,
    "A modified regula falsi method for computing the root of an equation", BIT 11, 1971.
    """
    at_low, at_high = function(low), function(high)
    at, before = low, 0.0
    for _ in range(STEPS):
        at = high - at_high * (high - low) / (at_high - at_low)
        value = function(at)
        if value == 0 or at in (low, high):
            break
        if value * at_high > 0:
            high, at_high = at, value
            at_low *= 0.5 if value * before > 0 else 1
        else:
            low, at_low = at, value
            at_high *= 0.5 if value * before > 0 else 1
        before = value
    return at


def _variance(only_one: float, only_other: float, n: float, difference: float) -> float:
    """The variance of a trial's difference, estimated where the true one is `difference`."""
    a = 2 * n
    b = -only_one - only_other + (2 * n - only_one + only_other) * difference
    c = -only_other * difference * (1 - difference)
    losing = (max(b * b - 4 * a * c, 0) ** 0.5 - b) / (2 * a)
    return float(2 * losing + difference * (1 - difference))
