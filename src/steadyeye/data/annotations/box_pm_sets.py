"""pm-sets of videos whose every frame has its boxes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from steadyeye.core.boxes import Boxes, present
from steadyeye.core.errors import UsageError
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
    video → (height, width), where it is said. Raises `UsageError` for a video without any object.
    """
    members: list[Member] = []
    for video, found in frames.items():
        ranges = [Range(i, i, present(each)) for i, each in enumerate(boxes[video]) if len(each)]
        labelled = VideoLabels(tuple(each for each in ranges if each.labels))
        if not labelled.ranges:
            raise UsageError(f"'{video}' has no object in any of its {len(found)} frames")
        drawn = draw(video, len(found), labelled, how, any_neighbour=True)
        members += [replace(m, truth=present(boxes[video][m.frame])) for m in drawn]

    check_anchors(members, how)

    def locate(member: Member) -> Path:
        return frames[member.video][member.frame]

    still = sampler(locate)

    def sample(member: Member) -> Sample:
        size = (sizes or {}).get(member.video)
        return replace(still(member), boxes=boxes[member.video][member.frame], size=size)

    marks = [
        f"{video} {path.name} {each.boxes.tolist()} {each.labels.tolist()} {each.crowd.tolist()}"
        for video, found in frames.items()
        for path, each in zip(found, boxes[video], strict=True)
    ]
    lengths = {video: len(found) for video, found in frames.items()}
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
