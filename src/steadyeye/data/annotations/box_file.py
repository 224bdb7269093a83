"""Boxes of the frames of videos, from a CSV or JSON file beside them.

CSV, a box a line::

    video,frame,label,x0,y0,x1,y1,crowd
    clip.mp4,12,car,10,20,110,90,

`frame` counts from 0, corners are pixels, half-open; `crowd` may be left out. A frame without a
line has no object.

JSON is COCO's of instances, whose images are frames: they say `video` and `frame`, or have a
`file_name` that is the video and, after the last slash, the number of the frame::

    {"images": [{"id": 1, "video": "clip.mp4", "frame": 12},
                {"id": 2, "file_name": "clip.mp4/000013.jpg"}],
     "categories": [{"id": 3, "name": "car"}],
     "annotations": [{"image_id": 1, "category_id": 3, "bbox": [10, 20, 100, 70]}]}
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from steadyeye.core.boxes import EMPTY, Boxes, boxes, check_pixels, present
from steadyeye.core.errors import UsageError, every, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import Row, read_table, read_whole
from steadyeye.core.types import Classes
from steadyeye.data.annotations import coco_file
from steadyeye.data.annotations.coco_geometry import once, repeats
from steadyeye.data.classes.class_lists import classes_of_names
from steadyeye.data.video.label_sidecar import Range, VideoLabels
from steadyeye.data.video.paths import absence_notes, compose, find_name, resolve_path

CORNERS = ("x0", "y0", "x1", "y1")
NEEDED = ("video", "frame", "label", *CORNERS)
CROWD = {"1": True, "true": True, "0": False, "false": False, "": False}

Size: TypeAlias = tuple[int, int]


class BoxLine(NamedTuple):
    """A line of a CSV file: a box in a frame."""

    video: str
    frame: int
    corners: list[float]
    label: str
    crowd: bool


@dataclass(frozen=True, eq=False)
class BoxFile:
    """Classes and, by video name, the boxes of its frames; `remarks`: what must be known of it.

    `sizes`: by video name (height, width) of frames, where the file says them.
    """

    classes: Classes
    videos: Mapping[str, Mapping[int, Boxes]]
    remarks: tuple[str, ...] = ()
    sizes: Mapping[str, Mapping[int, Size]] = field(default_factory=dict)

    def of(self, video: str) -> Mapping[int, Boxes]:
        """The boxes of a video by a name of it (see `names_of`), frame by frame."""
        return self.videos.get(self._name(video), {})

    def size(self, video: str, frame: int) -> Size | None:
        """(height, width) of a frame, where the file says it."""
        return self.sizes.get(self._name(video), {}).get(frame)

    def _name(self, video: str) -> str:
        return find_name(video, self.videos) or video

    def at(self, video: str, frame: int) -> Boxes:
        """The boxes of a frame."""
        return self.of(video).get(frame, EMPTY)

    def labels(self, video: str, frames: int, cuts: tuple[int, ...]) -> VideoLabels:
        """The labels of frames, as `draw` takes them.

        Raises `UsageError` for frames beyond the video.
        """
        of_frames = self.of(video)
        out_of_range = [frame for frame in of_frames if not 0 <= frame < frames]
        if out_of_range:
            raise UsageError(
                f"the boxes name frame {out_of_range[0]} of '{video}', which has frames 0 to "
                f"{frames - 1} (frames beyond them: {len(out_of_range):,}); give "
                "the boxes of this video"
            )
        ranges = (Range(frame, frame, present(own)) for frame, own in sorted(of_frames.items()))
        return VideoLabels(tuple(part for part in ranges if part.labels), cuts)

    def notes(self, videos: Iterable[str]) -> tuple[str, ...]:
        """How many videos the file has boxes of that are not among `videos`, and the first."""
        return (*self.remarks, *absence_notes(videos, self.videos, "boxes"))


def read(path: str) -> BoxFile:
    """The boxes in a file; `.json` is COCO's, all else CSV, its classes in the order of names.

    Raises `UsageError` for invalid boxes or frames, with their number and the first.
    """
    if path.lower().endswith(".json"):
        return _of_json(resolve_path(path))
    return _of_csv(path)


def _of_json(path: Place) -> BoxFile:
    content = coco_file.read(path)
    frames = every(content.images, lambda image: _frame(path, image))
    twice = find_repeated(frames)
    if twice:
        video, frame = twice[0]
        raise UsageError(
            f"'{path}' has {number_of(len(twice), 'frame')} more than once, first frame {frame} of "
            f"'{video}'; list every frame once"
        )
    videos: dict[str, dict[int, Boxes]] = defaultdict(dict)
    sizes: dict[str, dict[int, Size]] = defaultdict(dict)
    for image, (video, frame) in zip(content.images, frames, strict=True):
        videos[video][frame] = content.boxes(image)
        size = coco_file.read_size(image)
        if size:
            sizes[video][frame] = size
    return BoxFile(content.classes, videos, content.notes, sizes)


def _frame(path: Place, image: Mapping[str, Any]) -> tuple[str, int]:
    name = PurePosixPath(str(image.get("file_name", "")))
    video = image.get("video", str(name.parent))
    number = str(image.get("frame", "") if "video" in image else name.stem)
    if not video or video == "." or not (number.isascii() and number.isdecimal()):
        raise UsageError(
            f"'{path}': image {image['id']} is no frame of a video; give video and frame, or a "
            "file_name such as clip.mp4/000012.jpg"
        )
    return compose(str(video)), read_whole(number, f"'{path}': the frame of image {image['id']}")


def _of_csv(path: str) -> BoxFile:
    entries = every(read_table(resolve_path(path), "boxes", NEEDED, ("crowd",)), _row)
    if not entries:
        raise UsageError(f"'{path}' has no boxes; write video,frame,label,x0,y0,x1,y1 and lines")
    check_pixels(max(max(entry.corners) for entry in entries), f"'{path}'")
    names = sorted({entry.label for entry in entries})
    place = {name: i for i, name in enumerate(names)}
    of_frame: dict[tuple[str, int], list[BoxLine]] = defaultdict(list)
    for entry in entries:
        of_frame[entry.video, entry.frame].append(entry)
    videos: dict[str, dict[int, Boxes]] = defaultdict(dict)
    for (video, frame), own in of_frame.items():
        labels, crowds = [place[entry.label] for entry in own], [entry.crowd for entry in own]
        videos[video][frame] = once(boxes([entry.corners for entry in own], labels, crowds))
    count = sum(len(objects) for frames in videos.values() for objects in frames.values())
    classes = classes_of_names(names, resolve_path(path))
    return BoxFile(classes, videos, repeats(len(entries) - count, len(entries)))


def _row(row: Row) -> BoxLine:
    corners, frame = [row.number(key) for key in CORNERS], row.whole("frame")
    video = compose(row.get("video"))
    label, crowd = " ".join(row.get("label").split()), row.get("crowd").lower()
    if crowd not in CROWD:
        raise UsageError(f"{row.place}: crowd is {crowd!r}; write 1, 0 or nothing")
    for column, text in (("video", video), ("label", label)):
        if not text:
            raise UsageError(f"{row.place}: column {column} is empty; write a name")
    if corners[0] > corners[2] or corners[1] > corners[3]:
        raise UsageError(
            f"{row.place}: x0, y0, x1, y1 are {', '.join(map(row.get, CORNERS))}, a box of "
            "negative size; write corners, for width and height x0 + width and y0 + height"
        )
    return BoxLine(video, frame, corners, label, CROWD[crowd])
