"""Prepares the next items in threads before they are needed."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Job = TypeVar("Job")
Prepared = TypeVar("Prepared")


def prepare_ahead(
    jobs: Iterable[Job], make: Callable[[Job], Prepared], threads: int, depth: int, name: str = ""
) -> Generator[Prepared]:
    """`make(job)` for each job, in order; at most `depth` results are made in advance.

    An exception of a job is raised in its turn; jobs that were not started by then are dropped.
    `name`: prefix of the threads' names.
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
