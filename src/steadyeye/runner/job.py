"""A job: which models on which data, written down in TOML or given as flags."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.degradation.operator import DEFAULT
from steadyeye.runner.engine_spec import choice

HOW = {"workers", "out", "engine", "address", "cache"}
CHOICES = {
    "reduce": ("max", "sum"),
    "on_error": ("stop", "skip"),
    "class_list": ("", "open", "closed"),
}


@dataclass(frozen=True)
class Job:
    """Models × data, and how.

    `models`, `data`: spec strings. `metrics`: a list of specs; None: all that the data allows.
    `class_map`: a mapping file; None: by name or WordNet. `reduce`: how the scores of the model
    classes of a data class are joined. `class_list`: "closed" where the data's classes are all that
    its images may hold, "open" where they name only what occurs and the model's other classes
    compete with them; as the data says if left out. `on_error`: what a sample that cannot be
    decoded does. `batch`: images handed to the model at a time; 0: 64 on a GPU, 16 on a processor.
    `workers`: threads; 0: one a core. `operators`: a list of operators that degrade the images, or
    `all`; None: images as they are. `levels`: of the operators, `first:last:step` or a list.
    `seed`: of their random streams. `fast`: only failure points, by search instead of a whole
    sweep. `engine`: where inference runs, `local` (threads), `local(processes=…)` or `ray(…)`; see
    `steadyeye.runner.engine_spec`. `address`: of the cluster. `cache`: the folder where
    answers of models are kept, `off` for none; as `steadyeye.runner.cache.settings` says if left
    out.
    """

    models: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    out: str = ""
    metrics: str | None = None
    class_map: str | None = None
    reduce: str = "max"
    class_list: str = ""
    on_error: str = "stop"
    batch: int = 0
    workers: int = 0
    operators: str | None = None
    levels: str = DEFAULT
    seed: int = 0
    fast: bool = False
    engine: str = "local"
    address: str = ""
    cache: str = ""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown(f"value of {name}", getattr(self, name), choices)
        if self.batch < 0:
            raise UsageError(f"batch={self.batch}: give 1 or more, or 0 for the default")
        if self.fast and not self.operators:
            raise UsageError("fast=true searches failure points; give the operators too")
        if self.fast and choice(self.engine, self.address):
            raise UsageError("fast=true searches level by level on one machine; use engine='local'")
        if self.workers < 0:
            raise UsageError(f"workers={self.workers}: give 1 or more, or 0 for one per core")

    def record(self) -> dict[str, Any]:
        """The job as plain values: what changes numbers, not how fast they come."""
        return {k: v for k, v in asdict(self).items() if k not in HOW}


NECESSARY = {"models": "--model", "data": "--data", "out": "--out"}


def read(
    path: Path | None, flags: Mapping[str, Any], necessary: Collection[str] = tuple(NECESSARY)
) -> Job:
    """The job in a TOML file, if one is given, with `flags` that are not None put over it.

    `necessary`: what it may not lack, of `NECESSARY`. Raises `UsageError` for a missing file, an
    unknown key, a wrong type, and a job that lacks what is necessary.
    """
    values = _values(path) if path else {}
    values |= {key: value for key, value in flags.items() if value not in (None, (), [])}
    for key in ("models", "data"):
        if isinstance(values.get(key), str):
            values[key] = [values[key]]
        values[key] = tuple(values.get(key, ()))
    for key in ("metrics", "operators"):
        if isinstance(values.get(key), list):
            values[key] = ", ".join(values[key])
    job = Job(**values)
    for key in necessary:
        if not getattr(job, key):
            raise UsageError(
                f"the job has no {key}; give {NECESSARY[key]} or write it into the job file"
            )
    return job


def toml(path: Path, known: Collection[str]) -> dict[str, Any]:
    """What a TOML file says.

    Raises `UsageError` for a file that cannot be read and for a key that is not known.
    """
    hint = "" if path.suffix == ".toml" else "; a job is a .toml file: give --model and --data"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the job '{path}': {error.strerror}{hint}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read the job '{path}': it is no text{hint}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"cannot read the job '{path}': {error}{hint}") from error
    for key in values:
        if key not in known:
            raise unknown("job key", key, known)
    return values


def _values(path: Path) -> dict[str, Any]:
    known = {field.name: field.type for field in fields(Job)}
    values = toml(path, known)
    for key, value in values.items():
        if not isinstance(value, int if known[key] is int else str | list):
            raise UsageError(f"the job '{path}' has {key} = {value!r}, which has the wrong type")
    return values
