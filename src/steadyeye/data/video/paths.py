"""Where footage lies: files, folders, and files inside an installed package."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import URL, Place, place, relative_path, walk_files

VIDEOS = frozenset(
    {".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts"}
    | {".3gp", ".asf", ".flv", ".m2ts", ".mts", ".mxf", ".ogv", ".vob", ".wmv"}
)
"""How files of videos end, in small letters."""

ANNOTATIONS = frozenset({".csv", ".json", ".md", ".toml", ".xml", ".yaml", ".yml"})
"""Endings of files that describe images and videos, which lie beside these."""

At = TypeVar("At", bound=Place)


def resolve_path(path: str) -> Place:
    """The path or the URL (`s3://…`) a user wrote; as `resolve` otherwise."""
    return place(path) if URL.match(path) else resolve(path)


def resolve(path: str) -> Path:
    """The path a user wrote; `package:NAME/inner/file` means a file that NAME ships.

    Raises `UsageError` where the package is not installed, and for the URL of a store: what calls
    this reads local files.
    """
    if URL.match(path):
        resolved = place(path)
        if not isinstance(resolved, Path):
            raise UsageError(
                f"'{path}' is in an object store, which this source does not read; copy it to a "
                "disk, or give image_folder, frames, video, every_frame, coco, webdataset or "
                "hf_dataset"
            )
        return resolved
    if not path.startswith("package:"):
        plain = Path(path).expanduser()
        # by the name of a folder anchors are drawn, and `.` has none
        return plain if plain.name not in ("", "..") else plain.resolve()
    name, _, inner = path.removeprefix("package:").partition("/")
    # of a name with a dot Python would import what stands before it
    spec = find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"'{path}' needs the package '{name}'; install it with pip")
    return Path(spec.submodule_search_locations[0]) / inner


def list_files(path: At, suffixes: frozenset[str]) -> list[At]:
    """The file itself, or the files below a folder that end like `suffixes`, sorted by name.

    Raises `UsageError` where there is none.
    """
    try:
        if path.is_file():
            return [path]
        folder = path.is_dir()
    except OSError as error:
        raise UsageError(
            f"cannot read '{shorten(str(path))}': {error.strerror}; check the path and its rights"
        ) from None
    if not folder:
        raise UsageError(f"no file or folder at '{path}'; check the path")
    # of one kind, as the folder is
    files = cast(Iterator[Any], walk_files(path))
    matching = sorted(file for file in files if file.suffix.lower() in suffixes)
    if not matching:
        kinds = ", ".join(sorted(suffixes))
        raise UsageError(
            f"the folder '{path}' holds no file ending in {kinds}; give a folder that does"
        )
    return matching


def unread_notes(folder: Place, suffixes: frozenset[str]) -> tuple[str, ...]:
    """A note on the files below a folder that `list_files` leaves out, where there are any.

    Hidden files, annotations and names without an ending do not count.
    """
    names = (relative_path(file, folder) for file in walk_files(folder) if folder.is_dir())
    others = sorted(
        name.as_posix()
        for name in names
        if name.suffix
        and name.suffix.lower() not in suffixes | ANNOTATIONS
        and not any(part.startswith(".") for part in name.parts)
    )
    if not others:
        return ()
    why = "no image by its name; convert what is one to JPEG or PNG"
    if suffixes == VIDEOS:
        why = "no video by its name; convert what is one to MP4"
    return (f"{number_of(len(others), 'file')} left out, first '{others[0]}': {why}",)


def holds(path: Place, suffixes: frozenset[str]) -> bool:
    """Whether the file, or any file below the folder, ends like one of `suffixes`."""
    return any(file.suffix.lower() in suffixes for file in (path, *walk_files(path)))
