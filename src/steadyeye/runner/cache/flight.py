"""Answers on their way: a frame that several threads come to at once is asked about once."""

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeAlias

from steadyeye.runner.cache.codec import Kept

Coming: TypeAlias = Future[Mapping[bytes, Kept]]
"""What a thread that asks about several keys will give, of those that it could answer."""


class Flight:
    """Which keys a thread of this process is asking a model about.

    Who claims keys releases them, with what answers there are; whoever else came to one of them
    waits for that. A thread answers all that it claimed before it waits, so that no
    two wait for each other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[bytes, Coming] = {}

    def claim(self, keys: Sequence[bytes]) -> tuple[list[int], dict[int, Coming]]:
        """The places of the keys that are now the caller's, and what the others will give."""
        mine: list[int] = []
        theirs: dict[int, Coming] = {}
        own: Coming = Future()
        with self._lock:
            for place, key in enumerate(keys):
                if key in self._flying:
                    theirs[place] = self._flying[key]
                else:
                    self._flying[key] = own
                    mine.append(place)
        return mine, theirs

    def release(self, keys: Collection[bytes], given: Mapping[bytes, Kept]) -> None:
        """Gives up keys that the caller claimed; to be called once what is kept was stored."""
        with self._lock:
            futures = {self._flying.pop(key) for key in keys}
        for future in futures:
            future.set_result(given)
