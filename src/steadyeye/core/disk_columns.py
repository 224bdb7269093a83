"""Long columns of numbers on the disk, in pages that the system may take back at any time.

A column is in an unnamed file, which disappears however the process ends. Without room on the disk
it stays in memory. Freed memory is returned to the system if the C library is glibc; otherwise
nothing happens.
"""

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any
from weakref import WeakSet, finalize

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 20
"""Least bytes of a column on the disk."""

FOLDER = Path("/var") / "tmp"
"""The default folder of the files, because `/tmp` is memory on many systems."""

MOST = 200
"""Most columns on the disk at a time: each has an open file, and a process often has only 1,024."""

PIECE = 100_000
"""Entries that are read together, including unwanted ones between."""

_PAGES: WeakSet[mmap.mmap] = WeakSet()
_LOCK = Lock()


class DiskColumn:
    """A column of numbers that grows part by part.

    `dtype`: of the numbers; `width`: numbers per entry, 0 if an entry is a single number.
    """

    def __init__(self, dtype: DTypeLike, width: int = 0) -> None:
        self._dtype, self._shape = np.dtype(dtype), (-1, width) if width else (-1,)
        self._parts: list[NDArray[Any]] = []
        self._waiting = self._written = 0  # bytes in `_parts` and in the file
        self._file: IO[bytes] | None = None
        self._has_room = True

    def append(self, part: NDArray[Any]) -> None:
        """Adds a copy of the next entries."""
        values = np.asarray(part, dtype=self._dtype).ravel()
        self._parts.append(values)
        self._waiting += values.nbytes
        if self._waiting >= LARGE:
            self._write()
        if self._parts:
            # it may be a view of a part that changes or is to be let go
            self._parts[-1] = values.copy()

    def array(self) -> NDArray[Any]:
        """(n,) or (n, width) all entries so far; changes to it are kept."""
        if self._file is not None:
            self._write()
        if self._written and not self._parts:
            return self._map()
        if self._written:
            return np.concatenate([self._map().ravel(), *self._parts]).reshape(self._shape)
        # the parts are let go, so that a column is never there twice
        self._parts = [np.concatenate([np.zeros(0, dtype=self._dtype), *self._parts])]
        return self._parts[0].reshape(self._shape)

    def _write(self) -> None:
        """Moves the parts in memory to the file, if there is room for them."""
        if self._file is None:
            self._has_room = self._has_room and len(_PAGES) < MOST
        if not self._has_room:
            return
        try:
            if self._file is None:
                self._file = self._open()
            for part in self._parts:
                content = part.view(np.uint8).data
                while content:
                    content = content[self._file.write(content) :]
        except OSError:
            self._has_room = False
            return
        self._written += self._waiting
        self._parts, self._waiting = [], 0

    def _open(self) -> IO[bytes]:
        """A new file, closed once nobody has the column; its arrays do not need it."""
        stack = ExitStack()
        finalize(self, stack.close)
        return stack.enter_context(TemporaryFile(buffering=0, dir=_choose_folder()))

    def _map(self) -> NDArray[Any]:
        """What was written, as pages of the file."""
        assert self._file is not None, "it was written to a file"
        # pages of the file itself, so that nothing that is written to them is lost as they are
        # given back; and compiled functions take only arrays that may be written to
        pages = mmap.mmap(self._file.fileno(), self._written, access=mmap.ACCESS_WRITE)
        with _LOCK:
            _PAGES.add(pages)
        return np.frombuffer(pages, dtype=self._dtype).reshape(self._shape)


def split_entries(entries: int, least: int = 0) -> Iterator[slice]:
    """Consecutive pieces of entries; the pages of each are released after use.

    `least`: entries of a piece, if more than `PIECE`.
    """
    piece = max(PIECE, least)
    for start in range(0, entries, piece):
        yield slice(start, min(start + piece, entries))
        if entries > piece:
            release_pages()


def split_spans(bounds: NDArray[np.integer], piece: int) -> Iterator[tuple[int, int]]:
    """Consecutive spans in pieces of about `piece` entries; the pages of each are released.

    `bounds`: span i has the entries from `bounds[i]` to `bounds[i + 1]`. A piece has at least one
    span, and with spans there is at least one piece.
    """
    starts = np.arange(0, max(int(bounds[-1]), 1), piece)
    ends = [0, *np.searchsorted(bounds, starts[1:]).tolist(), len(bounds) - 1]
    for begin, end in pairwise(ends):
        if begin < end:
            yield begin, end
            if len(starts) > 1:
                release_pages()


def release_pages() -> None:
    """Releases the memory of all columns on the disk; they are read again on use."""
    if hasattr(mmap, "MADV_DONTNEED"):
        with _LOCK:
            mapped = list(_PAGES)
        for pages in mapped:
            with suppress(ValueError):  # closed in the meantime
                pages.madvise(mmap.MADV_DONTNEED)


def read_entries(column: NDArray[Any], rows: NDArray[np.integer]) -> NDArray[Any]:
    """`column[rows]`, read from the first to the last entry of the column, in pieces of `PIECE`.

    Rows may be far apart: besides the result, only the memory of one piece is used at a time.
    """
    values = np.empty((len(rows), *column.shape[1:]), dtype=column.dtype)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    assert not len(rows) or ordered[0] >= 0, "a row is counted from the start"
    bounds = np.searchsorted(ordered, np.arange(0, len(column) + PIECE, PIECE))
    for begin, end in pairwise(bounds.tolist()):
        if begin < end:
            values[order[begin:end]] = column[ordered[begin:end]]
            release_pages()
    return values


def _choose_folder() -> Path | None:
    """The folder of the files; None: the one that `tempfile` chooses."""
    names_folder = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    return None if names_folder or not os.access(FOLDER, os.W_OK) else FOLDER


OWN_PAGES = 1 << 22
"""Least bytes of an array with its own pages, which are freed with it."""

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of malloc.h


def give_arrays_own_pages() -> None:
    """Makes glibc return every freed array of `OWN_PAGES` bytes or more to the system.

    By default glibc raises that size up to 32 MB with each freed array, and keeps smaller ones for
    reuse, which consecutive parts of a job do not need.
    """
    _call("mallopt", MMAP_THRESHOLD, OWN_PAGES)


def return_free_memory() -> None:
    """Returns free memory to the system: of columns on the disk, of Arrow, and of glibc."""
    release_pages()
    pa.default_memory_pool().release_unused()
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Calls a function of the C library, if it exists."""
    if sys.platform == "linux":
        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function(*arguments)
