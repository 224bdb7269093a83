"""Folders of numbered images, one folder a video."""

import re
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.footage import sidecar
from steadyeye.footage.paths import listed, resolve
from steadyeye.footage.sets import COLUMNS, Drawing, FrameSets, Member, draw, set_notes
from steadyeye.footage.stills import absentees, sampler
from steadyeye.images.files import SUFFIXES


def frames(
    path: str, anchors: int = 1, k: int = 10, labels: str | None = None, seed: int = 0
) -> FrameSets:
    """Folders of numbered images, one a video: anchors drawn with the frames within ±k of them.

    The last number in a file's name orders the frames; frame 0 is the first one. `labels`,
    `anchors`, `k` and `seed` are those of `video`. Tags: offset, video, frame.
    """
    root = resolve(path)
    known = sidecar.read(labels)
    how = Drawing(anchors, k, seed)
    folders: dict[str, list[Path]] = {}
    for file in listed(root, SUFFIXES):
        relative = file.parent.relative_to(root) if root.is_dir() else Path()
        name = relative.as_posix() if relative.parts else root.name
        folders.setdefault(name, []).append(file)
    numbered = {name: sorted(found, key=_number) for name, found in folders.items()}
    members = tuple(
        member
        for name, found in numbered.items()
        for member in draw(name, len(found), known.of(name), how)
    )

    def locate(member: Member) -> Path:
        return numbered[member.video][member.frame]

    marks = [f"{file.name}:{file.stat().st_size}" for found in numbered.values() for file in found]
    return FrameSets(
        name=root.name,
        classes=known.classes,
        columns=COLUMNS + (("truth",) if known.classes else ()),
        fingerprint=fingerprint(*marks, repr(known), repr(how)),
        members=members,
        sample=sampler(locate),
        absent=absentees(locate),
        notes=set_notes(members),
    )


def _number(file: Path) -> int:
    digits = re.findall(r"\d+", file.stem)
    if not digits:
        raise UsageError(f"the frame '{file}' has no number in its name; number the frames")
    return int(digits[-1])
