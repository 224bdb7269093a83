"""Which shard a worker computes next."""

import threading
from collections.abc import Sequence
from itertools import pairwise


class Turns:
    """Hands shards to workers in stretches of consecutive ones, each shard once.

    A worker that goes through a video or a tar from its first frame to its last decodes and reads
    nothing twice, which workers that take every other shard do. One that has nothing left takes the
    later half of the longest stretch, so that all end together.
    """

    def __init__(self, shards: Sequence[int], workers: int) -> None:
        ends = [len(shards) * worker // workers for worker in range(workers + 1)]
        self._left = [list(shards[a:b]) for a, b in pairwise(ends)]
        self._lock = threading.Lock()

    def next(self, worker: int) -> int | None:
        """The next shard of a worker, from 0; None where none is left."""
        with self._lock:
            if not self._left[worker]:
                longest = max(self._left, key=len)
                if not longest:
                    return None
                kept = len(longest) // 2
                self._left[worker] = longest[kept:]
                del longest[kept:]
            return self._left[worker].pop(0)
