"""Whole sequences whose every frame has its boxes, and which object each of them is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, present
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image, Sample, Tag
from steadyeye.data.annotations.box_pm_sets import name_empty
from steadyeye.data.video.frame_folders import absentees, sampler
from steadyeye.data.video.pm_set_source import FrameSets, Member

COLUMNS = ("group", "video", "frame", "step", "scene", "seconds", "fps", "truth", "boxes", "tracks")
BOX_MEASURES = ("box_brightness", "box_contrast", "box_sharpness", "box_at_edge")
"""The measurements of the pixels of each true box, in the order of a frame's boxes."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Videos with the boxes of each frame. `frames`, `boxes`, `fps`: by the name of the video.

    `boxes` with `track`; `fps`: frames per second. `sizes`: (height, width), if known.
    """

    frames: Mapping[str, Sequence[Path]]
    boxes: Mapping[str, Sequence[Boxes]]
    fps: Mapping[str, float]
    sizes: Mapping[str, tuple[int, int]]


def tracked_sequences(name: str, videos: Sequences, classes: Classes) -> FrameSets:
    """Every frame of the videos in order, as a source with true tracks; a group is a video.

    Tags: those of `every_frame`, and `BOX_MEASURES`, vectors as long as the most boxes of a frame.
    Raises `UsageError` for a video without any object.
    """
    for video, fps in videos.fps.items():
        if not 0 < fps < float("inf"):
            raise UsageError(f"fps={fps} of '{video}': give frames a second above 0")
        if not any(len(objects) for objects in videos.boxes[video]):
            raise name_empty(video, len(videos.frames[video]))
    members = tuple(
        Member(f"{video}/{i:06d}", f"{video}/scene 0000", video, i, 0, present(objects))
        for video in videos.frames
        for i, objects in enumerate(videos.boxes[video])
    )
    most = max(len(objects) for boxes in videos.boxes.values() for objects in boxes)

    def locate(member: Member) -> Path:
        return videos.frames[member.video][member.frame]

    still = sampler(locate)

    def sample(member: Member) -> Sample:
        return _describe(still(member), member, videos, most)

    marks = [
        f"{video} {path.name} {o.boxes.tolist()} {o.labels.tolist()} {o.crowd.tolist()} "
        f"{[] if o.track is None else o.track.tolist()}"
        for video, paths in videos.frames.items()
        for path, o in zip(paths, videos.boxes[video], strict=True)
    ]
    return FrameSets(
        name=name,
        classes=classes,
        columns=COLUMNS,
        fingerprint=fingerprint("tracks", *marks, repr(classes), repr(sorted(videos.fps.items()))),
        members=members,
        sample=sample,
        image_files=lambda member: [locate(member)],
        absent=absentees(locate),
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
