"""Memory that a process has freed, given back to the system instead of held for later.

Only where the C library is glibc; elsewhere nothing happens.
"""

import ctypes
import sys

import pyarrow as pa

from steadyeye.core.disk_columns import release_pages

LARGE = 1 << 22
"""Bytes from which on an array has pages of its own, which go as it goes."""

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def give_arrays_own_pages() -> None:
    """Has every array of `LARGE` bytes or more given back as it is freed.

    Left to itself, glibc raises that size up to 32 MB with each array that is freed, and holds the
    smaller ones for others, which parts of a job that follow each other do not need.
    """
    _call("mallopt", MMAP_THRESHOLD, LARGE)


def return_free_memory() -> None:
    """Gives all that is free back: columns on the disk, what Arrow holds for later, and glibc."""
    release_pages()
    pa.default_memory_pool().release_unused()
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Calls a function of the C library that has it."""
    if sys.platform == "linux":
        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function(*arguments)
