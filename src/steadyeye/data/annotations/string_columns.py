"""Columns of many samples: each value made when it is asked for."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.types import Labels

CHUNK = 2**16
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A column of texts, each made a str when it is asked for."""

    column: pa.StringArray

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return str(self.column[index].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), CHUNK):
            yield from self.column.slice(start, CHUNK).to_pylist()


@dataclass(frozen=True, eq=False)
class Lists(Sequence[Labels]):
    """Lists of labels in one array, each made a tuple when it is asked for."""

    starts: NDArray[np.integer]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> Labels: ...
    @overload
    def __getitem__(self, index: slice) -> list[Labels]: ...
    def __getitem__(self, index: int | slice) -> Labels | list[Labels]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        return tuple(self.labels[self.starts[index] : self.starts[index + 1]].tolist())

    def __iter__(self) -> Iterator[Labels]:
        for start in range(0, len(self), CHUNK):
            ends = self.starts[start : start + CHUNK + 1]
            labels = self.labels[ends[0] : ends[-1]].tolist()
            for low, high in pairwise((ends - ends[0]).tolist()):
                yield tuple(labels[low:high])


@dataclass(frozen=True, eq=False)
class NumberedNames(Sequence[str]):
    """Names that end in their number, from 0 with eight digits: `train/00000000`."""

    start: str
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        rows = range(self.length)[index]
        return f"{self.start}{rows:08d}" if isinstance(rows, int) else [self[row] for row in rows]


@dataclass(frozen=True, eq=False)
class Joined(Sequence[Item]):
    """Columns one after the other. `first`: the place of the first value of each, and the end."""

    parts: Sequence[Sequence[Item]]
    first: Sequence[int]

    def __len__(self) -> int:
        return self.first[-1]

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        rows = range(len(self))[index]
        if isinstance(rows, range):
            return [self[row] for row in rows]
        part, row = within(self.first, rows)
        return self.parts[part][row]

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self.parts)


def join_columns(parts: Sequence[Sequence[Item]]) -> Joined[Item]:
    """The columns as one."""
    return Joined(parts, [0, *accumulate(map(len, parts))])


def within(first: Sequence[int], index: int) -> tuple[int, int]:
    """Which part a value lies in, and at which place there; `first` as in `Joined`."""
    part = bisect_right(first, index) - 1
    return part, index - first[part]


def present(
    starts: NDArray[np.integer], labels: NDArray[np.int32], counted: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Of each list, in the form of `Lists`, the labels that occur, rising, each once.

    `counted`: which of the labels count; all if left out.
    """
    rows = len(starts) - 1
    image = np.repeat(np.arange(rows, dtype=np.int64), np.diff(starts))
    if counted is not None:
        image, labels = image[counted], labels[counted]
    width = int(labels.max(initial=0)) + 1
    # sorted by hand, as numpy's unique takes two hundred times as long here
    keys = np.sort(image * width + labels)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * width), (
        keys % width
    ).astype(np.int32)
