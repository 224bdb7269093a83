"""Worker processes on this machine, for code in which threads would wait for Python's lock.

The same shards, bytes and resume as with threads. A process is started anew, not forked, and needs
no `__main__` guard in the user's script. One that dies is replaced and its shard computed again.
Ours, as `loky` gives up all its processes where one dies, and does not say at which shard.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread

from steadyeye.core.errors import UsageError
from steadyeye.runner.engines.driver import Done, Driver, ShardComputer
from steadyeye.runner.engines.work_order import Order
from steadyeye.runner.job import Processes
from steadyeye.runner.threads import Turns, cores

TRIES = 3  # of a shard whose worker dies
GRACE = 5.0  # seconds that a worker has to end
LOOK = 1.0  # seconds after which workers are looked after that say nothing
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables with the number of threads of libraries: by default one per processor in each
process."""


@dataclass(eq=False)
class Worker:
    """A process, its number from 0, its connection, and its current shard or None."""

    process: "subprocess.Popen[bytes]"
    number: int
    line: Connection
    shard: int | None = None

    def tell(self, message: Order | int) -> None:
        """Sends the order, or a shard's number; a dead process is detected in `answer`."""
        self.shard = message if isinstance(message, int) else None
        with suppress(OSError):
            self.line.send(message)

    def answer(self) -> Done | None:
        """Its result; None if it died."""
        # what it forked may hold its end of the line open after it
        if self.process.poll() is not None and not self.line.poll():
            return None
        try:
            done: Done = self.line.recv()
        except (EOFError, OSError):
            return None
        return done


def complete(driver: Driver, order: Order, engine: Processes) -> int:
    """Computes the remaining shards in processes; returns how many processes died.

    An error or an interrupt ends all of them; finished shards stay. Raises `UsageError` for errors
    of a worker, and if workers die at the same shard three times.
    """
    count = min(engine.processes, len(driver.left))
    shards, unused = Shards(Turns(driver.left, count)), list(range(count))
    with _hold_workers() as workers:
        while True:
            for worker in workers:
                if worker.shard is None and (shard := shards.next(worker.number)) is not None:
                    worker.tell(shard)
            while unused and (shard := shards.next(unused[0])) is not None:
                workers.append(_start_worker(unused.pop(0), max(cores() // count, 1)))
                workers[-1].tell(order)
                workers[-1].tell(shard)
            if all(worker.shard is None for worker in workers):
                return shards.deaths.total()
            for worker in _ready(workers):
                shard, done = worker.shard, worker.answer()
                assert shard is not None, "nobody speaks unasked"
                worker.shard = None
                if done is not None:
                    driver.take(done)
                    continue
                workers.remove(worker)
                unused.append(worker.number)
                _end(worker)
                shards.put_back(shard)
                if shards.deaths[shard] == TRIES:
                    raise UsageError(_describe_death(driver, shard, worker.process.returncode))


class Shards:
    """The remaining shards: stretches of consecutive ones, and those whose worker died."""

    def __init__(self, turns: Turns) -> None:
        self.deaths: Counter[int] = Counter()
        self._turns, self._lost = turns, deque[int]()

    def next(self, worker: int) -> int | None:
        """The next shard of a worker, by its number; None if none is left."""
        return self._lost.popleft() if self._lost else self._turns.next(worker)

    def put_back(self, shard: int) -> None:
        """Takes a shard back whose worker died."""
        self.deaths[shard] += 1
        self._lost.append(shard)


def _ready(workers: Sequence[Worker]) -> list[Worker]:
    """The busy workers that have a result or are dead."""
    busy = {worker.line: worker for worker in workers if worker.shard is not None}
    speaking = wait(list(busy), timeout=LOOK)
    dead = [line for line, worker in busy.items() if worker.process.poll() is not None]
    return [busy[line] for line in busy if line in speaking or line in dead]


def _start_worker(number: int, threads: int) -> Worker:
    if os.name == "nt":
        raise UsageError("engine='local(processes=…)' does not run on Windows; use threads")
    own_end, other_end = socket.socketpair()
    with other_end:
        program = f"from {__name__} import work; work({other_end.fileno()})"
        defaults = dict.fromkeys(THREADS, str(threads))
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", "-c", program],
            env={**defaults, **os.environ, "PYTHONPATH": paths, **assign_gpu(number)},
            pass_fds=[other_end.fileno()],
            # an interrupt of the terminal is the driver's, which then ends its workers
            start_new_session=True,
        )
    # where an interrupt meets `Popen.poll`, its lock may stay taken, and waiting would never end:
    # interrupts meet the main thread alone
    Thread(target=process.wait, daemon=True).start()
    return Worker(process, number, Connection(own_end.detach()))


@contextmanager
def _hold_workers() -> Iterator[list[Worker]]:
    """The workers, which are always ended with the block; unfinished shards are deleted."""
    workers: list[Worker] = []
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            _end(worker)


def _end(worker: Worker) -> None:
    """Waits for a worker to end; one that does not is killed."""
    worker.line.close()
    try:
        worker.process.wait(GRACE)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()


def _describe_death(driver: Driver, number: int, code: int) -> str:
    how = f"ended with exit code {code}"
    if code < 0:
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return (
        f"a worker process {how}, {TRIES} times at the shard '{driver.cell.path(number)}'; if "
        "memory ran out, ask for fewer processes; finished shards are kept, run the same command "
        "again"
    )


def work(handle: int) -> None:
    """A worker: receives shards and sends results until the driver disconnects or dies.

    `handle`: the file descriptor of the connection to it; the order comes first.
    """
    os.set_inheritable(handle, False)
    line = Connection(handle)
    try:
        computer = ShardComputer(line.recv())
    except EOFError:
        return
    shards: SimpleQueue[int] = SimpleQueue()
    Thread(target=_listen, args=(line, shards), daemon=True).start()
    while True:
        line.send(computer.compute(shards.get()))


def _listen(line: Connection, shards: "SimpleQueue[int]") -> None:
    """Receives shards, also while one is computed, to detect a dead driver."""
    try:
        while True:
            shards.put(line.recv())
    except (EOFError, OSError):
        os._exit(0)


VARIABLE = "CUDA_VISIBLE_DEVICES"


def assign_gpu(worker: int) -> Mapping[str, str]:
    """Environment variables that assign a GPU to a worker process, by its number from 0.

    If several GPUs may be used, they are assigned in turn; empty if there is no choice.
    """
    gpus = list_gpus()
    return {VARIABLE: gpus[worker % len(gpus)]} if len(gpus) > 1 else {}


def list_gpus() -> list[str]:
    """The GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` has them."""
    names = os.environ.get(VARIABLE)
    if names is None:
        return [str(number) for number in range(_count_gpus())]
    return [name for name in map(str.strip, names.split(",")) if name]


def _count_gpus() -> int:
    """The GPUs of NVIDIA's driver, without CUDA, after which this process could not fork."""
    try:
        driver = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint(0)
    if driver.nvmlInit_v2() or driver.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return 0
    return count.value
