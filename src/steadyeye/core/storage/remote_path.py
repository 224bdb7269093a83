"""Objects by URL with the part of `pathlib.Path` that the rest of the package uses.

Hand-written over fsspec, because `universal-pathlib` (0.3) neither retries nor creates in one
request, looks an object up before it reads it, and lists without sizes: it would replace only the
parts of names.
"""

import importlib
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from steadyeye.core.errors import unknown
from steadyeye.core.plugins import not_installed
from steadyeye.core.storage.hub import check_hub
from steadyeye.core.storage.retry import StorageError, no_bucket, retry_request

BUFFER = 1 << 20  # bytes per request when a file is read in pieces
Result = TypeVar("Result")

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "hf": "huggingface_hub"}
"""Scheme → the package for it."""

OPTIONS: dict[str, dict[str, Any]] = {
    # only our layer of retries; and an object is read in one request, without a lookup
    "s3": {"config_kwargs": {"retries": {"total_max_attempts": 1}}, "max_concurrency": 1},
}


def filesystem(url: str) -> Any:
    """The fsspec file system of a URL; credentials and endpoint come from the environment.

    Raises `UsageError` for an unknown scheme and for a missing package.
    """
    scheme = url.partition("://")[0]
    if scheme not in PACKAGES:
        raise unknown("kind of storage", scheme, (*PACKAGES, "file"))
    # an fsspec connection does not survive a fork
    return _connect(scheme, os.getpid())


@cache
def _connect(scheme: str, process: int) -> Any:
    try:
        importlib.import_module(PACKAGES[scheme])
        import fsspec
    except ModuleNotFoundError as error:
        raise not_installed(f"{scheme}://", error) from error
    options = OPTIONS.get(scheme, {})
    store = fsspec.filesystem(scheme, use_listings_cache=False, **options)
    store.retries = 1
    return store


class Stat(NamedTuple):
    """The status of an object; `st_size`: bytes."""

    st_size: int


@dataclass(frozen=True)
class Remote:
    """An object of a store, or a folder: the prefix of objects' names.

    `url`: without a final slash. `size`: bytes, if known from a listing; no request is then needed
    to know that the object exists.
    """

    url: str
    size: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: object) -> "Remote":
        return Remote(f"{self.url}/{str(name).strip('/')}") if str(name) != "." else self

    def __lt__(self, other: "Remote") -> bool:
        # by parts, as paths: the same order for local and remote files
        return self.url.split("/") < other.url.split("/")

    @property
    def _path(self) -> PurePosixPath:
        return PurePosixPath(self.url.partition("://")[2])

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self._path.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._path.stem

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot."""
        return self._path.suffix

    @property
    def parts(self) -> tuple[str, ...]:
        """Bucket and names."""
        return self._path.parts

    @property
    def parent(self) -> "Remote":
        """Its folder."""
        return Remote(self.url.rpartition("/")[0]) if len(self.parts) > 1 else self

    def with_name(self, name: str) -> "Remote":
        """The sibling with that name."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> "Remote":
        """The sibling with another suffix."""
        return self.with_name(f"{self.stem}{suffix}")

    def relative_to(self, root: "Remote") -> PurePosixPath:
        """The rest of the URL below `root`."""
        return self._path.relative_to(root._path)

    def as_posix(self) -> str:
        """The URL."""
        return self.url

    def resolve(self) -> "Remote":
        """Itself: a URL is absolute."""
        return self

    def expanduser(self) -> "Remote":
        """Itself."""
        return self

    def exists(self) -> bool:
        """Whether the object exists, or any below it."""
        return self.size is not None or self._kind() != ""

    def is_file(self) -> bool:
        """Whether the object exists."""
        return self.size is not None or self._kind() == "file"

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        return self.size is None and self._kind() == "directory"

    def stat(self) -> Stat:
        """Its size. Raises `FileNotFoundError`."""
        if self.size is not None:
            return Stat(self.size)
        return Stat(int(self._ask("look up", lambda store: store.info(self.url))["size"]))

    def version(self) -> str:
        """A text that changes when the object does: its ETag or its time of change."""
        return _version(self._ask("look up", lambda store: store.info(self.url)))

    def versions(self) -> dict[str, str]:
        """The version of every object below it, by URL, in one listing."""
        return {url: _version(info) for url, info in self._list_objects()}

    def below(self) -> Iterator["Remote"]:
        """Every object below it, with its size, in one listing."""
        for url, info in self._list_objects():
            # an empty object with a final slash represents the folder itself
            if not url.endswith("/"):
                yield Remote(url, int(info["size"]))

    def _list_objects(self) -> Iterator[tuple[str, Any]]:
        """(URL, entry) of every object below it."""
        listing = self._in_bucket("list", lambda store: store.find(self.url, detail=True))
        scheme = self.url.partition("://")[0]
        for name, info in listing.items():
            if info["type"] == "file":
                yield f"{scheme}://{name}", info

    def iterdir(self) -> Iterator["Remote"]:
        """The objects and folders directly in it."""
        names: dict[str, Remote] = {}
        for file in self.below():
            inner = file.relative_to(self).parts
            names.setdefault(inner[0], file if len(inner) == 1 else self / inner[0])
        yield from names.values()

    def read_bytes(self) -> bytes:
        """All bytes. Raises `FileNotFoundError` if it is missing."""
        return bytes(self._ask("read", lambda store: store.cat_file(self.url)))

    def read_text(self, encoding: str = "utf-8") -> str:
        """The whole content as text."""
        return self.read_bytes().decode(encoding)

    def read_range(self, start: int, end: int) -> bytes:
        """The bytes from `start` to before `end`."""
        if end <= start:
            return b""
        content = self._ask("read", lambda store: store.cat_file(self.url, start=start, end=end))
        return bytes(content)

    def open(
        self, mode: str = "r", *, encoding: str | None = None, newline: str | None = None
    ) -> Any:
        """A file to read from in pieces, with 1 MiB of memory."""
        if mode not in {"r", "rb"}:
            raise StorageError(f"'{self}' can be read or written whole, not opened as '{mode}'")
        file = io.BufferedReader(_Pieces(self), BUFFER)
        return (
            file if mode == "rb" else io.TextIOWrapper(file, encoding or "utf-8", newline=newline)
        )

    def write_bytes(self, content: bytes) -> None:
        """Puts the whole object; it exists completely or not at all."""
        self._writable()
        self._in_bucket("write", lambda store: store.pipe_file(self.url, content))

    def create(self, content: bytes) -> bool:
        """Puts the object unless it exists; returns whether it was put."""
        self._writable()
        try:
            self._in_bucket(
                "write", lambda store: store.pipe_file(self.url, content, mode="create")
            )
        except FileExistsError:
            # true also if our own first try succeeded and only its answer was lost
            return self.read_bytes() == content
        return True

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the object."""
        self._writable()
        try:
            self._ask("remove", lambda store: store.rm_file(self.url))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: folders of a store are prefixes of its objects' names."""

    def _kind(self) -> str:
        try:
            return str(self._ask("look up", lambda store: store.info(self.url))["type"])
        except FileNotFoundError:
            return ""

    def _writable(self) -> None:
        if self.url.startswith("hf://"):
            raise StorageError(f"'{self}' is read only here; write to s3:// or gs://, then upload")

    def _ask(self, verb: str, action: Callable[[Any], Result]) -> Result:
        store = filesystem(self.url)
        if self.url.startswith("hf://"):
            check_hub(store.endpoint)
        return retry_request(lambda: action(store), f"{verb} '{self.url}'")

    def _in_bucket(self, verb: str, action: Callable[[Any], Result]) -> Result:
        """As `_ask`, but only a missing bucket counts as missing."""
        try:
            return self._ask(verb, action)
        except FileNotFoundError as error:
            if not self.url.startswith("gs://"):
                raise
            raise no_bucket(f"{verb} '{self.url}'") from error


class _Pieces(io.RawIOBase):
    """An object read by ranges, with retries for each."""

    def __init__(self, remote: Remote) -> None:
        self.remote, self.length, self.at = remote, remote.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.length}[whence]
        self.at = start + offset
        return self.at

    def readinto(self, buffer: Any) -> int:
        data = self.remote.read_range(self.at, min(self.at + len(buffer), self.length))
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def _version(info: Any) -> str:
    """The size of an object and its ETag or time of change, from the store's entry."""
    marks = (info.get(key) for key in ("ETag", "etag", "LastModified", "mtime", "blob_id"))
    return f"{info['size']} {next((str(mark) for mark in marks if mark), '')}"
