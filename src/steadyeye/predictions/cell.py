"""A cell of a run: one model on one source, kept as shards in a folder of its own.

::

    cell.json      what it is: model, data, class map, shard size, seed; written first
    00000.arrow …  shards, each with its checksum, written whole: temporary file, sync, rename
    seal.json      names, sizes and SHA-256 of all shards; written last
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.predictions.checksum import METADATA, signed
from steadyeye.predictions.rows import Rows, to_arrow


@dataclass(frozen=True)
class Cell:
    """A cell's folder and its identity (the content of cell.json)."""

    folder: Path
    identity: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Samples in the source."""
        return int(self.identity["rows"])

    @property
    def shards(self) -> int:
        """Shards that make the cell complete."""
        return -(-self.rows // int(self.identity["shard_rows"]))

    def span(self, shard: int) -> range:
        """The rows of a shard."""
        size = int(self.identity["shard_rows"])
        return range(shard * size, min((shard + 1) * size, self.rows))

    def path(self, shard: int) -> Path:
        """The file of a shard."""
        return self.folder / f"{shard:05d}.arrow"

    def finished(self) -> list[int]:
        """The shards that are written; a file exists only once it is whole."""
        return [shard for shard in range(self.shards) if self.path(shard).is_file()]

    @property
    def sealed(self) -> bool:
        """Whether every shard is written and accounted for."""
        return (self.folder / "seal.json").is_file()


def shard_rows(rows: int) -> int:
    """Rows a shard: enough shards to share among workers and lose little, few enough to list."""
    return min(max(rows // 64, 16), 512)


def begin(folder: Path, identity: Mapping[str, Any]) -> Cell:
    """The cell in `folder`, created or resumed.

    Raises `UsageError` where the folder holds predictions of something else.
    """
    path = folder / "cell.json"
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        for key, value in json.loads(json.dumps(identity)).items():
            if before.get(key) != value:
                raise UsageError(
                    f"'{folder}' holds predictions with another {key.replace('_', ' ')} "
                    f"({_short(before.get(key))}, not {_short(value)}); choose another --out"
                )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, encode(identity))
    return Cell(folder, identity)


def open_cell(folder: Path) -> Cell:
    """The cell in `folder`, whatever it holds."""
    return Cell(folder, json.loads((folder / "cell.json").read_text(encoding="utf-8")))


def write_shard(cell: Cell, shard: int, rows: Rows) -> None:
    """Writes a shard: afterwards it is there whole, also after a crash, or not at all."""
    write_table(cell, shard, to_arrow(rows))


def write_table(cell: Cell, shard: int, table: pa.Table) -> None:
    """Writes the Arrow table of a shard, as `write_shard` does."""
    sink = pa.BufferOutputStream()
    marked = table.replace_schema_metadata(METADATA)
    with pa.ipc.new_file(sink, marked.schema) as writer:
        writer.write_table(marked)
    write_file(cell.path(shard), signed(sink.getvalue().to_pybytes()))


def seal(cell: Cell) -> None:
    """Seals a cell whose shards are all there; a sealed cell is left as it is."""
    if cell.sealed:
        return
    absent = set(range(cell.shards)) - set(cell.finished())
    assert not absent, f"shards {sorted(absent)} are not written"
    shards = [
        {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in map(cell.path, range(cell.shards))
    ]
    write_file(cell.folder / "seal.json", encode({"rows": cell.rows, "shards": shards}))


def write_file(path: Path, content: bytes) -> None:
    """Writes a file atomically and durably: temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write '{path}': {error.strerror}; what is finished is kept, "
            "make room and run the same command again"
        ) from error
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def encode(content: Mapping[str, Any]) -> bytes:
    """JSON with a final newline, the same bytes for the same content."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def sha256(path: Path) -> str:
    """The SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _short(value: object, most: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 1] + "…"
