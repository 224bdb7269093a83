"""Images made ready ahead of the model by a second thread, where a processor has time for it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from steadyeye.core import timing

AHEAD = 4  # images that wait for the model at most, so that memory stays flat

Made = TypeVar("Made")


class _Here(threading.local):
    """The helper of the calling thread, None where it does all by itself; what it has left over."""

    helper: ThreadPoolExecutor | None = None
    left: Mapping[int, Any] = {}


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
            _here.helper, _here.left = None, {}
            helper.shutdown(cancel_futures=True)


def helper() -> bool:
    """Whether this thread has a second one that works ahead of it."""
    return _here.helper is not None


def begun(call: Callable[[], Made]) -> Callable[[], Made]:
    """What gives what the call returns; a second thread makes it from now on, where there is one.

    Without one it is made when it is asked for. What the call raises is raised, and what it adds
    to the tally counts, where it is asked for.
    """
    if _here.helper is None:
        return call
    coming = _here.helper.submit(_collected, call)

    def taken() -> Made:
        found, took = coming.result()
        timing.add_beside(took)
        return found

    return taken


def leave(things: Mapping[int, Any]) -> None:
    """Leaves what was begun beyond a stretch of work to the one that comes next, by its place."""
    if helper():
        _here.left = things


def left_over() -> Mapping[int, Any]:
    """What the stretch before this one left; once."""
    found, _here.left = _here.left, {}
    return found


def _collected(call: Callable[[], Made]) -> tuple[Made, Mapping[str, float]]:
    with timing.collect_times() as took:
        return call(), took
