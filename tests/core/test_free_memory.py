"""Freed memory is returned to the system."""

import ctypes
import subprocess
import sys

import pytest

MEASURE = """
import numpy as np
from steadyeye.core import disk_columns

def resident():
    status = open("/proc/self/status").read()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024

def hold(size):
    "What 64 MB of arrays leave behind, freed with some small ones between them held."
    held = []
    before = resident()
    arrays = []
    for _ in range((64 << 20) // size):
        arrays.append(np.ones(size, np.uint8))
        held.append(np.ones(2000, np.uint8))
    del arrays
    return resident() - before, held
"""

glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="another C library",
)


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE + code], capture_output=True, text=True, check=True
    )
    return list(map(int, done.stdout.split()))


@glibc
def test_free_memory_is_returned():
    before, after = run("""
left, held = hold(100_000)
print(left)
begin = resident()
disk_columns.return_free_memory()
print(left - (begin - resident()))
""")
    assert before > 30 << 20
    assert after < 10 << 20


@glibc
def test_large_arrays_have_own_pages_although_larger_ones_were_freed():
    left_of = {}
    for call in ("", "disk_columns.give_arrays_own_pages()"):
        (left_of[call],) = run(f"""
{call}
del [np.ones(30 << 20, np.uint8)][:]  # glibc then holds arrays of up to that size
left, held = hold(5 << 20)
print(left)
""")
    without, with_call = left_of.values()
    assert without > 30 << 20
    assert with_call < 5 << 20
