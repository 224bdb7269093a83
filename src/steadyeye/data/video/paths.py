"""Where footage lies, and by which names a file of labels, cuts or boxes may call a video."""

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from steadyeye.core.errors import UsageError, shorten, suggest
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

    Hidden files and folders do not count. Raises `UsageError` where there is none.
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
    files = cast(Iterator[Any], _visible_files(path))
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
    files = _visible_files(folder) if folder.is_dir() else ()
    others = sorted(
        relative_path(file, folder).as_posix()
        for file in files
        if file.suffix and file.suffix.lower() not in suffixes | ANNOTATIONS
    )
    if not others:
        return ()
    why = "not named as images; convert images to JPEG or PNG"
    if suffixes == VIDEOS:
        why = "not named as videos; convert videos to MP4"
    return (f"{number_of(len(others), 'file')} left out, first '{others[0]}': {why}",)


def holds(path: Place, suffixes: frozenset[str]) -> bool:
    """Whether the file, or any file below the folder, ends like one of `suffixes`."""
    return any(file.suffix.lower() in suffixes for file in (path, *_visible_files(path)))


def _visible_files(folder: Place) -> Iterator[Place]:
    """The files below a folder without the hidden copies of systems and editors: `._a.mp4`."""
    for file in walk_files(folder):
        if not any(part.startswith(".") for part in relative_path(file, folder).parts):
            yield file


def compose(name: str) -> str:
    """A name with letters and accents in one form: macOS writes ü as two characters."""
    return unicodedata.normalize("NFC", name)


def names_of(video: str) -> tuple[str, ...]:
    """The names that a video goes by, the first that is written counts.

    Its path within its folder, that without suffix, and the name of its file without suffix; each
    composed.
    """
    video = compose(video)
    path = PurePosixPath(video)
    return tuple(dict.fromkeys([video, str(path.with_suffix("")) if path.name else "", path.stem]))


def find_name(video: str, written: Collection[str]) -> str | None:
    """The name of a video in a file of labels, whose names are composed; None if there is none."""
    return next((name for name in names_of(video) if name in written), None)


def check_names(videos: Iterable[str], written: Collection[str], kind: str) -> None:
    """Raises `UsageError` for a written name that counts for several videos: `kind` would be mixed.

    `written`: the names in a file of labels or boxes, which `kind` says.
    """
    meant: dict[str, list[str]] = defaultdict(list)
    for video in videos:
        name = find_name(video, written)
        if name is not None:
            meant[name].append(video)
    for name, several in meant.items():
        if len(several) > 1:
            raise UsageError(
                f"the {kind} name '{name}', which may be '{several[0]}' or '{several[1]}'; write "
                "the name with its folders and suffix"
            )


def absence_notes(videos: Iterable[str], written: Collection[str], kind: str) -> tuple[str, ...]:
    """How many written names are of no video that is there, and the first; `kind` as above."""
    videos = list(videos)
    known = {name for video in videos for name in names_of(video)}
    others = sorted(set(written) - known)
    if not others:
        return ()
    count = number_of(len(others), "video")
    near = suggest(others[0], [video for video in videos if find_name(video, written) is None])
    return (f"{kind} of {count} that are not there, first '{others[0]}'{near}",)


def name_video(file: Place, root: Place) -> str:
    """The name of a video below a file or folder that was given: what labels call it by."""
    return file.name if root.is_file() else relative_path(file, root).as_posix()


def check_distinct(paths: Iterable[str]) -> None:
    """Raises `UsageError` where two videos of several files and folders have one name."""
    place_of: dict[str, Place] = {}
    for root in map(resolve_path, paths):
        for file in list_files(root, VIDEOS):
            name = name_video(file, root)
            if name in place_of:
                raise UsageError(
                    f"'{place_of[name]}' and '{file}' are both called '{name}'; give the folder "
                    "that holds both, or rename one"
                )
            place_of[name] = file
