"""Where footage lies: files, folders, and files inside an installed package."""

import os
from importlib.util import find_spec
from pathlib import Path

from steadyeye.core.errors import UsageError


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
    # os.walk, as Path.rglob does not enter linked folders
    walked = (
        Path(folder) / name
        for folder, _, names in os.walk(path, followlinks=True)
        for name in names
    )
    found = sorted(file for file in walked if file.suffix.lower() in suffixes)
    if not found:
        kinds = ", ".join(sorted(suffixes))
        raise UsageError(f"the folder '{path}' holds no file ending in {kinds}")
    return found
