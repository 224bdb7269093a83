"""Columns of many texts in one block of memory: a Python str takes 50 bytes and its letters."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa

CHUNK = 2**16
Item = TypeVar("Item")


class Column(Sequence[Item]):
    """Values that `make` makes on request; a slice is a list of them."""

    @abstractmethod
    def make(self, row: int) -> Item:
        """The value of a row, from 0."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        rows = range(len(self))[index]
        return self.make(rows) if isinstance(rows, int) else list(map(self.make, rows))


@dataclass(frozen=True, eq=False)
class Texts(Column[str]):
    """A column of texts, each made a str on request."""

    column: pa.StringArray

    def __len__(self) -> int:
        return len(self.column)

    def make(self, row: int) -> str:
        """The text of a row."""
        return str(self.column[row].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), CHUNK):
            yield from self.column.slice(start, CHUNK).to_pylist()


def encode_texts(texts: Iterable[str]) -> Texts:
    """A column of texts, which need not all be in memory."""
    if isinstance(texts, Texts):
        return texts
    rest, pieces = iter(texts), [build_text_array([])]
    while piece := list(islice(rest, CHUNK)):
        pieces.append(build_text_array(piece))
    return Texts(pa.concat_arrays(pieces))


def build_text_array(texts: Sequence[str], *, large: bool = False) -> pa.Array:
    """An Arrow array of texts, none missing; `large`: of 2 GiB or more."""
    # pa.array imports pandas if it is installed: a quarter of a second
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    assert large or ends[-1] < 2**31, "a shard has fewer letters"
    offsets = ends if large else ends.astype(np.int32)
    kind = pa.large_string() if large else pa.string()
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(kind, len(texts), buffers)


def find_repeated_texts(texts: Sequence[str]) -> list[str]:
    """The texts that occur more than once, in the order of their first occurrence.

    It holds 8 bytes per text, not the texts: these are read again if two hashes are equal.
    """
    marks = np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts))
    marks.sort()
    alike = set(marks[1:][marks[1:] == marks[:-1]].tolist())
    if not alike:
        return []
    times = Counter(text for text in texts if hash(text) in alike)
    return [text for text, count in times.items() if count > 1]
