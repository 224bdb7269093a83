"""Frames kept as image files: how their members become samples."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from steadyeye.core.types import Sample
from steadyeye.footage.sets import Member, tags
from steadyeye.images import files

Locate = Callable[[Member], Path]


def sampler(locate: Locate) -> Callable[[Member], Sample]:
    """The function that turns a member into a sample read from the file `locate` names."""

    def sample(member: Member) -> Sample:
        image = files.ImageFile(locate(member))
        return Sample(member.id, image, member.truth, member.group, tags(member))

    return sample


def absentees(locate: Locate) -> Callable[[Iterable[Member]], Sequence[str]]:
    """The function that lists the files of members that are not there."""

    def absent(members: Iterable[Member]) -> Sequence[str]:
        return [str(path) for path in map(locate, members) if not path.is_file()]

    return absent
