"""Bounds and alarms for a rate that is monitored; valid at any time.

A value is that of a block of time, such as the share of frames without an object in ten seconds, in
0…1. Consecutive frames are alike; nothing is assumed about that. The bounds are for the mean of the
blocks' *expected* values, each given all blocks before it: x̄ₜ − (1/t) Σ E[xᵢ | x₁ … xᵢ₋₁] is a
mean of martingale differences, whatever the dependence between blocks, and whether or not the rate
changes. If a block is much longer than the dependence between frames, that expected value is the
rate under the conditions of the time.

**Bounds** (`RunningMean`): the empirical-Bernstein confidence sequence of Howard, Ramdas, McAuliffe
and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics
49, 2021, Theorem 4, with the gamma-exponential mixture of Proposition 9 as its boundary. They are
valid at all times at once, so they may be read at any time.

**Alarms** (`Alarm`): the Shiryaev–Roberts e-detector of Shin, Ramdas and Rinaldo, "E-detectors: a
nonparametric framework for sequential change detection", New England Journal of Statistics in Data
Science, 2024, with the bets of Waudby-Smith and Ramdas, "Estimating means of bounded random
variables by betting", Journal of the Royal Statistical Society B 86, 2024: 1 + λ (x − m), which is
at most 1 on average while a block's expected value is at most m. A long time without a change does
not delay it. Let Eₜ be its evidence and Nₜ the number of alarms, after each of which it restarts at
0. Eₜ + `every` · Nₜ − t is then a supermartingale from 0, so that in t blocks at most t ÷ `every`
false alarms are expected, at any t.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.special import gammainc

Floats = NDArray[np.float64]

MISS = 0.05
"""The probability that the bounds are ever wrong; half of it on each side."""
TUNED = 1.0
"""Σ of squared deviations at which the bounds are nearly as narrow as possible."""
BETS = 0.95 / 2.0 ** np.arange(7)
"""The shares of the largest bet, 1 ÷ m: large ones for a rate far above m, small ones for a rate
just above. Their mean is an e-detector, too.
"""


@dataclass(frozen=True)
class RunningMean:
    """The mean of `n` blocks so far, with the sum of their values and `spread`.

    `spread`: Σ (xᵢ − x̂ᵢ)², where x̂ᵢ is the prediction of a block by the mean of those before.
    """

    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, value: float) -> "RunningMean":
        """The running mean with one more block, 0…1."""
        _check(value)
        expected = (self.total + 0.5) / (self.n + 1)
        return RunningMean(self.n + 1, self.total + value, self.spread + (value - expected) ** 2)

    @property
    def value(self) -> float | None:
        """The mean; None without blocks."""
        return self.total / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, at this and all other times; None without blocks."""
        if not self.n:
            return None
        margin = boundary(self.spread, MISS / 2) / self.n
        mean = self.total / self.n
        return max(mean - margin, 0.0), min(mean + margin, 1.0)


@dataclass(frozen=True)
class Alarm:
    """Whether a rate is above `limit`, between 0 and 1; `every`: see `add`.

    `evidence`: of each bet of `BETS`, from 0 on. `n`: blocks since the start.
    """

    limit: float
    every: float
    evidence: tuple[float, ...] = (0.0,) * len(BETS)
    n: int = 0

    def add(self, value: float) -> "Alarm":
        """The alarm with one more block, 0…1; it restarts if it was raised before.

        In t blocks at most t ÷ `every` false alarms are expected.
        """
        _check(value)
        before = Alarm(self.limit, self.every) if self.is_raised else self
        evidence = add_evidence(np.array(before.evidence), value, self.limit)
        return replace(self, evidence=tuple(evidence.tolist()), n=before.n + 1)

    @property
    def strength(self) -> float:
        """The evidence as a share of what an alarm needs, both as logarithms; 0…1."""
        return min(log(1 + sum(self.evidence) / len(BETS)) / log(1 + self.every), 1.0)

    @property
    def is_raised(self) -> bool:
        """Whether the rate is above the limit, after the last block."""
        return sum(self.evidence) >= self.every * len(BETS)


def add_evidence(evidence: Floats, values: Floats | float, limit: float) -> Floats:
    """(b, …) the evidence of each bet after one more block. `values`: (…), one per stream."""
    gains = np.multiply.outer(BETS / limit, np.asarray(values) - limit)
    return np.asarray((evidence + 1) * (1 + gains), dtype=np.float64)


def boundary(spread: float, miss: float) -> float:
    """A bound for Σ (xᵢ − E xᵢ) at all times, exceeded with probability `miss`, by its spread.

    The largest s at which the mixture of Proposition 9 is below 1 / `miss`, for values in 0…1.
    """
    target = log(1 / miss)
    low, high = 0.0, 4.0
    while log_mixture(high, spread) < target:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if log_mixture(middle, spread) < target:
            low = middle
        else:
            high = middle
    return high


def log_mixture(excess: float, spread: float) -> float:
    """Ln of ∫ exp(λ s − ψ(λ) v) f(λ) dλ over 0 ≤ λ < 1, ψ(λ) = −ln(1 − λ) − λ.

    `excess`: s, the sum of the values minus their expectations. `spread`: v. f is a gamma density
    of 1 − λ with shape and rate `_rate()`, cut off at 1.
    """
    rate = _rate()
    shape, scale = spread + rate, excess + spread + rate
    return (
        _log_gamma_below(shape, scale)
        - shape * log(scale)
        - _log_gamma_below(rate, rate)
        + rate * log(rate)
        + excess
        + spread
    )


def _log_gamma_below(shape: float, at: float) -> float:
    """Ln of the lower incomplete gamma function."""
    return lgamma(shape) + log(gammainc(shape, at))


@cache
def _rate() -> float:
    """The parameter ρ that makes the boundary narrow at a spread of `TUNED`, as for normal values.

    For a one-sided normal mixture the best is about v ÷ (2 ln(1/α) + ln(1 + 2 ln(1/α))).
    """
    strength = 2 * log(1 / MISS)  # 2 ln(1 / (2α)) with α = MISS / 2
    return TUNED / (strength + log(1 + strength))


def _check(value: float) -> None:
    assert 0 <= value <= 1, f"a block's value is a share, not {value}"
