"""By which names a file of labels, cuts or boxes may call a video."""

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place, relative_path
from steadyeye.data.video.paths import VIDEOS, list_files, resolve_path


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
    known = {name for video in videos for name in names_of(video)}
    others = sorted(set(written) - known)
    if not others:
        return ()
    count = number_of(len(others), "video")
    return (f"{kind} of {count} that are not there, first '{others[0]}'",)


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
