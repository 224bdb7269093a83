"""A job: which models on which data, and where; written down in TOML or given as flags."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

import msgspec

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.spec import parse
from steadyeye.core.storage.text_files import LARGEST_WHOLE, read_toml
from steadyeye.degradation.operator import DEFAULT
from steadyeye.runner.threads import cores

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
    sweep. `baseline`: the folder of a run of a reference model on the same data; only the images
    that it gets right are degraded. `engine`: where inference runs, `local` (threads),
    `local(processes=…)` or `ray(…)`; see `steadyeye.runner.job`. `address`: of the cluster.
    `cache`: the folder where answers of models are kept, `off` for none; as
    `steadyeye.runner.cache.settings` says if left out.
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
    baseline: str = ""
    engine: str = "local"
    address: str = ""
    cache: str = ""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise unknown(f"value of {name}", getattr(self, name), filter(None, choices))
        if self.batch < 0:
            raise UsageError(f"batch={self.batch}: give 1 or more, or 0 for the default")
        if self.baseline and not self.operators:
            raise UsageError("baseline chooses images to degrade; give the operators too")
        if self.baseline and self.fast:
            raise UsageError(
                "fast=true searches among the images that each model gets right itself; leave "
                "baseline out"
            )
        if self.fast and not self.operators:
            raise UsageError("fast=true searches failure points; give the operators too")
        if self.fast and read_engine(self.engine, self.address):
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
            file = f"'{path}'" if path else "the job file"
            raise UsageError(f"the job has no {key}; give {NECESSARY[key]} or write it into {file}")
    return job


def read_job_values(path: Path, types: Mapping[str, Any]) -> dict[str, Any]:
    """What a TOML file says, by key; `types`: what each key may hold.

    Raises `UsageError` for a file that cannot be read, a key that is not known and a wrong type.
    """
    hint = "" if path.suffix == ".toml" else "; a job is a .toml file: give --model and --data"
    values = read_toml(path, "job", hint)
    for key, value in values.items():
        if key not in types:
            raise UsageError(f"'{path}': {unknown('job key', key, types)}")
        _check_value(value, types[key], f"the job '{path}' has {key} = {repr(value)[:100]}")
    return values


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a job as Python has them: lists, numbers and paths as the text of a job.

    Raises `UsageError` for a wrong type.
    """
    types, values = get_type_hints(Job), dict(options)
    for key, value in options.items():
        if isinstance(value, PathLike):
            values[key] = str(value)
        elif key in ("operators", "levels") and isinstance(value, Sequence | int):
            several = [value] if isinstance(value, str | int) else value
            values[key] = ", ".join(map(str, several))
        _check_value(values[key], types[key], f"{key} is {repr(value)[:100]}")
    return values


def _check_value(value: Any, kind: Any, place: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{place}, which has the wrong type: {error}; correct it") from None
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and "\0" in item:
            raise UsageError(f"{place}, with a zero byte in it; delete it")
        if isinstance(item, int | float) and not abs(item) <= LARGEST_WHOLE:
            raise UsageError(f"{place}; give a number up to {LARGEST_WHOLE:,}")


def _values(path: Path) -> dict[str, Any]:
    several: Any = str | list[str]
    types = {**get_type_hints(Job), "metrics": several, "operators": several}
    return read_job_values(path, {**types, "models": several, "data": several})


ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Cluster:
    """What a Ray cluster is asked for.

    `address`: `auto`, `host:port` or `ray://host:port`; empty: a cluster on this machine, started
    for the run. `cpus`, `gpus`: what each actor reserves, fractions allowed; an actor holds one
    model and infers in one thread. `least`, `most`: the actors of the pool, which grows and shrinks
    between them; 0: as many as fit.
    """

    address: str = ""
    cpus: float = 1
    gpus: float = 0
    least: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "least", "most"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise UsageError(f"ray({name}={value!r}): give a number of at least 0")
        if not (self.cpus or self.gpus):
            raise UsageError("ray(cpus=0, gpus=0): an actor needs a part of a CPU or of a GPU")
        if self.least < 1 or (self.most and self.most < self.least):
            raise UsageError(
                f"ray(least={self.least}, most={self.most}): give least of 1 or more, and most "
                "of no less than least"
            )

    @property
    def workers(self) -> int:
        """The most actors that may be at work."""
        return self.most or os.cpu_count() or 1

    @property
    def prefetches(self) -> bool:
        """Whether an actor has a processor for a second thread, which works ahead."""
        return self.cpus >= 2


@dataclass(frozen=True)
class Processes:
    """Worker processes on this machine, each with a model of its own, inferring in one thread.

    Several GPUs are handed to them in turn, so that each process sees one.
    """

    processes: int

    def __post_init__(self) -> None:
        count = self.processes
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UsageError(f"local(processes={count!r}): give a whole number of at least 1")

    @property
    def workers(self) -> int:
        """The most processes that may be at work."""
        return self.processes

    @property
    def prefetches(self) -> bool:
        """Whether a process has a processor for a second thread, which works ahead."""
        return cores() >= 2 * self.processes


RemoteEngine: TypeAlias = Cluster | Processes
"""An engine that computes outside of this process."""


def read_engine(engine: str, address: str = "") -> RemoteEngine | None:
    """What a text such as `ray(gpus=1, most=8)` or `local(processes=4)` asks for.

    None for `local`: threads of this process. `address`: goes over what the text says. Raises
    `UsageError` for another engine or parameter.
    """
    spec = parse(engine)
    if spec.name not in ENGINES:
        raise unknown("engine", spec.name, ENGINES)
    kind = Cluster if spec.name == "ray" else Processes
    known: Mapping[str, Any] = kind.__dataclass_fields__
    for key in spec.kwargs:
        if key not in known:
            raise unknown(f"parameter of {spec.name}", key, known)
    if spec.name == "ray":
        return Cluster(**{**spec.kwargs, **({"address": address} if address else {})})
    if address:
        raise UsageError(f"--address {address} is for a Ray cluster; add --engine ray")
    return Processes(**spec.kwargs) if spec.kwargs else None
