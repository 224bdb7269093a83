"""What a training went like: the loss of every step, and what every round was judged to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    """The end of a round. `step`: steps done; `rate`: of its last step; `held`: the judgement.

    `loss`: the mean over the round's steps, each counting by its examples.
    """

    step: int
    epoch: float
    rate: float
    loss: float
    held: Mapping[str, float]


@dataclass(frozen=True)
class History:
    """`losses`: of each step. `watched`: the name of the number that decides, `lower` if less is
    better. `ended`: why it is over, empty while it is not."""

    watched: str
    lower: bool
    losses: tuple[float, ...]
    rounds: tuple[Round, ...]
    ended: str = ""

    def record(self) -> dict[str, Any]:
        """The history as plain values, for history.json."""
        raise NotImplementedError
