"""pm-sets of videos whose every frame has its boxes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from steadyeye.core.boxes import Boxes, present
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Sample
from steadyeye.data.video.frame_folders import absentees, sampler
from steadyeye.data.video.label_sidecar import Range, VideoLabels
from steadyeye.data.video.pm_set_source import (
    COLUMNS,
    Drawing,
    FrameSets,
    Member,
    check_anchors,
    draw,
    draw_notes,
    empty_notes,
)


def name_empty(video: str, frames: int) -> UsageError:
    """The error of a video without any object."""
    return UsageError(
        f"'{video}' has no object in any of {number_of(frames, 'frame')}; annotate it, or leave "
        "it out"
    )


def boxed_sets(
    name: str,
    frames: Mapping[str, Sequence[Path]],
    boxes: Mapping[str, Sequence[Boxes]],
    classes: Classes,
    how: Drawing,
    sizes: Mapping[str, tuple[int, int]] | None = None,
) -> FrameSets:
    """The pm-sets drawn from videos: anchors among the frames with objects, neighbours any frame.

    `frames`: video → its frames in order; `boxes`: video → the boxes of each of them; `sizes`:
    video → (height, width), if known. Raises `UsageError` for a video without any object.
    """
    members: list[Member] = []
    for video, paths in frames.items():
        ranges = [Range(i, i, present(o)) for i, o in enumerate(boxes[video]) if len(o)]
        labelled = VideoLabels(tuple(part for part in ranges if part.labels))
        if not labelled.ranges:
            raise name_empty(video, len(paths))
        sets = draw(video, len(paths), labelled, how, any_neighbour=True)
        members += [replace(m, truth=present(boxes[video][m.frame])) for m in sets]

    check_anchors(members, how)

    def locate(member: Member) -> Path:
        return frames[member.video][member.frame]

    still = sampler(locate)

    def sample(member: Member) -> Sample:
        size = (sizes or {}).get(member.video)
        return replace(still(member), boxes=boxes[member.video][member.frame], size=size)

    marks = [
        f"{video} {path.name} {o.boxes.tolist()} {o.labels.tolist()} {o.crowd.tolist()}"
        for video, paths in frames.items()
        for path, o in zip(paths, boxes[video], strict=True)
    ]
    lengths = {video: len(paths) for video, paths in frames.items()}
    return FrameSets(
        name=name,
        classes=classes,
        columns=(*COLUMNS, "truth", "boxes"),
        fingerprint=fingerprint(*marks, repr(classes), repr(how)),
        members=tuple(members),
        sample=sample,
        image_files=lambda member: [locate(member)],
        absent=absentees(locate),
        notes=(*draw_notes(members, lengths, how), *empty_notes(members)),
    )
