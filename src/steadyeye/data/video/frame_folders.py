"""Frames kept as image files: finding them, and how their members become samples."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place, relative_path
from steadyeye.core.storage.text_columns import find_repeated_texts
from steadyeye.core.types import Sample
from steadyeye.data.images import image_file
from steadyeye.data.video.paths import list_files
from steadyeye.data.video.pm_set_source import Member, tags

Locate = Callable[[Member], Place]


def sampler(locate: Locate) -> Callable[[Member], Sample]:
    """The function that turns a member into a sample read from the file `locate` names."""

    def sample(member: Member) -> Sample:
        image = image_file.ImageFile(locate(member))
        return Sample(member.id, image, member.truth, member.group, tags(member), key=image.key)

    return sample


def list_frame_folders(root: Place) -> Mapping[str, Sequence[Place]]:
    """The folders of images at or below `root`, one a video, by name; each in its frames' order.

    The last number in a file's name orders the frames. Raises `UsageError` if there is none.
    """
    folders: dict[str, list[Place]] = {}
    folder = root.is_dir()
    for file in list_files(root, image_file.SUFFIXES):
        relative = relative_path(file, root).parent
        name = relative.as_posix() if relative.parts and folder else root.name
        folders.setdefault(name, []).append(file)
    for name, files in folders.items():
        twice = find_repeated_texts([str(_number(file)) for file in files])
        if twice:
            raise UsageError(
                f"'{name}' has {number_of(len(twice), 'frame number')} more than once, first "
                f"{twice[0]}; their order is not known; keep one of each"
            )
    return {name: sorted(files, key=_number) for name, files in folders.items()}


def without_gaps(video: str, files: Sequence[Path]) -> Sequence[Path]:
    """The frames of a video in the order of their consecutive numbers.

    With gaps an offset would not be in native frames, and annotations by number would refer to
    other frames. Raises `UsageError` for a gap and for a number that occurs twice.
    """
    ordered = sorted(files, key=_number)
    for before, after in pairwise(ordered):
        first, second = _number(before), _number(after)
        if second == first:
            raise UsageError(
                f"'{video}' has two frames {first}, '{before}' and '{after}'; keep one"
            )
        if second > first + 1:
            raise UsageError(
                f"'{video}' lacks the frames between '{before.name}' and '{after.name}'; add "
                "them, or renumber the frames if k is to count the existing ones"
            )
    return ordered


def _number(file: Place) -> int:
    digits = re.findall(r"\d+", file.stem)
    if not digits:
        raise UsageError(f"the frame '{file}' has no number in its name; number the frames")
    return int(digits[-1])
