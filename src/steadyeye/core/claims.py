"""What a title asserts, and whether the interval of its number shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb

from steadyeye.core.format import Ranged

ALPHA = 0.05


@dataclass(frozen=True)
class Claim:
    """A title that asserts, and what it rests on.

    `low`, `high`: the 95 % interval of the number, None where there is none. `above`, `below`: the
    claim holds where the whole interval lies above, or below, this. `p`: the p value after the
    allowance for several comparisons, where there are several; it must then be 0.05 or less too.
    """

    text: str
    low: float | None
    high: float | None
    above: float | None = None
    below: float | None = None
    p: float | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the interval, and the p value where there is one, show what the text says.

        False where there is no interval.
        """
        if self.low is None or self.high is None or (self.p is not None and not self.p <= ALPHA):
            return False
        over = self.above is not None and self.low > self.above
        under = self.below is not None and self.high < self.below
        return over or under


def above(text: str, interval: Ranged, bound: float = 0.0, p: float | None = None) -> Claim:
    """The claim that a number is above a bound."""
    return Claim(text, interval.low, interval.high, above=bound, p=p)


def below(text: str, interval: Ranged, bound: float = 0.0, p: float | None = None) -> Claim:
    """The claim that a number is below a bound."""
    return Claim(text, interval.low, interval.high, below=bound, p=p)


def higher(text: str, larger: Ranged, smaller: Ranged) -> Claim:
    """The claim that one number is higher than another one of which no difference is known.

    Its interval must lie beyond the whole interval of the other, which asks for more than a test of
    the difference would.
    """
    return Claim(text, larger.low, larger.high, above=1.0 if smaller.high is None else smaller.high)


def every(text: str, claims: Sequence[Claim]) -> Claim:
    """The claim that all of `claims` hold: the first that is not supported, else the first.

    All have to be shown, each at its own level, so that their number needs no allowance. Without
    any it is not supported.
    """
    failing = [claim for claim in claims if not claim.is_supported]
    chosen = (failing or list(claims) or [Claim(text, None, None)])[0]
    return replace(chosen, text=text)


def first(claims: Iterable[Claim]) -> Claim | None:
    """The first claim that is supported; None where none is, and a title asks instead."""
    return next((claim for claim in claims if claim.is_supported), None)


def leads(most: int, second: int) -> bool:
    """Whether the largest of several counts is the largest beyond chance.

    `most`, `second`: the largest and the next one, of things that count for themselves (videos,
    not frames). The exact two-sided test of the two alone keeps its level though both were chosen
    by their counts: Hung and Fithian, "Rank Verification for Exponential Families", Annals of
    Statistics 47, 2019.
    """
    n = most + second
    tail = sum(comb(n, i) for i in range(most, n + 1)) / 2**n
    return most > second and 2 * tail <= ALPHA
