"""How a training goes: for how long, in which batches, by which optimiser and at which rate."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.training.schedule import Plateau, Schedule

OPTIMIZERS = ("adam", "sgd")
PRECISIONS = ("fp32", "bf16", "fp16")
RATES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""What a search for the learning rate tries: 1e-3, 1e-4 and 1e-5 as Shankar et al., Table 10, did,
and what lies between."""


@dataclass(frozen=True)
class Course:
    """All that decides how a training goes, beside what is trained and what it is trained on.

    `epochs`: passes over the examples, at most; `iterations`: steps instead, at most. `batch`:
    examples a step, over all processes together. `momentum` is SGD's, Adam has (0.9, 0.999);
    `decay`: weight decay. `schedule`: how the rate falls. `patience`: rounds without a better
    watched number after which it stops; None: never. `every`: steps between checkpoints, beside
    those at the ends of rounds. `round`: steps between judgements; None: an epoch, or a tenth of
    the iterations. `precision`: of the forward pass; weights and optimiser are fp32.

    Raises `UsageError` for values that cannot be meant.
    """

    epochs: int = 10
    iterations: int | None = None
    batch: int = 32
    optimizer: str = "adam"
    rate: float = 1e-4
    momentum: float = 0.9
    decay: float = 0.0
    schedule: Schedule = field(default_factory=Plateau)
    patience: int | None = None
    precision: str = "fp32"
    seed: int = 0
    every: int = 200
    round: int | None = None

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise unknown("optimizer", self.optimizer, OPTIMIZERS)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        for name in ("epochs", "iterations", "batch", "patience", "every", "round"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"{name}={value}: give 1 or more")
        if not 0 < self.rate < 10:
            raise UsageError(f"--lr {self.rate:g}: give a learning rate above 0, such as 1e-4")
        for name in ("momentum", "decay"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name}={getattr(self, name):g}: give 0 or more, below 1")

    def record(self) -> Mapping[str, Any]:
        """The course as plain values, for run.json: what changes the outcome."""
        schedule = {"kind": type(self.schedule).__name__.lower(), **asdict(self.schedule)}
        plain = {key: value for key, value in asdict(self).items() if key != "every"}
        plain = {**plain, "schedule": schedule}
        if self.optimizer == "adam":
            return {**plain, "momentum": "betas 0.9, 0.999"}
        return plain
