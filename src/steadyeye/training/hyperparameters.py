"""Hyperparameters of a training, and the recipes of the papers.

Learning rate and stopping are functions of the validations so far. They have no state besides the
history, so a resumed training needs none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from steadyeye.core.errors import UsageError, unknown

OPTIMIZERS = ("adam", "sgd")
PRECISIONS = ("fp32", "bf16", "fp16")

RATES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""The learning rates of a search: 1e-3, 1e-4 and 1e-5 of Shankar et al., Table 10, and two
between."""

SHANKAR = "Shankar et al., 'Do Image Classifiers Generalize Across Time?'"


@dataclass(frozen=True)
class Plateau:
    """The rate × `factor` after more than `patience` rounds without improvement."""

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
    """The constant rate."""


Schedule: TypeAlias = Plateau | Steps | Constant


def learning_rate(schedule: Schedule, first: float, step: int, watched: Sequence[float]) -> float:
    """The learning rate of a step, given the criterion of every earlier round.

    `first`: the rate at the start. `watched`: higher is better.
    """
    if isinstance(schedule, Steps):
        return first * schedule.factor ** sum(step >= step_of_drop for step_of_drop in schedule.at)
    if isinstance(schedule, Plateau):
        return first * schedule.factor ** _falls(schedule, watched)
    return first


def find_best_round(watched: Sequence[float]) -> int | None:
    """The first round with the best criterion, where higher is better; None without rounds."""
    return max(range(len(watched)), key=lambda i: (watched[i], -i)) if watched else None


def is_over(watched: Sequence[float], patience: int | None) -> bool:
    """Whether the last `patience` rounds did not improve on those before them."""
    best_round = find_best_round(watched)
    return (
        patience is not None
        and best_round is not None
        and len(watched) - 1 - best_round >= patience
    )


def _falls(schedule: Plateau, watched: Sequence[float]) -> int:
    falls, waited = 0, 0
    top = float("-inf")
    for value in watched:
        waited = 0 if value > top else waited + 1
        top = max(top, value)
        if waited > schedule.patience:
            falls, waited = falls + 1, 0
    return falls


@dataclass(frozen=True)
class Course:
    """The settings of a training, besides the model and the data.

    `epochs`: passes over the examples, at most; `iterations`: steps instead, at most. `batch`:
    examples a step, over all processes together. `momentum` is SGD's, Adam has (0.9, 0.999);
    `decay`: weight decay. `schedule`: how the rate falls. `patience`: rounds without improvement
    after which it stops; None: never. `every`: steps between checkpoints, besides those at the ends
    of rounds. `round`: steps between validations; None: an epoch, or a tenth of the iterations.
    `precision`: of the forward pass; weights and optimiser are fp32.

    Raises `UsageError` for invalid values.
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
        """The settings that change the outcome, as plain values for run.json."""
        schedule = {"kind": type(self.schedule).__name__.lower(), **asdict(self.schedule)}
        plain = {key: value for key, value in asdict(self).items() if key != "every"}
        plain = {**plain, "schedule": schedule}
        if self.optimizer == "adam":
            return {**plain, "momentum": "betas 0.9, 0.999"}
        return plain


@dataclass(frozen=True)
class TrainingRecipe:
    """Optimiser, learning rate, schedule, batch and length, with their source.

    `optimizer`: "adam" or "sgd". `schedule`: "plateau", the rate is reduced when the held numbers
    no longer improve, or "steps", it is divided by ten at each of `steps` iterations. One of
    `epochs` and `iterations` is set. `momentum`, `weight_decay`: of SGD. `source`: paper and table.
    """

    optimizer: str
    lr: float
    batch: int
    schedule: str
    source: str
    epochs: int | None = None
    iterations: int | None = None
    steps: tuple[int, ...] = ()
    momentum: float = 0.0
    weight_decay: float = 0.0


CLASSIFIER = TrainingRecipe("adam", 1e-4, 32, "plateau", f"{SHANKAR}, Table 10", epochs=10)

OLD_CLASSIFIER = TrainingRecipe("adam", 1e-5, 32, "plateau", f"{SHANKAR}, Table 10", epochs=10)
"""The recipe of AlexNet and VGG."""

DETECTOR = TrainingRecipe(
    "sgd",
    1e-2,
    8,
    "steps",
    f"{SHANKAR}, Table 11; momentum and weight decay are Detectron's",
    iterations=40_000,
    steps=(20_000, 30_000),
    momentum=0.9,
    weight_decay=1e-4,
)

TRANSFORMER = TrainingRecipe(
    "adam",
    1e-4,
    8,
    "steps",
    "Carion et al., 'End-to-End Object Detection with Transformers', Section 4, for optimizer and "
    f"rate; {SHANKAR}, Table 11, for the rest",
    iterations=40_000,
    steps=(20_000, 30_000),
)
"""The recipe of detectors of transformers, which SGD at 1e-2 does not train."""


def training_recipe(kind: str, name: str) -> TrainingRecipe:
    """The recipe for a "classifier", "detector" or "transformer" (a detector) of that name.

    AlexNet and VGG have their own.
    """
    if kind != "classifier":
        return TRANSFORMER if kind == "transformer" else DETECTOR
    old = any(family in name.lower() for family in ("alexnet", "vgg"))
    return OLD_CLASSIFIER if old else CLASSIFIER
