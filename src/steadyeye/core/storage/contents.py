"""The contents of files when they were read, stored beside the values computed from them.

A file is compared by its metadata (`read_stamp`), and read again only if these have changed or were
too recent to be reliable. The content of an object of a store is its version.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path

import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import BlockFingerprint
from steadyeye.core.storage.arrow_files import is_compressed
from steadyeye.core.storage.files import Place, place, write_file
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.storage.text_columns import Texts, encode_texts

SETTLED = 2.0
"""Seconds after a change of a file in which another change could have the same times."""

GONE = ""
"""The content of a missing file."""

DIGEST = 64  # hexadecimal digits at the start, of the digest of the rest

Known = Callable[[Sequence[str]], Mapping[str, str]]
"""Stamps → the known contents of files with these stamps."""


@dataclass(frozen=True, eq=False)
class ContentHashes:
    """The files from which a source reads its images, n of them, in the source's order.

    `paths`: absolute, or URLs; for a source without files the ids of its samples. `stamps`: the
    metadata of each, '' if they are not reliable. `names`: the content of each, a digest or a
    version, `GONE` if it was missing. `kind`: `files`, `objects` of a store, or `samples`, which
    only their source can read again.
    """

    kind: str
    paths: Sequence[str]
    stamps: Sequence[str]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def mark(self) -> str:
        """Changes with the content of any file, wherever the files are."""
        digest = BlockFingerprint()
        for name in self.names:
            digest.begin(len(name.encode()))
            digest.add(name.encode())
        return f"{self.kind} {digest}"


@dataclass(frozen=True)
class Change:
    """The changes of files: paths of changed, missing and new ones."""

    altered: Sequence[str] = ()
    gone: Sequence[str] = ()
    new: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.altered or self.gone or self.new)


def read_stamp(path: Path) -> str:
    """The metadata of a file, which change whenever its content does.

    Device, inode, size, and the times of the last change of content and of metadata, as Git
    compares them: the second time cannot be set back. '' for a missing file and for one changed
    within the last `SETTLED` seconds: then only the content is reliable.
    """
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if time.time() - max(status.st_mtime, status.st_ctime) < SETTLED:
        return ""
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{status.st_dev} {status.st_ino} {status.st_size} {times}"


def hash_file(path: Path) -> str:
    """The digest of a file's bytes; `GONE` if it is missing."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
    except OSError:
        return GONE
    return f"file {digest.hexdigest()}"


def hash_files(
    files: Sequence[Place], before: ContentHashes | None = None, known: Known = lambda _: {}
) -> ContentHashes:
    """The contents of files now; those unchanged since `before`, or `known`, are not read."""
    if any(isinstance(file, Remote) for file in files):
        return _list_versions([file for file in files if isinstance(file, Remote)])
    paths = [Path(os.path.abspath(file)) for file in files if isinstance(file, Path)]
    # read before the content: the next comparison then notices a change in between
    stamps = [read_stamp(path) for path in paths]
    digests = dict(zip(before.stamps, before.names, strict=True)) if before else {}
    new = [mark for mark in stamps if mark and mark not in digests]
    digests |= known(new)
    digests.pop("", None)  # without reliable metadata only the content counts
    names = [digests.get(mark) or hash_file(path) for mark, path in zip(stamps, paths, strict=True)]
    return ContentHashes("files", [str(path) for path in paths], stamps, names)


def hash_again(before: ContentHashes) -> ContentHashes:
    """The contents of the files of `before` now. Raises `UsageError` if a store has no versions."""
    return hash_files([place(path) for path in before.paths], before)


def compare_contents(before: ContentHashes, now: ContentHashes) -> Change:
    """The difference between two readings of files, by their paths."""
    if are_equal(before.paths, now.paths):
        # the usual case; a mapping by path would hold each path twice
        names = zip(now.paths, before.names, now.names, strict=True)
        changed = [(path, new) for path, old, new in names if old != new or new == GONE]
        return Change(
            altered=list(dict.fromkeys(path for path, new in changed if new != GONE)),
            gone=list(dict.fromkeys(path for path, new in changed if new == GONE)),
        )
    old = dict(zip(before.paths, before.names, strict=True))
    new = dict(zip(now.paths, now.names, strict=True))
    differ = [path for path in old if path in new and new[path] != old[path]]
    return Change(
        altered=[path for path in differ if new[path] != GONE],
        gone=[path for path in old if new.get(path, GONE) == GONE],
        new=[path for path in new if path not in old],
    )


def are_equal(texts: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two columns of texts are equal."""
    return len(texts) == len(others) and all(map(eq, texts, others))


def describe_change(change: Change, total: int, kind: str = "files") -> str:
    """A change in words: the number of files, and the first of each kind."""
    parts = (("differ", change.altered), ("are gone", change.gone), ("are new", change.new))
    counts = [f"{len(paths):,} {verb}, first '{paths[0]}'" for verb, paths in parts if paths]
    return f"of {total:,} {kind} {'; '.join(counts)}"


def write_contents(path: Place, contents: ContentHashes) -> None:
    """Writes the contents of files, with a digest of the record itself."""
    columns = {key: encode_texts(getattr(contents, key)).column for key in COLUMNS}
    table = pa.table(columns).replace_schema_metadata({"kind": contents.kind})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = memoryview(sink.getvalue())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, b"".join((hashlib.sha256(body).hexdigest().encode(), body)))


def read_contents(path: Place) -> ContentHashes | None:
    """The stored contents; None if there are none, or they are damaged."""
    try:
        content = path.read_bytes()
    except (OSError, UsageError):
        return None
    body = memoryview(content)[DIGEST:]
    if content[:DIGEST] != hashlib.sha256(body).hexdigest().encode():
        return None
    buffer = pa.py_buffer(body)
    if is_compressed(buffer):
        return None
    table = pa.ipc.open_stream(buffer).read_all()
    kind = (table.schema.metadata or {})[b"kind"].decode()
    columns = (table[key].combine_chunks() for key in COLUMNS)
    return ContentHashes(kind, *map(Texts, columns))


COLUMNS = ("paths", "stamps", "names")


def _list_versions(files: Sequence[Remote]) -> ContentHashes:
    """The versions of objects, with one listing per folder."""
    versions: dict[str, str] = {}
    for file in files:
        if file.url not in versions:
            # a file that is not in the listing is missing
            versions |= {file.url: GONE, **file.parent.versions()}
    names = [versions.get(file.url, GONE) for file in files]
    return ContentHashes("objects", [file.url for file in files], [""] * len(files), names)
