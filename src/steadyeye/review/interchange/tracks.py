"""Reviewed boxes of videos with the tracks they belong to: in COCO's JSON, and as MOTChallenge.

::

    SEQUENCE/img1/000001.jpg   the frames of a video
    SEQUENCE/gt/gt.txt         frame, track, left, top, width, height, 1, class, 1
    SEQUENCE/seqinfo.ini       its length and the size of its frames
    labels.txt                 the classes, of which gt.txt has the line numbers

Frames, pixels and classes count from 1 (Milan et al., "MOT16: A Benchmark for Multi-Object
Tracking", 2016, Section 4.1).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import make_folder, write_file
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.protocol.stages import ReviewPlan, list_labels
from steadyeye.review.results.verdicts import BoxVerdict, count_undecided, judge_images
from steadyeye.review.sampling.image_store import copy_image, read_size
from steadyeye.review.workflow.sequences import VideoFrame, find_videos

Boxes = Sequence[Mapping[str, Any]]


def place_images(folder: SetFolder, plan: ReviewPlan) -> Mapping[str, VideoFrame]:
    """Image → its place in its video; empty if the plan has no videos."""
    names = {row["image"]: row["name"] for row in folder.boxes.to_pylist()}
    return find_videos(names, plan.key_frames)


def number_tracks(
    boxes: Mapping[str, Boxes], places: Mapping[str, VideoFrame]
) -> Mapping[str, Sequence[int]]:
    """Image → the track of each of its boxes, from 1 over all videos, in the order of frames.

    A box without a track is one of its own.
    """
    numbers: dict[tuple[str, object], int] = {}
    tracks = {}
    for image in sorted(boxes, key=lambda image: (places[image].name, places[image].frame)):
        keys = [
            (places[image].name, box.get("track", (image, n))) for n, box in enumerate(boxes[image])
        ]
        tracks[image] = [numbers.setdefault(key, len(numbers) + 1) for key in keys]
    return tracks


def add_videos(
    content: Mapping[str, Any], accepted: Mapping[str, Boxes], places: Mapping[str, VideoFrame]
) -> dict[str, Any]:
    """COCO's lists with `videos`, the `video_id` and `frame_id` of images, `track_id` of boxes.

    `accepted`: image → boxes, in the order of the lists. Unchanged if there are no videos.
    """
    if not places:
        return dict(content)
    names = sorted({places[image].name for image in accepted})
    numbers = {name: number for number, name in enumerate(names, start=1)}
    own = [places[image] for image in accepted]
    by_image = number_tracks(accepted, places)
    tracks = [track for image in accepted for track in by_image[image]]
    return {
        **content,
        "videos": [{"id": number, "name": name} for name, number in numbers.items()],
        "images": [
            {**image, "video_id": numbers[place.name], "frame_id": place.frame}
            for image, place in zip(content["images"], own, strict=True)
        ],
        "annotations": [
            {**box, "track_id": track}
            for box, track in zip(content["annotations"], tracks, strict=True)
        ],
    }


def export_mot(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of an export in the format of MOTChallenge, which tools for trackers read.

    Raises `UsageError` for a set without videos, and where frames are not decided, unless
    `partial`: their videos are then left out, since a frame without lines shows no object.
    """
    places = place_images(folder, plan)
    if not places:
        raise UsageError(
            "this review knows no videos; MOTChallenge holds videos only: set key_frames in the "
            "review of set.json before it begins"
        )
    verdicts = judge_images(connection, folder, plan)
    left = count_undecided("images", verdicts, partial=partial)
    videos = _list_whole_videos(verdicts, places)
    boxes = {image: verdicts[image].boxes for images in videos.values() for image in images}
    tracks = number_tracks(boxes, places)
    names = list_labels("boxes", folder.class_names)
    make_folder(out)
    write_file(out / "labels.txt", "".join(f"{name}\n" for name in names).encode())
    for name, images in videos.items():
        target = out / (folder.name if name == "." else name.replace("/", "_"))
        if target.exists():
            raise UsageError(f"two videos would lie in '{target}'; rename one")
        lines = [
            _write_line(number, box, track, names)
            for number, image in enumerate(images, start=1)
            for box, track in zip(boxes[image], tracks[image], strict=True)
        ]
        make_folder(target / "gt")
        write_file(target / "gt" / "gt.txt", "".join(lines).encode())
        write_file(target / "seqinfo.ini", _describe_video(folder, target.name, images).encode())
        for number, image in enumerate(images, start=1):
            copy_image(folder.root, image, target / "img1" / f"{number:06d}.jpg")
    return {
        "videos": len(videos),
        "frames": len(boxes),
        "boxes": sum(map(len, boxes.values())),
        "tracks": len({track for own in tracks.values() for track in own}),
        "undecided": left,
    }


def _list_whole_videos(
    verdicts: Mapping[str, BoxVerdict], places: Mapping[str, VideoFrame]
) -> Mapping[str, Sequence[str]]:
    """Video → its frames in order, for videos whose frames are all accepted."""
    videos: dict[str, list[str]] = {}
    for image in sorted(verdicts, key=lambda image: (places[image].name, places[image].frame)):
        videos.setdefault(places[image].name, []).append(image)
    return {
        name: images
        for name, images in videos.items()
        if all(verdicts[image].accepted for image in images)
    }


def _write_line(number: int, box: Mapping[str, Any], track: int, names: Sequence[str]) -> str:
    x0, y0, x1, y1 = box["box"]
    corner = f"{x0 + 1:.2f},{y0 + 1:.2f},{x1 - x0:.2f},{y1 - y0:.2f}"
    return f"{number},{track},{corner},1,{names.index(box['label']) + 1},1\n"


def _describe_video(folder: SetFolder, name: str, images: Sequence[str]) -> str:
    width, height = read_size(image_path(folder.root, images[0]))
    return (
        f"[Sequence]\nname={name}\nimDir=img1\nseqLength={len(images)}\n"
        f"imWidth={width}\nimHeight={height}\nimExt=.jpg\n"
    )
