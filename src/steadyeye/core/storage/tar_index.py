"""Tar files by their headers: the start and the length of each file in them.

`tarfile` reads the headers; our addition is one pass over all files with constant memory.
"""

import hashlib
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place, cache_home, place, write_lightly
from steadyeye.core.storage.remote_path import Remote

VARIABLE = "STEADYEYE_INDEX"
END = 512  # the least number of zero bytes that end a tar
BESIDE = frozenset({"cls", "json"})
CHECK = 16
"""Bytes of the checksum at the start of an index."""
LONGEST = 1 << 24
"""Bytes of the longest `.cls` or `.json`: they are read whole."""


@dataclass(frozen=True, slots=True)
class TarEntry:
    """A file in a tar: its name, the start of its bytes, and their number.

    `text`: the content of `.cls` and `.json`, which are read with the headers.
    """

    name: str
    start: int
    size: int
    text: str = ""


def list_entries(tar: Place) -> Iterator[TarEntry]:
    """The files of a tar in their order, from one pass over its headers.

    Raises `UsageError` for a file that is missing, compressed, no tar, or cut short, and for links.
    """
    count = 0
    with tar.open("rb") as file:
        try:
            with tarfile.open(fileobj=cast("IO[bytes]", _Headers(file)), mode="r:") as archive:
                while (member := archive.next()) is not None:
                    # tarfile would keep the header of every file until the end
                    archive.members.clear()  # type: ignore[attr-defined]
                    if not member.isdir():
                        count += 1
                        yield _read_header(tar, archive, member)
                end = archive.offset
        except UsageError:
            raise
        except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
            reason = " ".join(str(error).split())
            hint = "copy it again, or unpack a compressed one to .tar first"
            raise UsageError(
                f"the tar '{tar}' is cut short or no tar ({reason}); {hint}"
            ) from error
        # tarfile accepts the end of the data as the end of the tar: its closing zeros must exist
        file.seek(end)
        closing = file.read(END)
    if len(closing) < END or any(closing):
        raise UsageError(
            f"the tar '{tar}' is cut short after {number_of(count, 'file')}: its end is not there; "
            "copy it again"
        )


def read_entry(tar: Place, start: int, size: int) -> bytes:
    """The bytes of a file in a tar. Raises `OSError` or `StorageError`."""
    if isinstance(tar, Remote):
        return tar.read_range(start, start + size)
    with tar.open("rb") as file:
        file.seek(start)
        return file.read(size)


def read_version(tar: Place) -> str:
    """A text that changes when a tar does: size and time of change, of an object its ETag.

    Raises `UsageError` if it is missing.
    """
    try:
        if isinstance(tar, Remote):
            return tar.version()
        state = tar.stat()
    except FileNotFoundError:
        raise UsageError(f"no tar file at '{tar}'; check the path") from None
    except OSError as error:
        raise UsageError(f"cannot read the tar '{tar}': {error.strerror}") from error
    return f"{state.st_size} {state.st_mtime_ns}"


def read_index(tar: Place) -> bytes | None:
    """The index of a tar; None if there is none, or it is damaged."""
    path = _cache_path(tar)
    try:
        content = path.read_bytes()
    except (OSError, UsageError):
        return None
    check, index = content[:CHECK], content[CHECK:]
    return index if check == _digest(index) else None


def write_index(tar: Place, content: bytes) -> None:
    """Writes the index of a tar to a cache, under its address, and replaces an earlier one.

    The folder is `$STEADYEYE_INDEX`, which may be on a store that the nodes of a cluster share;
    otherwise `$XDG_CACHE_HOME/steadyeye/tar` or `~/.cache/steadyeye/tar`.
    """
    path = _cache_path(tar)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lightly(path, _digest(content) + content)
    except (OSError, UsageError):
        # without a writable cache the next start is slower, nothing else
        return


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:CHECK]


def _cache_path(tar: Place) -> Place:
    setting = os.environ.get(VARIABLE, "")
    folder = place(setting) if setting else cache_home() / "tar"
    return folder / f"{hashlib.sha256(str(tar.resolve()).encode()).hexdigest()[:32]}.arrow"


class _Headers:
    """A tar for `tarfile`, which accepts any size; sizes too large for a header are refused.

    The data are skipped.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """Reads as a file does. Raises `tarfile.ReadError` for a length that no header has."""
        if not 0 <= size <= LONGEST:
            raise tarfile.ReadError(f"a header says that it has {size} bytes")
        return self._file.read(size)


def _read_header(tar: Place, archive: tarfile.TarFile, member: tarfile.TarInfo) -> TarEntry:
    if member.size < 0:
        raise UsageError(
            f"the tar '{tar}' says that '{member.name}' has {member.size} bytes; copy it again"
        )
    if not member.isreg():
        raise UsageError(
            f"the tar '{tar}' holds '{member.name}', a link or a device; pack the file itself"
        )
    if member.issparse():
        raise UsageError(f"the tar '{tar}' holds '{member.name}' with holes; pack it without -S")
    is_text = member.name.rpartition(".")[2] in BESIDE
    if is_text and member.size > LONGEST:
        raise UsageError(
            f"the tar '{tar}' holds '{member.name}' of {member.size:,} bytes, and the labels of "
            f"one image have at most {LONGEST:,}; pack only what belongs to the image"
        )
    file = archive.extractfile(member) if is_text else None
    text = file.read().decode("utf-8", "replace") if file else ""
    return TarEntry(member.name.removeprefix("./"), member.offset_data, member.size, text)
