"""The job of a fine-tuning: model, data and settings, from TOML or options."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from steadyeye.core.errors import UsageError
from steadyeye.core.format import quote_word
from steadyeye.runner.job import read_job_values
from steadyeye.runner.short_forms import expand_data, expand_model
from steadyeye.training.before_after import Measuring
from steadyeye.training.hyperparameters import (
    Constant,
    Course,
    Plateau,
    Schedule,
    Steps,
    TrainingRecipe,
)
from steadyeye.training.selection import Selection

HOW = {"workers", "out", "every", "then", "then_operators", "then_levels", "then_class_map"}
SEARCH = "search"


@dataclass(frozen=True)
class Tuning:
    """A base model, its data, and the settings of its fine-tuning.

    `model`, `data`, `val`: specs. `holdout`, `by`, `gap`, `classes`, `class_map`: as
    `training.selection.Selection` says. `augment`: operators for the training images; `mirror`:
    half of them are mirrored first. `lr`: a number, or `search`. `multi_label`: every label of an
    image counts. `from_scratch`: from random weights. `every`: steps between checkpoints. None: the
    value of the recipe of the model's kind. `then…`: the data and settings of the later comparison,
    see `training.before_after.Measuring`.
    """

    model: str = ""
    data: str = ""
    out: str = ""
    val: str | None = None
    holdout: float | None = None
    by: str = "video"
    gap: int | None = None
    classes: str | None = None
    class_map: str | None = None
    augment: str | None = None
    mirror: bool = False
    epochs: int | None = None
    iterations: int | None = None
    batch: int | None = None
    optimizer: str | None = None
    lr: str | None = None
    momentum: float | None = None
    multi_label: bool = False
    from_scratch: bool = False
    precision: str = "fp32"
    patience: int | None = None
    seed: int = 0
    every: int = 100
    workers: int = 0
    then: tuple[str, ...] = ()
    then_operators: str | None = None
    then_levels: str | None = None
    then_class_map: str | None = None

    @property
    def selection(self) -> Selection:
        """The labels for training, and the held-out data."""
        return Selection(
            several=self.multi_label,
            classes=self.classes,
            class_map=self.class_map,
            holdout=self.holdout,
            by=self.by,
            gap=self.gap,
            seed=self.seed,
        )

    @property
    def measuring(self) -> Measuring | None:
        """The data and settings of the later comparison, or None."""
        if not self.then:
            # the class map of the base is used for the held-out examples too
            if self.then_operators or self.then_levels:
                raise UsageError("no data to compare both models on; give --then SPEC")
            return None
        return Measuring(
            data=self.then,
            operators=self.then_operators,
            levels=self.then_levels,
            class_map=self.then_class_map,
            seed=self.seed,
            workers=self.workers,
        )

    @property
    def searches_rate(self) -> bool:
        """Whether the learning rate is searched."""
        return self.lr == SEARCH

    def course(self, recipe: TrainingRecipe) -> Course:
        """The settings of the training: the user's, with those of the recipe as defaults.

        Raises `UsageError` for invalid values.
        """
        if self.epochs is not None and self.iterations is not None:
            raise UsageError("--epochs and --iterations exclude each other; give one")
        optimizer = self.optimizer or recipe.optimizer
        own = optimizer == recipe.optimizer
        iterations = self.iterations
        if iterations is None and self.epochs is None:
            iterations = recipe.iterations
        course = Course(
            epochs=self.epochs or recipe.epochs or 1,
            iterations=iterations,
            batch=recipe.batch if self.batch is None else self.batch,
            optimizer=optimizer,
            rate=self._rate(recipe.lr),
            decay=recipe.weight_decay if own else 0.0,
            patience=self.patience,
            precision=self.precision,
            seed=self.seed,
            every=self.every,
            schedule=_schedule(recipe, iterations),
        )
        momentum = self.momentum
        if momentum is None and own:
            momentum = recipe.momentum or None
        return course if momentum is None else replace(course, momentum=momentum)

    def record(self) -> dict[str, Any]:
        """The user's settings that change the outcome, as plain values."""
        return {key: value for key, value in asdict(self).items() if key not in HOW}

    def _rate(self, usual: float) -> float:
        if self.lr is None or self.searches_rate:
            return usual
        try:
            return float(self.lr)
        except ValueError:
            raise UsageError(f"--lr {self.lr}: give a number, such as 1e-4, or search") from None


def read(path: Path | None, flags: Mapping[str, Any]) -> Tuning:
    """The job of a TOML file, if one is given, overridden by `flags` that are not None.

    Raises `UsageError` for a missing file, an unknown key, a wrong type, and if the model, the data
    or the output folder is missing.
    """
    types = {**get_type_hints(Tuning), "lr": str | float, "then": str | list[str]}
    values = read_job_values(path, types) if path else {}
    values |= {key: value for key, value in flags.items() if value not in (None, (), [])}
    for key in ("model", "data", "out"):
        if not values.get(key):
            raise UsageError(f"the {key} is missing; give --{key} or write it into the job file")
    then = values.get("then", ())
    values["then"] = tuple(map(expand_data, (then,) if isinstance(then, str) else then))
    values["model"] = expand_model(values["model"])
    for key in ("data", "val"):
        if values.get(key):
            values[key] = expand_data(values[key])
    if "lr" in values:
        values["lr"] = str(values["lr"])
    return Tuning(**values)


def command(record: Mapping[str, Any], out: str) -> str:
    """The command that repeats a recorded training."""
    usual = Tuning().record()
    words = ["steadyeye", "finetune"]
    for key, value in record.items():
        if value != usual.get(key):
            words += [f"--{key.replace('_', '-')}"]
            words += [] if value is True else [quote_word(str(value))]
    return " ".join([*words, "--out", quote_word(out)])


def _schedule(recipe: TrainingRecipe, iterations: int | None) -> Schedule:
    if recipe.schedule == "plateau":
        return Plateau()
    if not recipe.steps or not iterations or not recipe.iterations:
        return Constant()
    # a shorter training falls at the same shares of its length
    at = {max(1, round(step * iterations / recipe.iterations)) for step in recipe.steps}
    return Steps(tuple(sorted(at)))
