"""The Ray engine: a pool of actors, each with a model of its own, computes the shards of a run.

Same shards, same bytes, same resume as the local engine: a run begun with one can be finished with
the other. Only inference runs on the cluster; the shards come back to the driver, which writes them
as they arrive, a few at a time.
"""

import json
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
import ray.data

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.spec import parse
from steadyeye.evaluation import shard, sweeps
from steadyeye.evaluation.engines.choice import Cluster
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.tasks import Task, task
from steadyeye.predictions.cell import Cell, encode_table, write_content
from steadyeye.predictions.rows import to_arrow
from steadyeye.storage.place import AT_ONCE

REACH = 10  # seconds


def complete(
    cell: Cell, job: Job, wanted: Cluster, advance: Callable[[int], None]
) -> Mapping[str, int]:
    """Computes the shards of a cell that are not there yet, on a cluster; returns them by node.

    `advance` is told the rows of each finished shard, those found finished first. Actors and nodes
    that die are replaced, and their shards computed again. Raises `UsageError` for what a worker
    raises, and where a node has other code, packages, weights or data than this process.
    """
    finished = set(cell.finished())
    advance(sum(len(cell.span(shard)) for shard in finished))
    left = [{"shard": each} for each in range(cell.shards) if each not in finished]
    by_node: Counter[str] = Counter()
    if not left:
        return by_node
    made = {"job": asdict(job), "identity": json.loads(json.dumps(cell.identity))}
    made |= {"provenance": provenance(), "folder": os.getcwd()}
    with _connected(wanted):
        pool = ray.data.ActorPoolStrategy(min_size=wanted.least, max_size=wanted.most or None)
        computed = ray.data.from_items(left, override_num_blocks=len(left)).map_batches(
            Worker,
            fn_constructor_args=(made,),
            batch_size=1,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=wanted.cpus,
            num_gpus=wanted.gpus,
        )
        for done in _written(cell, computed.iter_rows()):
            advance(len(cell.span(done["shard"])))
            by_node[done["node"]] += 1
    return by_node


def _written(cell: Cell, computed: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """What was computed, once it is written; several at once, as a store answers slowly.

    Raises `UsageError` for what a worker raised.
    """
    writing: deque[tuple[Future[None], Mapping[str, Any]]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as writers:
        for done in computed:
            if done["error"]:
                raise UsageError(done["error"])
            written = writers.submit(write_content, cell, done["shard"], done["content"])
            writing.append((written, {"shard": done["shard"], "node": done["node"]}))
            # the oldest is waited for, so that no more are held than are being written
            while writing and (writing[0][0].done() or len(writing) > AT_ONCE):
                yield _after(*writing.popleft())
        yield from (_after(*each) for each in writing)


def _after(written: Future[None], done: Mapping[str, Any]) -> Mapping[str, Any]:
    written.result()
    return done


class Worker:
    """An actor: the model and the source of one cell, built once on its node."""

    def __init__(self, made: Mapping[str, Any]) -> None:
        self.made = made
        self.task: Task | None = None

    def __call__(self, batch: Any) -> Any:
        """One shard: its file's content, or why there is none."""
        number = batch["shard"][0].as_py()
        content, error = b"", ""
        try:
            self.task = self.task or built(self.made)
            span = Cell(Path(), self.task.identity).span(number)
            rows = shard.predict(self.task, span, lambda: False)
            assert rows is not None, "nothing stops it"
            content = encode_table(to_arrow(rows))
        except UsageError as raised:
            error = str(raised)
        node = ray.get_runtime_context().get_node_id()[:8]
        columns = {"shard": number, "content": content, "error": error, "node": node}
        return pa.table({name: [value] for name, value in columns.items()})


def built(made: Mapping[str, Any]) -> Task:
    """The task of a cell, built on this node. Raises `UsageError` where it is another one."""
    for package, version in made["provenance"].items():
        if provenance().get(package) != version:
            raise UsageError(
                f"a node of the cluster has {package} {provenance().get(package)}, not {version}; "
                "install the same on every node"
            )
    # relative paths are those of the command
    if os.path.isdir(made["folder"]):
        os.chdir(made["folder"])
    job, identity = Job(**made["job"]), made["identity"]
    names = (identity["model"]["spec"], identity["data"]["spec"])
    model, source = (
        plugins.build(kind, parse(text))
        for kind, text in zip(("models", "sources"), names, strict=True)
    )
    built = task(job, (names[0], model), (names[1], source), sweeps.degrading(job, [model]))
    for key, value in json.loads(json.dumps(built.identity)).items():
        if value != identity[key]:
            raise UsageError(
                f"a node of the cluster finds another {key} of {names[0]} on {names[1]}; "
                "give every node the same weights and data"
            )
    return built


@contextmanager
def _connected(wanted: Cluster) -> Iterator[None]:
    """Holds a connection to the cluster; one that is there already is used and left."""
    if ray.is_initialized():
        yield
        return
    _say_less()
    try:
        _check_reachable(wanted.address)
        ray.init(wanted.address or "local", log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:300]
        raise UsageError(f"cannot reach the Ray cluster '{wanted.address}': {told}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raises `OSError` where nothing listens: Ray itself would try for ten minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=REACH).close()


def _say_less() -> None:
    """Ray without progress and logs of its own: the run shows its own progress."""
    # of all it prints below `fatal`, nothing is for the user
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
