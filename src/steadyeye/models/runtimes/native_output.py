"""What libraries print from C++, which `contextlib.redirect_stdout` does not reach."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def silence(descriptor: int) -> Iterator[None]:
    """A block in which nothing is printed to a file descriptor, by no thread of the process."""
    try:
        before = os.dup(descriptor)
    except OSError:  # there is none
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor)
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)
