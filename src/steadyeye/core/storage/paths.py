"""Paths and URLs as a user writes them."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.filesystems import filesystem
from steadyeye.core.storage.remote_path import Remote

Place: TypeAlias = Path | Remote
"""A local file or folder, or an object of a store."""

AT_ONCE = 16  # requests to a store side by side
URL = re.compile(r"[a-z][a-z0-9+.-]+://")
SLIPPED = re.compile(r"(s3|gs|hf):")
Item = TypeVar("Item")
Found = TypeVar("Found")


def place(text: str | Place) -> Place:
    """The place a user wrote: `s3://`, `gs://` and `hf://` are stores, all else is a path.

    Raises `UsageError` for another scheme, and where the package that speaks it is missing.
    """
    if isinstance(text, Path | Remote):
        return text
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    if not URL.match(text):
        if SLIPPED.match(text):
            raise UsageError(f"'{text}' is neither a path nor a store; write s3://bucket/folder")
        return Path(text).expanduser()
    filesystem(text)
    return Remote(text.rstrip("/"))


def cache_home() -> Path:
    """Where what can be made again is kept: `$XDG_CACHE_HOME` or `~/.cache`, then `steadyeye`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steadyeye"


def below(folder: Place) -> Iterator[Place]:
    """Every file below a folder, linked folders included."""
    if isinstance(folder, Remote):
        yield from folder.below()
        return
    # os.walk, as Path.rglob does not enter linked folders
    for inner, _, names in os.walk(folder, followlinks=True):
        yield from (Path(inner) / name for name in names)


def inside(file: Place, folder: Place) -> PurePath:
    """The part of a file's path below a folder that it lies in."""
    if isinstance(file, Path) and isinstance(folder, Path):
        return file.relative_to(folder)
    assert isinstance(file, Remote)
    assert isinstance(folder, Remote)
    return file.relative_to(folder)


def together(
    where: Place, action: Callable[[Item], Found], items: Sequence[Item]
) -> Iterable[Found]:
    """`action` of each item, in their order: one after the other, side by side on a store."""
    if isinstance(where, Path):
        return map(action, items)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(action, items))


def absent(places: Iterable[Place]) -> list[Place]:
    """Those of the places that are no file; a store is asked once a folder, not once a file."""
    listed: dict[Remote, frozenset[str]] = {}
    missing: list[Place] = []
    for each in places:
        if isinstance(each, Path):
            there = each.is_file()
        elif each.size is not None:
            there = True
        else:
            if each.parent not in listed:
                listed[each.parent] = frozenset(found.url for found in each.parent.below())
            there = each.url in listed[each.parent]
        if not there:
            missing.append(each)
    return missing
