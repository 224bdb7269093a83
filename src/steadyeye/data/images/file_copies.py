"""Files of images with the same content under other names."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Labels

TAIL = 4096
"""Bytes at the end of files of one size that are compared before all of them are."""


def note_copies(
    ids: Sequence[str], paths: Sequence[Place], truths: Sequence[Labels]
) -> tuple[str, ...]:
    """How many images have the same content as another, and how many of these another label."""
    copies = find_copies(paths)
    if not copies:
        return ()
    differing = {at: first for at, first in copies.items() if truths[at] != truths[first]}
    at, first = next(iter((differing or copies).items()))
    classes = f" ({len(differing):,} in another class)" if differing else ""
    return (
        f"{len(copies):,} of {number_of(len(paths), 'image')} with the same content as another"
        f"{classes}, first '{ids[at]}' as '{ids[first]}'; intervals treat them as different images",
    )


def find_copies(paths: Sequence[Place]) -> dict[int, int]:
    """Position of each file that holds what an earlier one does → that of the first of these.

    Objects of a store are left out. Only files of one size are read, and whole only where their
    last bytes are equal.
    """
    groups = [[at for at, path in enumerate(paths) if isinstance(path, Path)]]
    for read in (_read_size, _read_tail, _hash_file):
        groups = [part for group in groups for part in _split_group(group, paths, read)]
    return dict(sorted((at, group[0]) for group in groups for at in group[1:]))


def _split_group(
    group: Sequence[int], paths: Sequence[Place], read: Callable[[Place], object]
) -> list[list[int]]:
    """The parts of a group in which `read` gives the same, if they have two files or more."""
    parts: dict[object, list[int]] = defaultdict(list)
    for at in group:
        with suppress(OSError):  # what cannot be read is an error of its sample
            parts[read(paths[at])].append(at)
    return [part for part in parts.values() if len(part) > 1]


def _read_size(path: Place) -> int:
    return path.stat().st_size


def _read_tail(path: Place) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL, 0))
        return file.read()


def _hash_file(path: Place) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
