"""A worker process of `local(processes=…)`: `python -m steadyeye.runner.engines.worker 5`."""

import os
import sys
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

from steadyeye.runner.engines.driver import ShardComputer


def main(handle: int) -> None:
    """Shards in, what came of them out, until the driver hangs up or is gone.

    `handle`: the file descriptor of the line to it; the order comes first.
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
    """Takes shards in, also while one is computed, so that a driver that died is noticed."""
    try:
        while True:
            shards.put(line.recv())
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
