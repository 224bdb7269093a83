"""Images decoded ahead of the model by a second thread, where a processor has time for it."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

from steadyeye.core import tally
from steadyeye.core.lookahead import in_order

AHEAD = 4  # images that wait for the model at most, so that memory stays flat

Made = TypeVar("Made")


class _Here(threading.local):
    """The helper of the calling thread; None where it does all by itself."""

    helper: ThreadPoolExecutor | None = None


_here = _Here()


@contextmanager
def helped(there: bool) -> Iterator[None]:
    """A block in which a second thread works ahead of this one, if `there` is one.

    One thread, as a video is decoded in its order by one decoder.
    """
    if not there:
        yield
        return
    with ThreadPoolExecutor(1) as helper:
        _here.helper = helper
        try:
            yield
        finally:
            _here.helper = None


def made(calls: Iterable[Callable[[], Made]]) -> Iterator[Made]:
    """What each of the calls returns, in their order; up to `AHEAD` are made before they are due.

    What the calls raise is raised here, at their turn. What they add to the tally counts.
    """
    helper = _here.helper
    if helper is None:
        yield from (call() for call in calls)
        return
    collected = (partial(_collected, call) for call in calls)
    with closing(in_order(helper, collected, AHEAD + 1)) as coming:
        for found, took in coming:
            tally.add_beside(took)
            yield found


def _collected(call: Callable[[], Made]) -> tuple[Made, Mapping[str, float]]:
    with tally.collected() as took:
        return call(), took
