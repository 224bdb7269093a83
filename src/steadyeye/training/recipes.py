"""How the papers train: what holds unless the user says otherwise."""

from dataclasses import dataclass

SHANKAR = "Shankar et al., 'Do Image Classifiers Generalize Across Time?'"


@dataclass(frozen=True)
class TrainingRecipe:
    """Optimiser, learning rate, schedule, batch and length, and where they are from.

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
"""Of AlexNet and VGG."""

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
"""Of detectors of transformers, which SGD at 1e-2 does not train."""


def training_recipe(kind: str, name: str) -> TrainingRecipe:
    """The recipe for a "classifier", "detector" or "transformer" (a detector) of that name.

    AlexNet and VGG have their own.
    """
    if kind != "classifier":
        return TRANSFORMER if kind == "transformer" else DETECTOR
    old = any(family in name.lower() for family in ("alexnet", "vgg"))
    return OLD_CLASSIFIER if old else CLASSIFIER
