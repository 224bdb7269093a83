"""Files on a disk or in a store: named by users, written atomically, read with a checksum.

A file is complete or absent, also after a crash. A record is a small JSON file with a checksum of
its content, so that a change of any byte is noticed::

    {"format": 2, …, "checksum": "SHA-256 of all the rest"}

A record without either key is of an earlier version: it is read, and the reader reports it.
Hand-written, because the package for atomic writes, `atomicwrites`, is no longer maintained.
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

AT_ONCE = 16  # simultaneous requests to a store
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
"""Seconds in which a thread that started to open a file has opened it."""

FORMAT, CHECKSUM = "format", "checksum"
VERSION = 2
"""Version of the layout; from this one on there is a checksum."""


def place(text: str | Place) -> Place:
    """The place that a user named: `s3://`, `gs://` and `hf://` are stores, others are paths.

    Raises `UsageError` for a value that is no text, for another scheme, and if the package for it
    is missing.
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
    """The folder of caches: `steadyeye` in `$XDG_CACHE_HOME` or `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steadyeye"


def walk_files(folder: Place) -> Iterator[Place]:
    """Every file below a folder, including linked folders."""
    if isinstance(folder, Remote):
        yield from folder.below()
        return
    # os.walk, because Path.rglob does not enter linked folders
    for inner, _, names in os.walk(folder, followlinks=True):
        yield from (Path(inner) / name for name in names)


def relative_path(file: Place, folder: Place) -> PurePath:
    """The path of a file relative to a folder that contains it."""
    if isinstance(file, Path) and isinstance(folder, Path):
        return file.relative_to(folder)
    assert isinstance(file, Remote)
    assert isinstance(folder, Remote)
    return file.relative_to(folder)


def map_requests(
    where: Place, action: Callable[[Item], Result], items: Sequence[Item]
) -> Iterable[Result]:
    """The results of `action` on items, in order: one by one on a disk, in parallel on a store."""
    if isinstance(where, Path):
        return map(action, items)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(action, items))


def find_missing(places: Iterable[Place]) -> list[str]:
    """The places that are no files, as texts; a store is asked once per folder, not per file."""
    listings: dict[Remote, frozenset[str]] = {}

    def is_file(place: Place) -> bool:
        if isinstance(place, Path) or place.size is not None:
            with suppress(OSError):  # a name that no file can have
                return place.is_file()
            return False
        if place.parent not in listings:
            listings[place.parent] = frozenset(file.url for file in place.parent.below())
        return place.url in listings[place.parent]

    return [str(place) for place in places if not is_file(place)]


def write_file(path: Place, content: bytes) -> None:
    """Writes a file atomically and durably.

    On a disk: temporary file, fsync, rename, fsync of the folder. On a store: one put, which is
    atomic. Raises `UsageError` if it fails.
    """
    if not isinstance(path, Path):
        path.write_bytes(content)
        return
    _replace(path, content, synced=True)
    if hasattr(os, "O_DIRECTORY"):
        sync_folder(path)


def sync_folder(path: Path) -> None:
    """Makes the rename of a file durable; Windows neither has nor needs such a call."""
    with explain_failure(path):
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as error:
            # network file systems without such a call
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
    """Writes an output file of a command as `write_file` does, and its folder if it is new.

    Removes leftovers of a killed process; in the folder of a run the command of the run does.
    """
    if isinstance(path, Path):
        make_folder(path.parent)
        _remove_leftovers(path)
    write_file(path, content)


def make_folder(path: Path) -> None:
    """Makes a folder and its parents. Raises `UsageError` if it fails."""
    with explain_failure(path):
        path.mkdir(parents=True, exist_ok=True)


def append_line(path: Place, line: str) -> None:
    """Appends a line to a text file that has a single writer."""
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
        threading.Event().wait()  # until the process ends
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
    """A new file, locked while it is open, if the file system has locks."""
    while True:
        file = temporary.open("wb")
        if not _lock(file, wait=True) or os.fstat(file.fileno()).st_nlink:
            return file
        # removed before the lock
        file.close()


def _remove_leftovers(path: Path) -> None:
    """Removes leftovers of processes that were killed while they wrote a file.

    A locked file is being written; without locks nothing is removed.
    """
    for left in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        with suppress(OSError), left.open("r+b") as file:
            if _lock(file, wait=False):
                left.unlink()


def _lock(file: BinaryIO, wait: bool) -> bool:
    """Whether this process now has the lock on a file."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def explain_failure(path: Path) -> Iterator[None]:
    """A block that writes a file; an error of the disk names the file, and what to do."""
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
    """A temporary folder of the system, removed after the block."""
    with TemporaryDirectory(prefix="steadyeye-") as name:
        folder = Path(name)
        _temporaries.add(folder)
        try:
            yield folder
        finally:
            _temporaries.discard(folder)


def make_temporary_folder() -> Path:
    """A temporary folder of the system, removed when this program ends."""
    folder, maker = Path(mkdtemp(prefix="steadyeye-")), os.getpid()

    def remove() -> None:
        # a forked process ends earlier
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def remove_temporaries() -> None:
    """Removes unfinished files of this process before it ends at once; other threads stop."""
    _ending.set()
    for _ in range(2):
        for path in list(_temporaries):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        time.sleep(STEP)


def clear_folder(folder: Place, process: int | str = "") -> None:
    """Removes unfinished files of killed processes below a folder; those of others stay.

    `process`: the number of the killed one; without it only the holder of the folder may call this.
    """
    if isinstance(folder, Path):
        pattern = f".*.{process}.*.tmp" if process else ".*.tmp"
        for left in folder.rglob(pattern):
            if TEMPORARY.fullmatch(left.name):
                left.unlink(missing_ok=True)


@dataclass(frozen=True)
class Record:
    """The content of a file. `protected`: whether a checksum confirms it."""

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
    """The SHA-256 of a record's content without its checksum; white space does not count."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    return hashlib.sha256(encode(rest)).hexdigest()


def read_checked(path: Place) -> Record | None:
    """The record in a file; None if it is no JSON object or was changed after it was written.

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
    """Whether the checksum in a file matches the rest.

    A report reads the same few records several times, and each encoding takes milliseconds.
    """
    record = json.loads(content)
    try:
        return bool(record.get(CHECKSUM) == checksum(record))
    except UnicodeEncodeError:
        return False  # half of a surrogate pair, which we never write
