"""The history of a training: the loss of every step, and the validation of every round."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from steadyeye.training.hyperparameters import find_best_round


@dataclass(frozen=True)
class TrainingRound:
    """The end of a round. `step`: steps done by then; `rate`: the learning rate of its steps.

    `loss`: the mean over the examples of the round; `measures`: of `Task.judge`, None for values
    that are not finite.
    """

    step: int
    epoch: float
    rate: float
    loss: float
    measures: Mapping[str, float | None]


@dataclass(frozen=True)
class History:
    """A training so far.

    `criterion`: the name of the deciding metric; `lower`: whether lower is better. `start`: the
    validation before the first step. `losses`: of each step. `ended`: why it ended, empty before.
    """

    criterion: str
    lower: bool
    start: Mapping[str, float | None]
    losses: tuple[float, ...] = ()
    rounds: tuple[TrainingRound, ...] = ()
    ended: str = ""

    @property
    def step(self) -> int:
        """The number of steps done."""
        return len(self.losses)

    @property
    def values(self) -> tuple[float, ...]:
        """The criterion of each round, with a sign such that higher is better."""
        values = (judged_round.measures[self.criterion] for judged_round in self.rounds)
        return tuple(-value if self.lower else value for value in values if value is not None)

    @property
    def best(self) -> TrainingRound | None:
        """The round with the best criterion; None before the first round.

        Ties go to the least loss, then to the first: the AP of a detector is 0 for many rounds.
        """
        best_round = find_best_round(self.values)
        if best_round is None:
            return None
        ties = [
            judged_round
            for judged_round, value in zip(self.rounds, self.values, strict=True)
            if value == self.values[best_round]
        ]
        return min(ties, key=_loss)

    def record(self) -> dict[str, Any]:
        """The history as plain values, for history.json and checkpoints."""
        best = self.best
        return {
            # the key is older than the field's name, and stays valid
            "watched": self.criterion,
            "lower": self.lower,
            "ended": self.ended,
            "best_step": None if best is None else best.step,
            "start": dict(self.start),
            "rounds": [write_measures(asdict(judged_round)) for judged_round in self.rounds],
            "losses": list(self.losses),
        }


def _loss(judged_round: TrainingRound) -> float:
    """The loss of a round on the held-out data; ∞ if there is none."""
    loss = judged_round.measures.get("loss")
    return math.inf if loss is None else loss


def write_measures(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a round or a trial as its files name them: `measures` is written as `held`."""
    return {"held" if name == "measures" else name: value for name, value in values.items()}


def read_measures(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that `write_measures` wrote."""
    return {"measures" if name == "held" else name: value for name, value in record.items()}


def read(record: Mapping[str, Any]) -> History:
    """The history of `History.record`."""
    return History(
        criterion=record["watched"],
        lower=record["lower"],
        start=record["start"],
        losses=tuple(record["losses"]),
        rounds=tuple(TrainingRound(**read_measures(stored)) for stored in record["rounds"]),
        ended=record["ended"],
    )
