"""The Ray engine: a pool of actors, each with its own model, computes the shards of a run.

Same shards, same bytes, same resume as the local engine: a run begun with one can be finished with
the other. Actors write their shards to the store or the disk that they share with the driver; from
a node that does not see that disk they come back to the driver, a few at a time.
"""

import logging
import os
import pickle
import re
import signal
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pyarrow as pa
import ray
import ray.data

from steadyeye.core.errors import UsageError, one_line
from steadyeye.runner.engines.driver import Done, Driver, ShardComputer
from steadyeye.runner.engines.work_order import Order
from steadyeye.runner.job import Cluster

REACH = 10  # seconds
AGAIN = "finished shards are kept, run the same command again"
TRIES = 5  # of a shard whose actor dies
STARTS = 3
"""Tries to start Ray on this machine."""
STRAY = re.compile(rb"[^\n]*Set ray log level from environment variable[^\n]*\n")


def complete(driver: Driver, order: Order, cluster: Cluster) -> Mapping[str, int]:
    """Computes the remaining shards on a cluster; returns their number by node.

    Actors and nodes that die are replaced, and their shards computed again. Raises `UsageError` for
    errors of a worker, and if actors die at the same shard `TRIES` times.
    """
    left = [{"shard": shard} for shard in driver.left]
    by_node: Counter[str] = Counter()
    with _connect(cluster):
        tries = ray.remote(Tries).options(num_cpus=0, max_restarts=-1).remote()
        pool = ray.data.ActorPoolStrategy(min_size=cluster.least, max_size=cluster.most or None)
        computed = ray.data.from_items(left, override_num_blocks=len(left)).map_batches(
            RayWorker,
            fn_constructor_args=(order, tries, TRIES),
            batch_size=1,
            batch_format="pyarrow",
            compute=pool,
            num_cpus=cluster.cpus,
            num_gpus=cluster.gpus,
        )
        for row in computed.iter_rows():
            driver.take(pickle.loads(row["done"]))  # noqa: S301 - our own worker packed it
            by_node[row["node"]] += 1
    return by_node


class Tries:
    """How often each shard was begun. Ray itself would replace actors that die without end."""

    def __init__(self) -> None:
        self.begun: Counter[int] = Counter()

    def begin(self, shard: int) -> int:
        """The number of times a shard was begun, including this one."""
        self.begun[shard] += 1
        return self.begun[shard]


class RayWorker:
    """An actor: the model and the source of one cell, built once on its node."""

    def __init__(self, order: Order, tries: Any, most: int) -> None:
        self.computer, self.tries, self.most = ShardComputer(order), tries, most

    def __call__(self, batch: Any) -> Any:
        """The outcome of one shard as a `Done`, and its node."""
        number = batch["shard"][0].as_py()
        done = (
            Done(number, error=_describe_death(number, self.most))
            if self._is_lost(number)
            else self.computer.compute(number)
        )
        node = ray.get_runtime_context().get_node_id()[:8]
        return pa.table({"done": [pickle.dumps(done)], "node": [node]})

    def _is_lost(self, number: int) -> bool:
        try:
            return bool(ray.get(self.tries.begin.remote(number)) > self.most)
        except ray.exceptions.RayError:
            return False  # the node of the one that counts is gone; it counts anew elsewhere


def _describe_death(number: int, times: int) -> str:
    return (
        f"an actor died {times} times at shard {number}; if memory ran out, ask for fewer at a "
        f"time, ray(most=…); {AGAIN}"
    )


@contextmanager
def _connect(cluster: Cluster) -> Iterator[None]:
    """A connection to the cluster; an existing one is used and not closed."""
    if ray.is_initialized():
        yield
        return
    _quieten_ray()
    try:
        _check_reachable(cluster.address)
        with _without_stray_lines(), _keep_handlers():
            _begin(cluster.address)
    except Exception as error:
        place = f"reach the Ray cluster '{cluster.address}'" if cluster.address else "begin Ray"
        raise UsageError(f"cannot {place}: {one_line(error, 300)}; {AGAIN}") from error
    except SystemExit:
        # a SIGTERM that came to Ray's handler, which exits; it is for ours
        signal.raise_signal(signal.SIGTERM)
        raise
    try:
        yield
    except BaseException as error:
        # what Ray's frames hold ends with a word to the cluster; without one it would begin another
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        with _keep_handlers():
            ray.shutdown()


def _begin(address: str) -> None:
    """Connects to the cluster at an address; without one begins Ray on this machine.

    Ray waits 30 s for its own processes, which is too short on a busy machine: it is started up to
    `STARTS` times.
    """
    for start in range(1, STARTS + 1):
        try:
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR)
            return
        # of a machine with too much to do it is a bare `Exception`
        except Exception:
            ray.shutdown()
            if address or start == STARTS:
                raise


def _check_reachable(address: str) -> None:
    """Raises `OSError` if nothing listens, since Ray itself would try for ten minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=REACH).close()


def _quieten_ray() -> None:
    """Ray without telemetry, progress and logs of its own: the run shows its own progress."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # of what its C++ prints below `fatal` nothing is for the user: errors come as exceptions
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False


@contextmanager
def _keep_handlers() -> Iterator[None]:
    """A block after which SIGTERM does what it did before: Ray sets other handlers for it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _without_stray_lines() -> Iterator[None]:
    """A block that removes `STRAY` lines from standard error, including those of C++ code."""
    reading, writing = os.pipe()
    before = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)

    def pass_on() -> None:
        while chunk := os.read(reading, 1 << 16):
            os.write(before, STRAY.sub(b"", chunk))
        os.close(reading)
        os.close(before)

    passing = Thread(target=pass_on, daemon=True)
    passing.start()
    try:
        yield
    finally:
        os.dup2(before, 2)
        # a process that was started in the block may hold its end of the pipe on
        passing.join(1.0)
