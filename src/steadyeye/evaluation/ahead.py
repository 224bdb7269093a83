"""Images decoded ahead of the model by a second thread, where a processor has time for it."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from steadyeye.core import tally

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
    waiting: deque[Future[tuple[Made, Mapping[str, float]]]] = deque()
    try:
        for call in calls:
            waiting.append(helper.submit(_collected, call))
            if len(waiting) > AHEAD:
                yield _counted(waiting.popleft())
        while waiting:
            yield _counted(waiting.popleft())
    finally:
        for future in waiting:
            future.cancel()


def _collected(call: Callable[[], Made]) -> tuple[Made, Mapping[str, float]]:
    with tally.collected() as took:
        return call(), took


def _counted(future: Future[tuple[Made, Mapping[str, float]]]) -> Made:
    found, took = future.result()
    tally.add_beside(took)
    return found
