"""What is needed next, made in threads before it is taken."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Prepared = TypeVar("Prepared")


def prepare_ahead(
    jobs: Iterable[Job], make: Callable[[Job], Prepared], threads: int, depth: int, name: str = ""
) -> Generator[Prepared]:
    """`make(job)` of each job in their order, at most `depth` of them made before they are taken.

    What one raises comes out in its turn; those that were not begun by then never are. `name`: how
    the names of the threads begin.
    """
    coming: deque[Future[Prepared]] = deque()
    with ThreadPoolExecutor(threads, name) as pool:
        try:
            for job in jobs:
                coming.append(pool.submit(make, job))
                if len(coming) >= depth:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for future in coming:
                future.cancel()
