"""What a training went like: the loss of every step, and what every round was judged to be."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steadyeye.training.hyperparameters import find_best_round


@dataclass(frozen=True)
class TrainingRound:
    """The end of a round. `step`: steps done by then; `rate`: the learning rate of its steps.

    `loss`: the mean over the examples of the round; `held`: what `Task.judge` said, None for what
    is no finite number.
    """

    step: int
    epoch: float
    rate: float
    loss: float
    held: Mapping[str, float | None]


@dataclass(frozen=True)
class History:
    """A training so far.

    `watched`: the name of the number that decides; `lower`: whether less of it is better. `start`:
    the judgement before the first step. `losses`: of each step. `ended`: why it is over, empty
    while it is not.
    """

    watched: str
    lower: bool
    start: Mapping[str, float | None]
    losses: tuple[float, ...] = ()
    rounds: tuple[TrainingRound, ...] = ()
    ended: str = ""

    @property
    def step(self) -> int:
        """How many steps are done."""
        return len(self.losses)

    @property
    def values(self) -> tuple[float, ...]:
        """The watched number of each round, turned so that more is better."""
        watched_values = (judged_round.held[self.watched] for judged_round in self.rounds)
        return tuple(
            -value if self.lower else value for value in watched_values if value is not None
        )

    @property
    def best(self) -> TrainingRound | None:
        """The first round with the best watched number; None before the first."""
        best_round = find_best_round(self.values)
        return None if best_round is None else self.rounds[best_round]

    def record(self) -> dict[str, Any]:
        """The history as plain values, for history.json and checkpoints."""
        best = self.best
        return {
            "watched": self.watched,
            "lower": self.lower,
            "ended": self.ended,
            "best_step": None if best is None else best.step,
            "start": dict(self.start),
            "rounds": [
                {**asdict(judged_round), "held": dict(judged_round.held)}
                for judged_round in self.rounds
            ],
            "losses": list(self.losses),
        }


def read(record: Mapping[str, Any]) -> History:
    """The history that `History.record` wrote down."""
    return History(
        watched=record["watched"],
        lower=record["lower"],
        start=record["start"],
        losses=tuple(record["losses"]),
        rounds=tuple(TrainingRound(**judged_round) for judged_round in record["rounds"]),
        ended=record["ended"],
    )
