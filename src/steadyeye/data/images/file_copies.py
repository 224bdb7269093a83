"""Files with the same content under other names, and the note on those of images."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Labels

TAIL = 4096
"""Bytes at the end of files of one size that are compared before all of them are."""

File = TypeVar("File")


def note_copies(
    ids: Sequence[str], paths: Sequence[Place], truths: Sequence[Labels]
) -> tuple[str, ...]:
    """How many images have the same content as another, and how many of these another label.

    Objects of a store are left out.
    """
    on_disk = {name: path for name, path in zip(ids, paths, strict=True) if isinstance(path, Path)}
    copies = find_copies(on_disk, (_read_size, _read_tail, _hash_file))
    if not copies:
        return ()
    label = dict(zip(ids, truths, strict=True))
    differing = {name: first for name, first in copies.items() if label[name] != label[first]}
    name, first = next(iter((differing or copies).items()))
    classes = f" ({len(differing):,} in another class)" if differing else ""
    return (
        f"{len(copies):,} of {number_of(len(paths), 'image')} with the same content as another"
        f"{classes}, first '{name}' as '{first}'; intervals treat them as different images",
    )


def find_copies(
    files: Mapping[str, File], keys: Sequence[Callable[[File], object]]
) -> dict[str, str]:
    """The name of each file that is a copy of an earlier one → the name of the first of these.

    `keys`: what copies have in common, the cheapest first; each is read only of files that agree in
    those before it. A file for which one raises `OSError` is no copy.
    """
    groups = [list(files)]
    for key in keys:
        groups = [part for group in groups for part in _split_group(group, files, key)]
    first_of = {name: group[0] for group in groups for name in group[1:]}
    return {name: first_of[name] for name in files if name in first_of}


def _split_group(
    names: Sequence[str], files: Mapping[str, File], key: Callable[[File], object]
) -> list[list[str]]:
    """The parts of a group that have a key in common, if they have two files or more."""
    parts: dict[object, list[str]] = defaultdict(list)
    for name in names:
        with suppress(OSError):
            parts[key(files[name])].append(name)
    return [part for part in parts.values() if len(part) > 1]


def _read_size(path: Path) -> int:
    return path.stat().st_size


def _read_tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - TAIL, 0))
        return file.read()


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
