"""What files held when they were read, kept beside what was computed from them.

A file is looked at again by what the disk says of it (`stamp`), and read again only where that is
another, or where it was too young to tell. Of an object of a store its version is what it holds.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place, place, write_file
from steadyeye.core.storage.remote_path import Remote

SETTLED = 2.0
"""Seconds after a change of a file in which another could bear the same times."""

GONE = ""
"""What a file holds that is not there."""

DIGEST = 64  # hexadecimal digits before the table, of all that follows them

Known = Callable[[Sequence[str]], Mapping[str, str]]
"""Stamps → what files with these stamps are known to hold."""


@dataclass(frozen=True)
class ContentHashes:
    """The files that a source reads its images from, n of them, in the source's order.

    `paths`: absolute, or URLs; of a source that reads no files the ids of its samples. `stamps`:
    what the disk said of each, '' where that does not tell. `names`: what each held, as a digest
    or a version, `GONE` where it was not there. `kind`: `files`, `objects` of a store, or
    `samples`, which only their source can look at again.
    """

    kind: str
    paths: Sequence[str]
    stamps: Sequence[str]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def mark(self) -> str:
        """Changes with what any of the files holds, wherever they lie."""
        return f"{self.kind} {fingerprint(*self.names)}"


@dataclass(frozen=True)
class Change:
    """How files differ from what they held: paths of those that do, that are gone, or are new."""

    altered: Sequence[str] = ()
    gone: Sequence[str] = ()
    new: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.altered or self.gone or self.new)


def stamp(path: Path) -> str:
    """What the disk says of a file, which changes whenever its content does.

    Device, inode, size and the times of its last change, of content and of anything, as Git
    compares them: whoever puts back the first cannot put back the second. '' for a file that is
    not there and for one changed within the last `SETTLED` seconds: there only the content tells.
    """
    try:
        found = os.stat(path)
    except OSError:
        return ""
    if time.time() - max(found.st_mtime, found.st_ctime) < SETTLED:
        return ""
    times = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return f"{found.st_dev} {found.st_ino} {found.st_size} {times}"


def name(path: Path) -> str:
    """What a file holds, as a digest of its bytes; `GONE` where it is not there."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32))
    except OSError:
        return GONE
    return f"file {found.hexdigest()}"


def of_files(
    files: Sequence[Place], before: ContentHashes | None = None, known: Known = lambda _: {}
) -> ContentHashes:
    """What files hold now; those that are as they were `before`, or are `known`, are not read."""
    if any(isinstance(each, Remote) for each in files):
        return _of_objects([each for each in files if isinstance(each, Remote)])
    paths = [Path(os.path.abspath(each)) for each in files if isinstance(each, Path)]
    # asked before the content is read: a change in between is then seen the next time
    stamps = [stamp(path) for path in paths]
    held = dict(zip(before.stamps, before.names, strict=True)) if before else {}
    held.pop("", None)
    new = [each for each in stamps if each and each not in held]
    held = {**held, **{each: said for each, said in known(new).items() if each}}
    names = [held.get(each) or name(path) for each, path in zip(stamps, paths, strict=True)]
    return ContentHashes("files", [str(path) for path in paths], stamps, names)


def again(before: ContentHashes) -> ContentHashes:
    """What the files of `before` hold now. Raises `UsageError` where their store cannot tell."""
    return of_files([place(path) for path in before.paths], before)


def change(before: ContentHashes, now: ContentHashes) -> Change:
    """How files differ from what they held, by their paths."""
    held = dict(zip(before.paths, before.names, strict=True))
    there = dict(zip(now.paths, now.names, strict=True))
    both = [path for path in held if path in there and there[path] != held[path]]
    return Change(
        altered=[path for path in both if there[path] != GONE],
        gone=[path for path in held if there.get(path, GONE) == GONE],
        new=[path for path in there if path not in held],
    )


def sentence(found: Change, of: int, what: str = "files") -> str:
    """A change in words: of how many, and the first of each kind."""
    parts = (("differ", found.altered), ("are gone", found.gone), ("are new", found.new))
    told = [f"{len(each):,} {verb}, first '{each[0]}'" for verb, each in parts if each]
    return f"of {of:,} {what} {'; '.join(told)}"


def write(path: Place, contents: ContentHashes) -> None:
    """Keeps what files held, with a digest of it."""
    columns = {key: pa.array(getattr(contents, key), pa.string()) for key in COLUMNS}
    table = pa.table(columns).replace_schema_metadata({"kind": contents.kind})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, hashlib.sha256(body).hexdigest().encode() + body)


def read(path: Place) -> ContentHashes | None:
    """What was kept; None where nothing was, or it is not what was written."""
    try:
        content = path.read_bytes()
    except (OSError, UsageError):
        return None
    body = content[DIGEST:]
    if content[:DIGEST] != hashlib.sha256(body).hexdigest().encode():
        return None
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
    kind = (table.schema.metadata or {})[b"kind"].decode()
    return ContentHashes(kind, *(table[key].to_pylist() for key in COLUMNS))


COLUMNS = ("paths", "stamps", "names")


def _of_objects(files: Sequence[Remote]) -> ContentHashes:
    """The versions of objects, by one listing a folder."""
    versions: dict[str, str] = {}
    for each in files:
        if each.url not in versions:
            # what the listing lacks is not there
            versions |= {each.url: GONE, **each.parent.versions()}
    names = [versions.get(each.url, GONE) for each in files]
    return ContentHashes("objects", [each.url for each in files], [""] * len(files), names)
