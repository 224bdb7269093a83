"""The learning rate and the end of a training, as functions of what was judged so far.

Nothing is remembered beside the history, so a training that goes on needs no state of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from steadyeye.core.errors import UsageError


@dataclass(frozen=True)
class Plateau:
    """The rate × `factor` after more than `patience` rounds in which nothing got better."""

    factor: float = 0.1
    patience: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1 or self.patience < 0:
            raise UsageError(f"{self}: the factor is in 0…1 and the patience 0 or more")


@dataclass(frozen=True)
class Steps:
    """The rate × `factor` at each of the steps `at`, counted from 0."""

    at: tuple[int, ...]
    factor: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1 or list(self.at) != sorted(set(self.at)) or min(self.at) < 1:
            raise UsageError(f"{self}: give rising steps above 0 and a factor in 0…1")


@dataclass(frozen=True)
class Constant:
    """The rate as it is."""


Schedule: TypeAlias = Plateau | Steps | Constant


def rate(schedule: Schedule, first: float, step: int, watched: Sequence[float]) -> float:
    """The learning rate of a step, given the watched number of every round before it.

    `first`: the rate at the start. `watched`: higher is better.
    """
    if isinstance(schedule, Steps):
        return first * schedule.factor ** sum(step >= each for each in schedule.at)
    if isinstance(schedule, Plateau):
        return first * schedule.factor ** _falls(schedule, watched)
    return first


def best(watched: Sequence[float]) -> int | None:
    """The first round with the best watched number, higher being better; None without rounds."""
    return max(range(len(watched)), key=lambda i: (watched[i], -i)) if watched else None


def over(watched: Sequence[float], patience: int | None) -> bool:
    """Whether the last `patience` rounds brought nothing better than those before them."""
    found = best(watched)
    return patience is not None and found is not None and len(watched) - 1 - found >= patience


def _falls(schedule: Plateau, watched: Sequence[float]) -> int:
    falls, waited = 0, 0
    top = float("-inf")
    for value in watched:
        waited = 0 if value > top else waited + 1
        top = max(top, value)
        if waited > schedule.patience:
            falls, waited = falls + 1, 0
    return falls
