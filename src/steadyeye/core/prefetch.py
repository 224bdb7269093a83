"""Work begun in other threads before it is due: in order, and a bounded way ahead."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from typing import TypeVar

Value = TypeVar("Value")


def in_order(
    pool: Executor, calls: Iterable[Callable[[], Value]], depth: int
) -> Generator[Value, None, None]:
    """What each of the calls returns, in their order; at most `depth` are begun and not yet taken.

    What one raises is raised at its turn; those that were not begun by then never are.
    """
    coming: deque[Future[Value]] = deque()
    try:
        for call in calls:
            coming.append(pool.submit(call))
            if len(coming) >= depth:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        for future in coming:
            future.cancel()
