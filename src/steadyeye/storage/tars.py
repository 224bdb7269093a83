"""Tar files by their headers: where each file in them begins and how long it is.

An index is read once, and kept in `$XDG_CACHE_HOME/steadyeye/tar` (or `~/.cache`) under the tar's
address, size and time of change.
"""

import hashlib
import json
import os
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.storage.place import Place
from steadyeye.storage.remote import Remote
from steadyeye.storage.write import write_lightly

END = 512  # bytes of zeros that close a tar, at least
BESIDE = frozenset({"cls", "json"})


@dataclass(frozen=True)
class Entry:
    """A file in a tar: its name there, where its bytes begin, and how many they are.

    `text`: what it says, of `.cls` and `.json`, which are read with the headers.
    """

    name: str
    start: int
    size: int
    text: str = ""


def entries(tar: Place) -> Sequence[Entry]:
    """The files of a tar in their order, from the kept index if there is one.

    Raises `UsageError` for a file that is missing, compressed, no tar, or cut short.
    """
    kept = cache_folder() / f"{hashlib.sha256(_version(tar).encode()).hexdigest()[:32]}.json"
    try:
        return [Entry(*each) for each in json.loads(kept.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        found = _scanned(tar)
    _keep(kept, found)
    return found


def read(tar: Place, entry: Entry) -> bytes:
    """The bytes of a file in a tar. Raises `OSError` or `StorageError`."""
    if isinstance(tar, Remote):
        return tar.read_range(entry.start, entry.start + entry.size)
    with tar.open("rb") as file:
        file.seek(entry.start)
        return file.read(entry.size)


def cache_folder() -> Path:
    """Where indexes are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "steadyeye" / "tar"


def _version(tar: Place) -> str:
    try:
        if isinstance(tar, Remote):
            return f"{tar} {tar.version()}"
        state = tar.stat()
    except FileNotFoundError:
        raise UsageError(f"no tar file at '{tar}'; check the path") from None
    except OSError as error:
        raise UsageError(f"cannot read the tar '{tar}': {error.strerror}") from error
    return f"{tar.resolve()} {state.st_size} {state.st_mtime_ns}"


def _scanned(tar: Place) -> list[Entry]:
    with tar.open("rb") as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                found = [_entry(tar, archive, each) for each in archive if each.isfile()]
                end = archive.offset
        except (tarfile.TarError, EOFError) as error:
            told = " ".join(str(error).split())
            hint = "copy it again; a compressed one is to be unpacked to .tar first"
            raise UsageError(f"the tar '{tar}' is cut short or no tar ({told}); {hint}") from error
        # tarfile takes the end of the data for the end of the tar: its closing zeros must be there
        file.seek(end)
        closing = file.read(END)
    if len(closing) < END or any(closing):
        raise UsageError(
            f"the tar '{tar}' is cut short after {len(found):,} files: its end is not there; "
            "copy it again"
        )
    return found


def _entry(tar: Place, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.issparse():
        raise UsageError(f"the tar '{tar}' holds '{member.name}' with holes; pack it without -S")
    opened = archive.extractfile(member) if member.name.rpartition(".")[2] in BESIDE else None
    text = opened.read().decode("utf-8", "replace") if opened else ""
    return Entry(member.name.removeprefix("./"), member.offset_data, member.size, text)


def _keep(path: Path, found: Sequence[Entry]) -> None:
    rows = [[each.name, each.start, each.size, each.text] for each in found]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lightly(path, json.dumps(rows).encode())
    except (OSError, UsageError):
        # a cache that cannot be written costs time at the next start, nothing else
        return
