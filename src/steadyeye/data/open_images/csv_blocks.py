"""CSV files too large to hold, read a block of rows at a time."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from steadyeye.core.errors import UsageError, one_line, shorten
from steadyeye.core.format import number_of

BLOCK = 2**24
"""Bytes of text read at a time."""

TEXT = pa.dictionary(pa.int32(), pa.string())
"""A column of texts that come many times: each kept once a block, rows hold its number."""


NO_CLASS = "of classes that have no description"
"""The description of a fault."""


@dataclass(frozen=True)
class Fault:
    """Rows with the same fault: a description, their number, and the first of them in words."""

    title: str
    rows: int
    first: str


def blocks(path: Path, kinds: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file in blocks, only the columns of `kinds` that it has.

    `.gz` is read too. Raises `UsageError`, a line, for a file that is not there, for a row with
    more or fewer cells than the header, and for a cell that is no number where one belongs.
    """
    names = [name for name in header(path) if name in kinds]
    try:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(block_size=BLOCK),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names, column_types={name: kinds[name] for name in names}
            ),
        )
        yield from reader
    except (pa.ArrowInvalid, OSError) as error:
        raise UsageError(f"cannot read '{path}': {one_line(error)}; fix the file") from error


def header(path: Path) -> list[str]:
    """The names of the columns of a CSV file."""
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            start = stream.read(2**16).decode("utf-8-sig", errors="replace")
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"no CSV file at '{path}'; check the path") from error
    try:
        return next(csv.reader(io.StringIO(start, newline="")), [])
    except csv.Error as error:
        raise UsageError(f"cannot read '{path}': line 1: {error}; fix the file") from None


def check_columns(path: Path, needed: Sequence[str]) -> None:
    """Raises `UsageError` where a CSV file lacks one of the columns."""
    columns = header(path)
    lacking = [name for name in needed if name not in columns]
    if lacking:
        raise UsageError(
            f"'{path}' has no column {', '.join(lacking)}; its columns are "
            f"{shorten(', '.join(columns))}; take the released file, cells parted by commas"
        )


def find_faults(
    batch: pa.RecordBatch, names: Sequence[str], before: int, tests: Mapping[str, NDArray[np.bool_]]
) -> list[Fault]:
    """The faults of a block, with the first row of each.

    `names`: the columns that are shown of it; `before`: rows before the block; `tests`: description
    → (n,) which rows have the fault.
    """
    faults = []
    for title, bad in tests.items():
        if bad.any():
            row = int(bad.argmax())
            cells = [batch.column(name)[row].as_py() for name in names]
            text = ", ".join("" if cell is None else f"{cell}" for cell in cells)
            # the header is line 1
            faults.append(Fault(title, int(bad.sum()), f"line {before + row + 2}: {text}"))
    return faults


def refuse(path: Path, faults: Iterable[Fault]) -> None:
    """Raises `UsageError` for the faults of all blocks of a file: a line a kind, with how many."""
    faults_: dict[str, Fault] = {}
    for fault in faults:
        before = faults_.get(fault.title, Fault(fault.title, 0, fault.first))
        faults_[fault.title] = Fault(fault.title, before.rows + fault.rows, before.first)
    if faults_:
        lines = [
            f"'{path}': {number_of(f.rows, 'row')} {f.title}, first {shorten(f.first)}"
            for f in faults_.values()
        ]
        raise UsageError(*sorted(lines))


def number_column(column: pa.DictionaryArray, place: Mapping[str, int]) -> NDArray[np.int32]:
    """(n,) what each text of a column is in `place`, −1 where it is not there."""
    known = [place.get(text, -1) for text in column.dictionary.to_pylist()]
    return np.array([*known, -1], dtype=np.int32)[_indices(column)]


def unify_columns(
    columns: Sequence[pa.DictionaryArray],
) -> tuple[pa.StringArray, NDArray[np.int32]]:
    """The distinct texts of the blocks of a column, in the order they come first; (n,) which."""
    if not columns:
        return pa.array([], pa.string()), np.zeros(0, dtype=np.int32)
    whole = pa.chunked_array(columns).unify_dictionaries()
    indices = np.concatenate([_indices(chunk) for chunk in whole.chunks])
    return whole.chunk(whole.num_chunks - 1).dictionary, indices


def numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """(n,) float64 a column of numbers, NaN where a cell is empty."""
    column = pc.fill_null(batch.column(name).cast(pa.float64()), float("nan"))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _indices(column: pa.DictionaryArray) -> NDArray[np.int32]:
    # a null has no number: the last place, which numbered() keeps for what is not there
    return np.asarray(pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False))
