"""Answers on their way: a frame that several threads come to at once is asked about once."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from steadyeye.cache.entry import Kept


class Flight:
    """Which keys a thread of this process is asking a model about.

    Who claims a key releases it, with the answer or with None where there is none; whoever else
    came to it waits for that. A thread answers all that it claimed before it waits, so that no
    two wait for each other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: dict[bytes, Future[Kept | None]] = {}

    def claim(self, keys: Sequence[bytes]) -> tuple[list[int], dict[int, Future[Kept | None]]]:
        """The places of the keys that are now the caller's, and what the others will give."""
        mine: list[int] = []
        theirs: dict[int, Future[Kept | None]] = {}
        with self._lock:
            for place, key in enumerate(keys):
                if key in self._flying:
                    theirs[place] = self._flying[key]
                else:
                    self._flying[key] = Future()
                    mine.append(place)
        return mine, theirs

    def release(self, key: bytes, kept: Kept | None) -> None:
        """Gives up a key that the caller claimed; to be called once what is kept was stored."""
        with self._lock:
            future = self._flying.pop(key)
        future.set_result(kept)
