"""Files and objects written whole: afterwards they are there, also after a crash, or not at all."""

import hashlib
import os
import threading
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.paths import Place


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
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Makes a rename durable; Windows has no such call, and none is needed there."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_lightly(path: Place, content: bytes) -> None:
    """Writes a file atomically, but after a power failure it may be lost or empty."""
    if isinstance(path, Path):
        _replace(path, content, synced=False)
    else:
        path.write_bytes(content)


def append(path: Place, line: str) -> None:
    """Adds a line to a text file; only its one writer may."""
    if isinstance(path, Path):
        with path.open("a", encoding="utf-8") as file:
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
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write '{path}': {error.strerror}; what is finished is kept, "
            "make room and run the same command again"
        ) from error
