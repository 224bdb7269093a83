"""Files of a disk or a store: named as a user writes them, written whole, read with a checksum.

What is written is there afterwards, also after a crash, or not at all. A record is a small JSON
file that bears a checksum of what it says, so that no byte of it changes unseen::

    {"format": 2, …, "checksum": "SHA-256 of all the rest"}

One without either key is of an earlier version: it is read, and whoever reads it says so.
Hand-written, as the package for atomic writes, `atomicwrites`, is not maintained any more.
"""

import atexit
import errno
import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from glob import escape
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, BinaryIO, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.remote_path import Remote, filesystem

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

Place: TypeAlias = Path | Remote
"""A local file or folder, or an object of a store."""

AT_ONCE = 16  # requests to a store side by side
URL = re.compile(r"[a-z][a-z0-9+.-]+://")
SLIPPED = re.compile(r"(s3|gs|hf):")
Item = TypeVar("Item")
Result = TypeVar("Result")

ROOM, RIGHT = "make room", "make it writable"
CURES = {
    errno.ENOSPC: ROOM,
    getattr(errno, "EDQUOT", errno.ENOSPC): ROOM,
    errno.EACCES: RIGHT,
    errno.EPERM: RIGHT,
    errno.EROFS: RIGHT,
    errno.EISDIR: "move the folder of that name away",
    errno.EEXIST: "move the file of that name away",
    errno.ENOTDIR: "move the file of that name away",
}
TEMPORARY = re.compile(r"\.(.*\.)?([0-9]+|[0-9a-f]{16})\.tmp", re.DOTALL)
"""The name of a file that is being written."""
_temporaries: set[Path] = set()
_ending = threading.Event()
STEP = 0.05
"""Seconds in which a thread that has begun to open a file has opened it."""

FORMAT, CHECKSUM = "format", "checksum"
VERSION = 2
"""Of the layout; from this one on there is a checksum."""


def place(text: str | Place) -> Place:
    """The place a user wrote: `s3://`, `gs://` and `hf://` are stores, all else is a path.

    Raises `UsageError` for what is no text, for another scheme, and where the package that speaks
    it is missing.
    """
    if isinstance(text, Path | Remote):
        return text
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is no path; give a string or a pathlib.Path")
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{text!r} is not a name in UTF-8; rename it") from None
    if "\0" in text:
        raise UsageError(f"{text[:60]!r} has a zero byte, which no path has; correct it")
    if not URL.match(text):
        if SLIPPED.match(text):
            raise UsageError(f"'{text}' is neither a path nor a store; write s3://bucket/folder")
        return Path(text).expanduser()
    filesystem(text)
    return Remote(text.rstrip("/"))


def cache_home() -> Path:
    """Where what can be made again is kept: `$XDG_CACHE_HOME` or `~/.cache`, then `steadyeye`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steadyeye"


def walk_files(folder: Place) -> Iterator[Place]:
    """Every file below a folder, linked folders included."""
    if isinstance(folder, Remote):
        yield from folder.below()
        return
    # os.walk, as Path.rglob does not enter linked folders
    for inner, _, names in os.walk(folder, followlinks=True):
        yield from (Path(inner) / name for name in names)


def relative_path(file: Place, folder: Place) -> PurePath:
    """The part of a file's path below a folder that it lies in."""
    if isinstance(file, Path) and isinstance(folder, Path):
        return file.relative_to(folder)
    assert isinstance(file, Remote)
    assert isinstance(folder, Remote)
    return file.relative_to(folder)


def map_requests(
    where: Place, action: Callable[[Item], Result], items: Sequence[Item]
) -> Iterable[Result]:
    """The results of `action` on items, in order: one by one on a disk, side by side on a store."""
    if isinstance(where, Path):
        return map(action, items)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(action, items))


def find_missing(places: Iterable[Place]) -> list[Place]:
    """Those of the places that are no file; a store is asked once a folder, not once a file."""
    listings: dict[Remote, frozenset[str]] = {}

    def is_file(place: Place) -> bool:
        if isinstance(place, Path) or place.size is not None:
            with suppress(OSError):  # a name that no file can have
                return place.is_file()
            return False
        if place.parent not in listings:
            listings[place.parent] = frozenset(file.url for file in place.parent.below())
        return place.url in listings[place.parent]

    return [place for place in places if not is_file(place)]


def write_file(path: Place, content: bytes) -> None:
    """Writes a file atomically and durably.

    On a disk: temporary file, fsync, rename, fsync of the folder. On a store: one put, which is
    atomic. Raises `UsageError` where that cannot be.
    """
    if not isinstance(path, Path):
        path.write_bytes(content)
        return
    _replace(path, content, synced=True)
    if hasattr(os, "O_DIRECTORY"):
        sync_folder(path)


def sync_folder(path: Path) -> None:
    """Makes the rename of a file durable; Windows has no such call, and none is needed there."""
    with explain_failure(path):
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as error:
            # file systems of a network that know no such call
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(handle)


def write_lightly(path: Place, content: bytes) -> None:
    """Writes a file atomically, but after a power failure it may be lost or empty."""
    if isinstance(path, Path):
        _replace(path, content, synced=False)
    else:
        path.write_bytes(content)


def write_output(path: Place, content: bytes) -> None:
    """Writes a file that a command is there for as `write_file` does: in a folder that may be new.

    What a process that was killed at it has left is removed; of the folder of a run its command
    does that.
    """
    if isinstance(path, Path):
        make_folder(path.parent)
        _remove_leftovers(path)
    write_file(path, content)


def make_folder(path: Path) -> None:
    """Makes a folder, and those that it is to lie in. Raises `UsageError` where that cannot be."""
    with explain_failure(path):
        path.mkdir(parents=True, exist_ok=True)


def append_line(path: Place, line: str) -> None:
    """Adds a line to a text file; only its one writer may."""
    if isinstance(path, Path):
        with explain_failure(path), path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        return
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        before = b""
    path.write_bytes(before + f"{line}\n".encode())


def sha256(path: Place) -> str:
    """The SHA-256 of a file, hexadecimal."""
    if not isinstance(path, Path):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(path: Path, content: bytes, synced: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    _temporaries.add(temporary)
    if _ending.is_set():
        threading.Event().wait()  # for the end
    try:
        with explain_failure(path):
            with _open_locked(temporary) as file:
                file.write(content)
                file.flush()
                if synced:
                    os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        _temporaries.discard(temporary)


def _open_locked(temporary: Path) -> BinaryIO:
    """A new file, locked as long as it is open, where the file system has locks."""
    while True:
        file = temporary.open("wb")
        if not _lock(file, wait=True) or os.fstat(file.fileno()).st_nlink:
            return file
        # removed before it was locked
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Removes what processes that were killed while they wrote a file have left beside it.

    What is locked is being written now; without locks nothing is removed.
    """
    for left in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        with suppress(OSError), left.open("r+b") as file:
            if _lock(file, wait=False):
                left.unlink()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Whether a file is locked now by this process."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def explain_failure(path: Path) -> Iterator[None]:
    """A block that writes a file; a failure of the disk names it, and what to do."""
    try:
        yield
    except OSError as error:
        cure = CURES.get(error.errno or 0, "check the disk")
        raise UsageError(
            f"cannot write '{path}': {error.strerror}; what is finished is kept, "
            f"{cure} and run the same command again"
        ) from error


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of the system's own for temporary files, gone after the block."""
    with TemporaryDirectory(prefix="steadyeye-") as name:
        folder = Path(name)
        _temporaries.add(folder)
        try:
            yield folder
        finally:
            _temporaries.discard(folder)


def make_temporary_folder() -> Path:
    """A folder of the system's own for temporary files, gone when this program ends."""
    folder, maker = Path(mkdtemp(prefix="steadyeye-")), os.getpid()

    def remove() -> None:
        # a process that was forked from this one ends earlier
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def remove_temporaries() -> None:
    """Removes what this process is writing just now, as it ends at once; other threads stop."""
    _ending.set()
    for _ in range(2):
        for path in list(_temporaries):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        time.sleep(STEP)


def clear_folder(folder: Place, process: int | str = "") -> None:
    """Removes what processes that were killed were writing below a folder; others' files stay.

    `process`: the number of the one that was; without it only who holds the folder may ask.
    """
    if isinstance(folder, Path):
        pattern = f".*.{process}.*.tmp" if process else ".*.tmp"
        for left in folder.rglob(pattern):
            if TEMPORARY.fullmatch(left.name):
                left.unlink(missing_ok=True)


@dataclass(frozen=True)
class Record:
    """A file's content. `protected`: whether a checksum confirms that it is what was written."""

    content: dict[str, Any]
    protected: bool


def encode(content: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """JSON with a final newline, the same bytes for the same content."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def encode_record(content: Mapping[str, Any]) -> bytes:
    """The file of a record: its content with the checksum of it."""
    whole = {FORMAT: VERSION, **content}
    return encode({**whole, CHECKSUM: checksum(whole)})


def checksum(content: Mapping[str, Any]) -> str:
    """The SHA-256 of a record's content, its checksum aside; spaces do not count."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    return hashlib.sha256(encode(rest)).hexdigest()


def read_checked(path: Place) -> Record | None:
    """The record in a file; None where it is no JSON object or not what was written.

    Raises `FileNotFoundError`.
    """
    try:
        content = path.read_bytes()
        record = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if CHECKSUM not in record and FORMAT not in record:
        return Record(record, protected=False)
    if not _is_intact(content):
        return None
    rest = {key: value for key, value in record.items() if key not in (FORMAT, CHECKSUM)}
    return Record(rest, protected=True)


@lru_cache(maxsize=16)
def _is_intact(content: bytes) -> bool:
    """Whether the checksum in a file is that of the rest.

    A report reads the same few records several times, and encoding one anew takes milliseconds.
    """
    record = json.loads(content)
    try:
        return bool(record.get(CHECKSUM) == checksum(record))
    except UnicodeEncodeError:
        return False  # half of a surrogate pair, which nothing of ours writes
