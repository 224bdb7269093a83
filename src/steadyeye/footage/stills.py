"""Frames kept as image files: finding them, and how their members become samples."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Sample
from steadyeye.footage.paths import listed
from steadyeye.footage.sets import Member, tags
from steadyeye.images import files
from steadyeye.storage.place import Place, absent, inside

Locate = Callable[[Member], Place]


def sampler(locate: Locate) -> Callable[[Member], Sample]:
    """The function that turns a member into a sample read from the file `locate` names."""

    def sample(member: Member) -> Sample:
        image = files.ImageFile(locate(member))
        return Sample(member.id, image, member.truth, member.group, tags(member), key=image.key)

    return sample


def absentees(locate: Locate) -> Callable[[Iterable[Member]], Sequence[str]]:
    """The function that lists the files of members that are not there."""

    def lacking(members: Iterable[Member]) -> Sequence[str]:
        return [str(path) for path in absent(map(locate, members))]

    return lacking


def numbered(root: Place) -> Mapping[str, Sequence[Place]]:
    """The folders of images at or below `root`, one a video, by name; each in its frames' order.

    The last number in a file's name orders the frames. Raises `UsageError` where there is none.
    """
    folders: dict[str, list[Place]] = {}
    folder = root.is_dir()
    for file in listed(root, files.SUFFIXES):
        relative = inside(file, root).parent
        name = relative.as_posix() if relative.parts and folder else root.name
        folders.setdefault(name, []).append(file)
    return {name: sorted(found, key=_number) for name, found in folders.items()}


def _number(file: Place) -> int:
    digits = re.findall(r"\d+", file.stem)
    if not digits:
        raise UsageError(f"the frame '{file}' has no number in its name; number the frames")
    return int(digits[-1])
