"""Which engine a job asks for, read from its text before anything is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.spec import parse

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
                f"ray(least={self.least}, most={self.most}): at least one actor, and no fewer at "
                "most than at least"
            )


@dataclass(frozen=True)
class Processes:
    """Worker processes on this machine, each with a model of its own, inferring in one thread."""

    processes: int

    def __post_init__(self) -> None:
        count = self.processes
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise UsageError(f"local(processes={count!r}): give a whole number of at least 1")


RemoteEngine: TypeAlias = Cluster | Processes
"""An engine that computes outside of this process."""


def choice(engine: str, address: str = "") -> RemoteEngine | None:
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
        raise UsageError(f"--address {address} is of a cluster; add --engine ray")
    return Processes(**spec.kwargs) if spec.kwargs else None
