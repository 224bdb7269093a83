"""Where footage lies: files, folders, and files inside an installed package."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from steadyeye.core.errors import UsageError

VIDEOS = frozenset({".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts"})


def resolve(path: str) -> Path:
    """The path a user wrote; `package:NAME/inner/file` means a file that NAME ships.

    Raises `UsageError` where the package is not installed.
    """
    if not path.startswith("package:"):
        return Path(path).expanduser()
    name, _, inner = path.removeprefix("package:").partition("/")
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"'{path}' needs the package '{name}'; install it with pip")
    return Path(spec.submodule_search_locations[0]) / inner


def listed(path: Path, suffixes: frozenset[str]) -> list[Path]:
    """The file itself, or the files below a folder that end like `suffixes`, sorted by name.

    Raises `UsageError` where there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"no file or folder at '{path}'; check the path")
    found = sorted(file for file in _below(path) if file.suffix.lower() in suffixes)
    if not found:
        kinds = ", ".join(sorted(suffixes))
        raise UsageError(f"the folder '{path}' holds no file ending in {kinds}")
    return found


def holds(path: Path, suffixes: frozenset[str]) -> bool:
    """Whether the file, or any file below the folder, ends like one of `suffixes`."""
    return any(file.suffix.lower() in suffixes for file in (path, *_below(path)))


def _below(path: Path) -> Iterator[Path]:
    # os.walk, as Path.rglob does not enter linked folders
    for folder, _, names in os.walk(path, followlinks=True):
        yield from (Path(folder) / name for name in names)
