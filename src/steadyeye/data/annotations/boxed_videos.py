"""Videos whose every frame has its boxes, as pm-sets or as whole sequences with true tracks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, present
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image, Sample, Tag
from steadyeye.data.video.frame_folders import sampler
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

TRACKED = ("group", "video", "frame", "step", "scene", "seconds", "fps", "truth", "boxes", "tracks")
"""The columns of whole sequences."""
BOX_MEASURES = ("box_brightness", "box_contrast", "box_sharpness", "box_at_edge")
"""The measurements of the pixels of each true box, in the order of a frame's boxes."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Videos with their frames in order and the boxes of each, by the name of the video.

    `sizes`: (height, width), if known. `fps`: frames per second, which whole sequences need, and
    `boxes` with `track`.
    """

    frames: Mapping[str, Sequence[Path]]
    boxes: Mapping[str, Sequence[Boxes]]
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    fps: Mapping[str, float] = field(default_factory=dict)

    def locate(self, member: Member) -> Path:
        """The file of a frame."""
        return self.frames[member.video][member.frame]

    def marks(self, with_tracks: bool) -> list[str]:
        """The part of a source's fingerprint for its frames and boxes."""
        return [
            f"{video} {path.name} {o.boxes.tolist()} {o.labels.tolist()} {o.crowd.tolist()}"
            + (f" {[] if o.track is None else o.track.tolist()}" if with_tracks else "")
            for video, paths in self.frames.items()
            for path, o in zip(paths, self.boxes[video], strict=True)
        ]


def _name_empty(video: str, frames: int) -> UsageError:
    """The error of a video without any object."""
    return UsageError(
        f"'{video}' has no object in any of {number_of(frames, 'frame')}; annotate it, or leave "
        "it out"
    )


def boxed_sets(name: str, videos: Sequences, classes: Classes, how: Drawing) -> FrameSets:
    """The pm-sets of videos: anchors among the frames with objects, neighbours any frame.

    Raises `UsageError` for a video without any object.
    """
    members: list[Member] = []
    for video, boxes in videos.boxes.items():
        ranges = [Range(i, i, present(o)) for i, o in enumerate(boxes) if len(o)]
        labelled = VideoLabels(tuple(part for part in ranges if part.labels))
        if not labelled.ranges:
            raise _name_empty(video, len(boxes))
        sets = draw(video, len(boxes), labelled, how, any_neighbour=True)
        members += [replace(m, truth=present(boxes[m.frame])) for m in sets]
    check_anchors(members, how)
    still = sampler(videos.locate)

    def sample(member: Member) -> Sample:
        objects, size = videos.boxes[member.video][member.frame], videos.sizes.get(member.video)
        return replace(still(member), boxes=objects, size=size)

    lengths = {video: len(paths) for video, paths in videos.frames.items()}
    return FrameSets(
        name=name,
        classes=classes,
        columns=(*COLUMNS, "truth", "boxes"),
        fingerprint=fingerprint(*videos.marks(with_tracks=False), repr(classes), repr(how)),
        members=tuple(members),
        sample=sample,
        image_files=lambda member: [videos.locate(member)],
        notes=(*draw_notes(members, lengths, how), *empty_notes(members)),
    )


def tracked_sequences(name: str, videos: Sequences, classes: Classes) -> FrameSets:
    """Every frame of the videos in order, as a source with true tracks; a group is a video.

    Tags: those of `every_frame`, and `BOX_MEASURES`, vectors as long as the most boxes of a frame.
    Raises `UsageError` for a video without any object.
    """
    for video, fps in videos.fps.items():
        if not 0 < fps < float("inf"):
            raise UsageError(f"fps={fps} of '{video}': give frames a second above 0")
        if not any(len(objects) for objects in videos.boxes[video]):
            raise _name_empty(video, len(videos.frames[video]))
    members = tuple(
        Member(f"{video}/{i:06d}", f"{video}/scene 0000", video, i, 0, present(objects))
        for video in videos.frames
        for i, objects in enumerate(videos.boxes[video])
    )
    most = max(len(objects) for boxes in videos.boxes.values() for objects in boxes)

    still, marks = sampler(videos.locate), videos.marks(with_tracks=True)
    return FrameSets(
        name=name,
        classes=classes,
        columns=TRACKED,
        fingerprint=fingerprint("tracks", *marks, repr(classes), repr(sorted(videos.fps.items()))),
        members=members,
        sample=lambda member: _describe(still(member), member, videos, most),
        image_files=lambda member: [videos.locate(member)],
        notes=(_count(videos),),
    )


def _describe(sample: Sample, member: Member, videos: Sequences, most: int) -> Sample:
    """The sample of a frame with its boxes, tags and measurements inside the boxes."""
    objects, fps = videos.boxes[member.video][member.frame], videos.fps[member.video]
    tags: dict[str, Tag] = {
        "video": member.video,
        "frame": member.frame,
        "step": 1,
        "scene": 0,
        "seconds": member.frame / fps,
        "fps": fps,
    }
    name_content = sample.key
    assert name_content is not None, "a frame is a file"
    digest = fingerprint(repr(objects.boxes.tolist()))
    return replace(
        sample,
        tags=tags,
        boxes=objects,
        size=videos.sizes.get(member.video),
        measure=measure_inside(objects.boxes, most),
        # what is measured depends on the boxes as well
        key=lambda: "\0".join([name_content(), str(most), *BOX_MEASURES, digest]),
    )


def measure_inside(
    corners: NDArray[np.float64], most: int
) -> Callable[[Image], Mapping[str, NDArray[np.float32]]]:
    """Returns a function that measures pixels of boxes: luma, its deviation, sharpness, edge.

    Luma and its deviation in 0…255. Sharpness: the deviation of the Laplacian ÷ that of the luma,
    so that contrast does not count. At an edge: within a pixel of one of the image, 0 or 1. NaN
    beyond the boxes, and for boxes outside of the image. `corners`: (n, 4), n ≤ `most`, the length
    of the vectors.
    """

    def measure(image: Image) -> Mapping[str, NDArray[np.float32]]:
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        values = np.full((len(BOX_MEASURES), most), np.nan, dtype=np.float32)
        whole = np.round(corners).astype(np.int64)
        for place, (x0, y0, x1, y1) in enumerate(np.clip(whole, 0, [*grey.shape[::-1]] * 2)):
            if x1 - x0 < 2 or y1 - y0 < 2:
                continue
            inside = np.ascontiguousarray(grey[y0:y1, x0:x1])
            mean, deviation = (float(part[0, 0]) for part in cv2.meanStdDev(inside))
            edges = float(cv2.meanStdDev(cv2.Laplacian(inside, cv2.CV_16S))[1][0, 0])
            touches = x0 < 2 or y0 < 2 or x1 > grey.shape[1] - 2 or y1 > grey.shape[0] - 2
            values[:, place] = mean, deviation, edges / max(deviation, 1.0), touches
        return dict(zip(BOX_MEASURES, values, strict=True))

    return measure


def _count(videos: Sequences) -> str:
    """How many videos, frames, objects and boxes there are, and how many are ignored."""
    every = [objects for boxes in videos.boxes.values() for objects in boxes]
    ignored = sum(int(objects.crowd.sum()) for objects in every)
    tracks = sum(
        len({int(t) for o in boxes if o.track is not None for t in o.track[~o.crowd]})
        for boxes in videos.boxes.values()
    )
    boxes = sum(map(len, every)) - ignored
    return (
        f"{number_of(len(videos.frames), 'video')}, {number_of(len(every), 'frame')}, "
        f"{number_of(tracks, 'true object')} with {number_of(boxes, 'box')}; "
        f"{number_of(ignored, 'box')} ignored"
    )
