"""The order that lets another process compute shards of a cell, and the task built from it.

Texts, as the user wrote them; an object that was given in Python goes along pickled.
"""

import json
import os
import pickle
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steadyeye.core import plugin_folder, plugins
from steadyeye.core.code_permission import allow_code, list_allowed
from steadyeye.core.difference import drop_notes
from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.spec import parse
from steadyeye.core.storage import confinement
from steadyeye.core.storage.files import place, write_lightly
from steadyeye.core.storage.retry import StorageError
from steadyeye.data.images import image_file
from steadyeye.predictions.shard_store import Cell
from steadyeye.runner import sweep
from steadyeye.runner.cache.lookup import SharedStore, share_store
from steadyeye.runner.job import Job, RemoteEngine
from steadyeye.runner.task import Task, task

VARIABLES = (plugin_folder.VARIABLE, confinement.VARIABLE, image_file.VARIABLE)
"""Environment variables that a worker on another machine gets."""


@dataclass(frozen=True, eq=False)
class Order:
    """What a worker needs.

    `job`, `identity`, `provenance`: as of this process. `folder`: where relative paths count from.
    `variables`: of the environment, those of `VARIABLES`. `allowed_code`: what files may name.
    `objects`: pickled, text → object. `out`: the cell's folder. `token`: the name of a file in it
    by which a worker knows that it reaches the same folder, and that the driver still holds it.
    `answers`: where answers are stored; None: nowhere. `prefetches`: whether a worker has a
    processor for a second thread, which works ahead.
    """

    job: Job
    identity: Mapping[str, Any]
    provenance: Mapping[str, str]
    folder: str
    variables: Mapping[str, str]
    allowed_code: tuple[str, ...]
    objects: bytes
    out: str
    token: str
    answers: SharedStore | None
    prefetches: bool

    def is_reachable(self) -> bool:
        """Whether the cell's folder, as visible here, is the driver's and still locked by it."""
        token = place(self.out) / self.token
        try:
            is_same = token.read_bytes() == self.token.encode()
        except (OSError, StorageError):
            return False
        return is_same and (not isinstance(token, Path) or os.access(token.parent, os.W_OK))


@contextmanager
def open_order(job: Job, task: Task, cell: Cell, engine: RemoteEngine) -> Iterator[Order]:
    """The order of a cell to an engine, valid while this process receives results."""
    folder = cell.folder.absolute() if isinstance(cell.folder, Path) else cell.folder
    # a name that `mend` clears where this process dies
    token = f".{secrets.token_hex(8)}.tmp"
    write_lightly(folder / token, token.encode())
    try:
        yield Order(
            job=job,
            identity=json.loads(json.dumps(cell.identity)),
            provenance=provenance(),
            folder=os.getcwd(),
            variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
            allowed_code=list_allowed(),
            objects=pack_objects(task.objects),
            out=str(folder),
            token=token,
            answers=share_store(task.cache.store, engine.workers) if task.cache else None,
            prefetches=engine.prefetches,
        )
    finally:
        (folder / token).unlink(missing_ok=True)


def pack_objects(objects: Mapping[str, Any]) -> bytes:
    """Pickles objects for another process. Raises `UsageError` for one that cannot be pickled."""
    for name, value in objects.items():
        try:
            content = pickle.dumps(value)
        except Exception as error:
            # whatever an object holds may refuse in its own way
            raise _cannot_be_sent(name, " ".join(str(error).split())[:200]) from error
        if b"__main__" in content:
            raise _cannot_be_sent(name, "it is defined in the script itself")
    return pickle.dumps(dict(objects))


def build_task(order: Order) -> Task:
    """The task of an order, built in this process. Raises `UsageError` if the task differs."""
    for package, version in order.provenance.items():
        if provenance().get(package) != version:
            raise UsageError(
                f"a worker has {package} {provenance().get(package)}, not {version}; "
                "install the same on every node"
            )
    # relative paths are those of the command
    if os.path.isdir(order.folder):
        os.chdir(order.folder)
    os.environ.update(order.variables)
    allow_code(*order.allowed_code)
    objects, identity = _unpack(order.objects), order.identity
    names = (identity["model"]["spec"], identity["data"]["spec"])
    model, source = (
        objects[text] if text in objects else plugins.build(kind, parse(text))
        for kind, text in zip(("models", "sources"), names, strict=True)
    )
    how = sweep.degrading(order.job, [model])
    built = task(order.job, (names[0], model), (names[1], source), how)
    expected = drop_notes(identity)
    for key, value in json.loads(json.dumps(drop_notes(built.identity))).items():
        if value != expected[key]:
            raise UsageError(
                f"a worker finds another {key} of {names[0]} on {names[1]}; "
                "give every node the same weights and data"
            )
    return replace(built, objects=objects)


def _unpack(objects: bytes) -> dict[str, Any]:
    try:
        unpacked: dict[str, Any] = pickle.loads(objects)  # noqa: S301 - our own driver packed them
    except Exception as error:
        # importing what it names runs the user's code
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"a worker cannot build what it was sent: {type(error).__name__}: {reason}; put the "
            "module where workers can import it"
        ) from error
    return unpacked


def _cannot_be_sent(name: str, why: str) -> UsageError:
    return UsageError(
        f"'{name}' cannot be sent to another process ({why}); define it in a module of its own "
        "that workers can import, or use engine='local'"
    )
