"""A cell of a run: one model on one source, stored as shards in its own folder.

::

    cell.json      what it is: model, data, class map, shard size, seed; written first
    00000.arrow …  shards, each written whole: to a temporary file, synced, renamed; or one put
    00000.seal …   size and SHA-256 of each, and of cell.json; a shard without counts as not written
    seal.json      names, sizes and SHA-256 of all shards, and of cell.json; written last

The folder may be in an object store (`s3://…`), where the seal of a shard is written after it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256 as digest
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from steadyeye.core.difference import describe_difference, drop_notes
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import (
    Place,
    encode,
    map_requests,
    sha256,
    walk_files,
    write_file,
    write_lightly,
)
from steadyeye.predictions.json_record import CELL, MEND, read_content, read_record, write_record


@dataclass(frozen=True)
class Cell:
    """A cell's folder and its identity (the content of cell.json)."""

    folder: Place
    identity: Mapping[str, Any]

    @property
    def rows(self) -> int:
        """Samples in the source."""
        return int(self.identity["rows"])

    @property
    def shards(self) -> int:
        """The number of shards of the complete cell."""
        return -(-self.rows // int(self.identity["shard_rows"]))

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of cell.json, which identifies the cell."""
        return digest(encode(self.identity)).hexdigest()

    def span(self, shard: int) -> range:
        """The rows of a shard."""
        size = int(self.identity["shard_rows"])
        return range(shard * size, min((shard + 1) * size, self.rows))

    def path(self, shard: int) -> Place:
        """The file of a shard."""
        return self.folder / f"{shard:05d}.arrow"

    def mark(self, shard: int) -> Place:
        """The file with the size and the checksum of a shard."""
        return self.folder / f"{shard:05d}.seal"

    def list_finished(self) -> list[int]:
        """The shards with the length that was written; `mend` checks their bytes."""
        return sorted(_read_marks(self))

    @property
    def is_sealed(self) -> bool:
        """Whether every shard is written and listed in the seal."""
        return (self.folder / "seal.json").is_file()


def shard_rows(rows: int) -> int:
    """Rows per shard: small shards spread over workers and lose little, few are quick to list."""
    return min(max(rows // 64, 16), 512)


def begin(folder: Place, identity: Mapping[str, Any]) -> Cell:
    """The cell in `folder`, created or resumed.

    A cell whose cell.json is lost or damaged is resumed if every shard belongs to the same cell.
    A resumed cell keeps the notes with which it was created.

    Raises `UsageError` if the folder holds predictions of another cell.
    """
    path = folder / "cell.json"
    before = read_content(path) if path.is_file() else None
    if before is not None:
        stored = drop_notes(before)
        for key, value in json.loads(json.dumps(drop_notes(identity))).items():
            if key == "content" and stored.get(key) != value:
                raise UsageError(
                    f"'{folder}' holds predictions of images that may have changed (their "
                    "record is lost, or an earlier version kept none); choose another --out"
                )
            if stored.get(key) != value:
                title = key.replace("_", " ")
                difference = describe_difference(title, stored.get(key), value)
                raise UsageError(
                    f"'{folder}' holds predictions with another {title}: {difference}; "
                    "choose another --out"
                )
        return Cell(folder, before)
    folder.mkdir(parents=True, exist_ok=True)
    _check_same(Cell(folder, identity))
    write_record(path, identity)
    return Cell(folder, identity)


def open_cell(folder: Place) -> Cell:
    """The cell in `folder`, without any check of its identity.

    Raises `UsageError` if cell.json is missing or damaged.
    """
    if not (folder / "cell.json").is_file():
        raise UsageError(f"there are no predictions in '{folder}'; {MEND}")
    return Cell(folder, read_record(folder / "cell.json", CELL, ("rows", "shard_rows")))


def write_table(cell: Cell, shard: int, table: pa.Table) -> None:
    """Writes the Arrow table of a shard atomically: even after a crash it is complete or absent."""
    write_content(cell, shard, encode_table(table))


def encode_table(table: pa.Table) -> bytes:
    """The file of a shard: the same bytes for the same table."""
    sink = BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def write_content(cell: Cell, shard: int, content: bytes) -> None:
    """Writes the file of a shard, as `write_table` does."""
    of = {"bytes": len(content), "sha256": digest(content).hexdigest(), "cell": cell.fingerprint}
    mark = encode(of)
    if isinstance(cell.folder, Path):
        # the synced shard is written last; losing a mark in a power failure costs only its shard
        write_lightly(cell.mark(shard), mark)
        write_file(cell.path(shard), content)
    else:
        write_file(cell.path(shard), content)
        write_file(cell.mark(shard), mark)


def mend(cell: Cell) -> list[str]:
    """Deletes files that were changed after they were written; returns their names.

    Reads every existing shard. Call it before work continues in a cell.
    """
    written, files = _read_marks(cell), _files(cell)

    def is_altered(shard: int) -> bool:
        return bool(sha256(cell.path(shard)) != written[shard].get("sha256"))

    numbers = sorted(written)
    judged = map_requests(cell.folder, is_altered, numbers)
    bad = [shard for shard, wrong in zip(numbers, judged, strict=True) if wrong]
    # one that is too short, or without a record of its length
    bad += [n for n in range(cell.shards) if cell.path(n).name in files and n not in written]
    if cell.is_sealed:
        # if all were written, a missing one was deleted
        bad += [n for n in range(cell.shards) if cell.path(n).name not in files]
        if bad or _read_seal(files) is None:
            (cell.folder / "seal.json").unlink()
    for shard in bad:
        cell.path(shard).unlink(missing_ok=True)
        cell.mark(shard).unlink(missing_ok=True)
    for name, file in files.items():
        # an unfinished file of a killed process
        if name.startswith(".") and name.endswith(".tmp"):
            file.unlink()
    return [cell.path(shard).name for shard in sorted(bad)]


def seal(cell: Cell) -> None:
    """Seals a cell with all its shards; a sealed cell stays unchanged."""
    if cell.is_sealed:
        return
    written = _read_marks(cell)
    lost = set(range(cell.shards)) - set(written)
    assert not lost, f"shards {sorted(lost)} are not written"
    shards = [
        {
            "file": cell.path(n).name,
            "bytes": written[n]["bytes"],
            "sha256": written[n]["sha256"],
        }
        for n in range(cell.shards)
    ]
    content = {"rows": cell.rows, "cell": cell.fingerprint, "shards": shards}
    write_record(cell.folder / "seal.json", content)


def _read_marks(cell: Cell) -> dict[int, Mapping[str, Any]]:
    """The size and the checksum of every existing shard with the length that was written."""
    files = _files(cell)
    marks = _read_seal(files) if "seal.json" in files else None
    if marks is None:
        known = [n for n in range(cell.shards) if cell.mark(n).name in files]
        contents = map_requests(cell.folder, _content, [files[cell.mark(n).name] for n in known])
        marks = dict(zip(known, contents, strict=True))
    written = {}
    for shard, mark in marks.items():
        file = files.get(cell.path(shard).name)
        if file and file.stat().st_size == mark.get("bytes"):
            written[shard] = mark
    return written


def _check_same(cell: Cell) -> None:
    """Raises `UsageError` unless all files in a cell's folder belong to the cell."""
    files = _files(cell)
    marks = [file for name, file in files.items() if name.endswith(".seal") or name == "seal.json"]
    fingerprints = {mark.get("cell") for mark in map_requests(cell.folder, _content, marks)}
    if fingerprints - {cell.fingerprint}:
        raise UsageError(
            f"'{cell.folder / 'cell.json'}' is lost or damaged, and the shards next to it do not "
            f"say that they belong to this model and data; delete '{cell.folder}' and run the "
            "same command again to recompute it"
        )


def _files(cell: Cell) -> dict[str, Place]:
    if isinstance(cell.folder, Path) and not cell.folder.is_dir():
        return {}
    return {file.name: file for file in walk_files(cell.folder)}


def _read_seal(files: Mapping[str, Place]) -> dict[int, Mapping[str, Any]] | None:
    """The entries of seal.json for each shard; None if it is damaged."""
    entries = _content(files["seal.json"]).get("shards")
    return None if entries is None else dict(enumerate(entries))


def _content(path: Place) -> Mapping[str, Any]:
    """A small JSON file; empty if a power failure or a disk fault left no valid JSON."""
    return read_content(path) or {}
