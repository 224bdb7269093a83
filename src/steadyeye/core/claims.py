"""Claims of titles, and whether the interval of their number supports them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from steadyeye.core.format import Ranged

ALPHA = 0.05


@dataclass(frozen=True)
class Claim:
    """The claim of a title, and its evidence.

    `low`, `high`: the 95 % interval of the number, or None. `above`, `below`: the claim holds if
    the whole interval is above, or below, this. `p`: the p value adjusted for several comparisons,
    if there are several; it must then be 0.05 or less too.
    """

    text: str
    low: float | None
    high: float | None
    above: float | None = None
    below: float | None = None
    p: float | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the interval, and the p value if there is one, support the text.

        False without an interval.
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
    """The claim that one number is higher than another one, without a known difference.

    The intervals must not overlap, which is stricter than a test of the difference.
    """
    return Claim(text, larger.low, larger.high, above=1.0 if smaller.high is None else smaller.high)


def every(text: str, claims: Sequence[Claim]) -> Claim:
    """The claim that all of `claims` hold: the first that is not supported, else the first.

    All must be supported, each at its own level, so that their number needs no adjustment. Without
    claims it is not supported.
    """
    failing = [claim for claim in claims if not claim.is_supported]
    chosen = (failing or list(claims) or [Claim(text, None, None)])[0]
    return replace(chosen, text=text)


def first(claims: Iterable[Claim]) -> Claim | None:
    """The first claim that is supported; None if none is, so that the title is a question."""
    return next((claim for claim in claims if claim.is_supported), None)
