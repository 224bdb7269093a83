"""ImageNet-Vid-Robust as released."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, find_repeated, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.sha256sums import check_sums
from steadyeye.core.storage.text_files import read_json
from steadyeye.data.classes.class_lists import read, shipped_classes
from steadyeye.data.video.frame_folders import sampler
from steadyeye.data.video.paths import resolve
from steadyeye.data.video.pm_set_source import COLUMNS, FrameSets, Member, set_notes

NAME = "imagenet_vid_robust"
VIDEOS = "val/ILSVRC2015_val_"
NUMBER = re.compile(r"(\d+)\.\w+$")
RELEASED = "65e4a5a7be726566"
"""The fingerprint of the released 22,179 frames in their sets, with the labels of each."""


def imagenet_vid_robust(root: str, videos: list[str] | None = None) -> FrameSets:
    """ImageNet-Vid-Robust in its released layout: 1,109 reviewed anchors, every frame labelled.

    `root` contains `metadata/pmsets.json`, `metadata/labels.json` and `val/`. Every frame has its
    own label list; a set without neighbours counts as its anchor. `videos`: only these. The id of a
    frame is its file; if several sets have a frame, its name follows the file of the anchor. A
    review exported in this layout may have its own classes, in `metadata/classes.json`; with
    `metadata/closed.json` no other class can occur. The name of the source says if its metadata are
    not the released ones, or only a part; then no published number is shown. Raises `UsageError`
    for inconsistent metadata. Shankar et al., "Do Image Classifiers Generalize Across Time?",
    Section 2.

    Example: `imagenet_vid_robust(root='imagenet_vid_robust')`
    """
    base = resolve(root)
    # there where a review was exported in this layout
    check_sums(base)
    metadata = base / "metadata"
    sets, labels = _load(metadata / "pmsets.json"), _load(metadata / "labels.json")
    names = None if videos is None else set(videos)
    _check_neighbours(sets, metadata / "pmsets.json")
    available = {Path(_find_video(anchor)).name for anchor in sets}
    for video in sorted((names or set()) - available):
        raise unknown("video", video, available)
    class_file = metadata / "classes.json"
    # what somebody exported names what occurs in it, unless it says that this is all; the release
    # has its thirty classes
    closed = (metadata / "closed.json").is_file()
    own = replace(read(str(class_file)), closed=closed) if class_file.is_file() else None
    classes = own or shipped_classes("vid30")
    every = _tell_apart(
        [
            _member(frame, anchor, labels, len(classes))
            for anchor, neighbours in sets.items()
            for frame in sorted({anchor, *neighbours})
        ]
    )
    members = tuple(m for m in every if names is None or Path(m.video).name in names)

    inside = confine(base, metadata / "pmsets.json")
    for member in members:
        inside(_file_of(member))

    several = sum(len(member.truth) > 1 for member in members)
    return FrameSets(
        name=_name(base.name, every, len(members), own_classes=class_file.is_file()),
        classes=classes,
        columns=(*COLUMNS, "truth"),
        fingerprint=fingerprint(
            *map(_mark, members),
            *(classes.names if class_file.is_file() else ()),
            *(("closed",) if own and closed else ()),
        ),
        members=members,
        sample=sampler(lambda member: base / _file_of(member)),
        image_files=lambda member: [base / _file_of(member)],
        notes=(*set_notes(members), f"{number_of(several, 'frame')} with several labels"),
    )


def _file_of(member: Member) -> str:
    return f"{member.video}/{_name_frame(member.id)}"


def _name_frame(id_: str) -> str:
    return id_[id_.rfind("/") + 1 :]


def _tell_apart(members: Sequence[Member]) -> Sequence[Member]:
    """The members, with an id of its own for each: near anchors share frames."""
    times = Counter(member.id for member in members)
    return [
        replace(member, id=f"{member.group}/{_name_frame(member.id)}")
        if times[member.id] > 1
        else member
        for member in members
    ]


def _mark(member: Member) -> str:
    return f"{member.group}:{member.id}:{member.truth}"


def _name(folder: str, every: Sequence[Member], members: int, *, own_classes: bool) -> str:
    """`imagenet_vid_robust` for the released set only; otherwise a name with the difference."""
    if own_classes or not any(member.id.startswith(VIDEOS) for member in every):
        # a review of other videos, exported in this layout
        return folder
    if fingerprint(*sorted(map(_mark, every))) != RELEASED:
        return f"{NAME}, not as released"
    return NAME if members == len(every) else f"{NAME}, part"


def _check_neighbours(sets: Mapping[str, Sequence[Any]], path: Path) -> None:
    for anchor, neighbours in sets.items():
        if not all(isinstance(frame, str) for frame in neighbours):
            raise UsageError(
                f"'{path}' gives the anchor '{anchor}' neighbours that are no texts; take the "
                "released file"
            )


def _load(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"no '{path}'; root must hold the released metadata folder")
    content = read_json(path, "metadata", partial(_once, path))
    if not isinstance(content, dict):
        raise UsageError(f"'{path}' is not a JSON object; take the released file")
    for key, frames_ in content.items():
        if not isinstance(frames_, list):
            raise UsageError(f"'{path}' gives '{key}' no list; take the released file")
    return content


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its members, each key once."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = find_repeated(key for key, _ in pairs)[0]
        raise UsageError(f"the metadata '{path}' have '{twice}' twice; take the released files")
    return entries


def _member(frame: str, anchor: str, labels: dict[str, list[Any]], classes: int) -> Member:
    if frame not in labels:
        raise UsageError(
            f"labels.json lacks the frame '{frame}' of the set around '{anchor}'; "
            "take pmsets.json and labels.json from the same release"
        )
    video = _find_video(frame)
    if video != _find_video(anchor):
        raise UsageError(
            f"the frame '{frame}' is from another video than its anchor '{anchor}'; correct "
            "pmsets.json"
        )
    for label in labels[frame] or [None]:
        if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < classes:
            raise UsageError(
                f"labels.json gives '{frame}' the label {label}; give each frame of a set one or "
                f"more of 0 to {classes - 1}"
            )
    number = _number(frame)
    return Member(
        id=frame,
        group=anchor,
        video=video,
        frame=number,
        offset=number - _number(anchor),
        truth=tuple(sorted(set(labels[frame]))),
    )


def _find_video(frame: str) -> str:
    """The folder of a frame, in one normalised form."""
    return _tidy_folder(frame[: frame.rfind("/") + 1])


# the folders of many frames are few
@lru_cache(maxsize=10_000)
def _tidy_folder(text: str) -> str:
    return Path(text).as_posix()


def _number(frame: str) -> int:
    match = NUMBER.search(frame)
    if not match:
        raise UsageError(f"the frame '{frame}' has no number; take the released pmsets.json")
    return int(match.group(1))
