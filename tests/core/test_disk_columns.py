"""Columns on the disk: contents, memory, and a disk without room."""

import errno
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from steadyeye.core import disk_columns
from steadyeye.core.disk_columns import (
    DiskColumn,
    read_entries,
    release_pages,
    split_entries,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="another system")


def draw_parts(rng, dtype, width):
    """Parts of several lengths, an empty one among them, as another type of number."""
    for length in (3, 0, 700, 1, 90):
        shape = (length, width) if width else (length,)
        yield rng.integers(0, 2, shape).astype(dtype)


@pytest.mark.parametrize("large", [1, 500, 1 << 20])
@pytest.mark.parametrize(
    ("dtype", "width"), [(np.bool_, 0), (np.int32, 0), (np.int64, 0), (np.float64, 4)]
)
def test_a_column_is_its_parts(monkeypatch, tmp_path, large, dtype, width):
    monkeypatch.setattr(disk_columns, "LARGE", large)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    column, parts = DiskColumn(dtype, width), []
    for part in draw_parts(np.random.default_rng(0), np.int8, width):
        column.append(part)
        parts.append(part.astype(dtype))
        part[...] = 1  # a column has a copy of its own
        array, expected = column.array(), np.concatenate(parts)
        release_pages()
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
        assert array.tobytes() == expected.tobytes()
        assert array.flags.c_contiguous
        assert array.flags.writeable
    assert not os.listdir(tmp_path)


def test_entries_are_read_as_numpy_takes_them(monkeypatch):
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    monkeypatch.setattr(disk_columns, "PIECE", 3)
    column, values = DiskColumn(np.float64, 2), np.random.default_rng(0).random((20, 2))
    column.append(values)
    for rows in ([], [4], [0, 1, 2], [0, 3, 4, 19, 2, 2, 7, 8]):
        chosen = read_entries(column.array(), np.array(rows, dtype=np.int64))
        assert (chosen.dtype, chosen.tolist()) == (values.dtype, [values[i].tolist() for i in rows])


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_values_written_to_a_column_survive_the_release_of_its_pages(monkeypatch, large):
    """As in any array: the writer is not told that pages were released."""
    monkeypatch.setattr(disk_columns, "LARGE", large)
    column = DiskColumn(np.int64)
    column.append(np.arange(5000))
    array = column.array()
    array[1234] = -7
    release_pages()
    assert (array[1233], array[1234], array[1235]) == (1233, -7, 1235)


def test_entries_are_split_into_pieces_that_hold_each_once(monkeypatch):
    monkeypatch.setattr(disk_columns, "PIECE", 3)
    for entries in (0, 1, 3, 7, 9):
        places = np.arange(entries)
        assert np.concatenate(
            [places[:0], *(places[p] for p in split_entries(entries))]
        ).tolist() == (places.tolist())
        assert all(part.stop - part.start <= 3 for part in split_entries(entries))


def test_an_empty_column_has_its_shape():
    assert DiskColumn(np.float64, 4).array().shape == (0, 4)
    assert DiskColumn(np.int32).array().dtype == np.int32


@pytest.mark.parametrize("room", [0, 1000, 5000])
def test_a_column_stays_in_memory_where_the_disk_is_full(monkeypatch, tmp_path, room):
    """The disk takes some bytes, part of an array included, and then none."""
    monkeypatch.setattr(disk_columns, "LARGE", 400)
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        small = SmallFile(file, room)
        monkeypatch.setattr(disk_columns, "TemporaryFile", lambda **_: small)
        column, values = DiskColumn(np.int64), np.arange(2000)
        for part in np.split(values, 40):
            column.append(part)
        assert column.array().tobytes() == values.tobytes()
        assert column.array().tobytes() == values.tobytes()
    assert small.size == room


class SmallFile:
    """A file that takes so many bytes."""

    def __init__(self, file, room):
        self._file, self._room, self.size = file, room, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The test closes the file behind it."""

    def write(self, content):
        """Writes what there is room for, a hundred bytes at most, as a file may."""
        taken = min(len(content), self._room - self.size, 100)
        if taken <= 0:
            raise OSError(errno.ENOSPC, "no space left")
        self.size += taken
        return self._file.write(content[:taken])

    def fileno(self):
        """Of the file behind it."""
        return self._file.fileno()


def test_columns_stay_in_memory_where_too_many_files_are_open(monkeypatch):
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    monkeypatch.setattr(disk_columns, "MOST", len(disk_columns._PAGES) + 2)
    before = len(disk_columns._PAGES)
    arrays = []
    for number in range(4):
        column = DiskColumn(np.int64)
        column.append(np.arange(100) + number)
        arrays.append(column.array())
    assert len(disk_columns._PAGES) == before + 2
    assert [int(array[0]) for array in arrays] == [0, 1, 2, 3]


RESIDENT = """
import os, sys
import numpy as np
from steadyeye.core.disk_columns import DiskColumn, release_pages

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

begin = resident()
column = DiskColumn(np.float64, 4)
for _ in range(64):
    column.append(np.ones((32_768, 4)))
array = column.array()
print(resident() - begin)
assert array.sum() == array.size
print(resident() - begin)
release_pages()
print(resident() - begin)
assert array.sum() == array.size
"""


@linux
def test_a_column_on_the_disk_takes_memory_only_where_it_is_read():
    """64 MB: in parts of 1 MB, read as a whole, and released."""
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True
    )
    written, read, released = (int(line) >> 20 for line in done.stdout.split())
    assert written < 8
    assert read > 60
    assert released < 8


@linux
def test_nothing_is_left_of_a_process_that_was_killed(tmp_path):
    code = RESIDENT.replace("release_pages()\n", "os.kill(os.getpid(), 9)\n")
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env=environment
    )
    assert done.returncode == -9
    assert not os.listdir(tmp_path)


def test_pages_that_were_closed_do_no_harm():
    pages = mmap.mmap(-1, 4096)
    disk_columns._PAGES.add(pages)
    pages.close()
    release_pages()
