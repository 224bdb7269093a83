"""Memory that a process has freed, given back to the system."""

import ctypes
import sys

import pyarrow as pa


def return_free_memory() -> None:
    """Gives memory that is free back to the system: Arrow's, and glibc's where that is the library.

    For between two parts of a job: both keep what was freed for others of its size, glibc arrays of
    up to 32 MB, and the next part needs other sizes.
    """
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
