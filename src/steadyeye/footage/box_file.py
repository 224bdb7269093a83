"""Boxes of the frames of videos, from a CSV file beside them.

::

    video,frame,label,x0,y0,x1,y1,crowd
    clip.mp4,12,car,10,20,110,90,

`frame` counts from 0, corners are pixels, half-open; `crowd` may be left out. A frame without a
line has no object.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steadyeye.classes.known import named
from steadyeye.core.boxes import EMPTY, Boxes, boxes, present
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.footage.sidecar import Range, VideoLabels

CORNERS = ("x0", "y0", "x1", "y1")


@dataclass(frozen=True, eq=False)
class BoxFile:
    """Classes and, by video name, the boxes of its frames."""

    classes: Classes
    videos: Mapping[str, Mapping[int, Boxes]]

    def at(self, video: str, frame: int) -> Boxes:
        """The boxes of a frame; the video by its name or its name without suffix."""
        found = self.videos.get(video, self.videos.get(Path(video).stem, {}))
        return found.get(frame, EMPTY)

    def labels(self, video: str, frames: int, cuts: tuple[int, ...]) -> VideoLabels:
        """What stands in which frame, as `draw` takes it. Raises `UsageError` for frames beyond."""
        found = self.videos.get(video, self.videos.get(Path(video).stem, {}))
        beyond = [frame for frame in found if not 0 <= frame < frames]
        if beyond:
            raise UsageError(
                f"the boxes name frame {beyond[0]} of '{video}', which has frames 0 to {frames - 1}"
            )
        ranges = [Range(frame, frame, present(each)) for frame, each in sorted(found.items())]
        return VideoLabels(tuple(each for each in ranges if each.labels), cuts)


def read(path: str) -> BoxFile:
    """The boxes in a CSV file; classes in the order of their names. Raises `UsageError`."""
    rows: dict[str, dict[int, list[tuple[list[float], str, bool]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                video, frame, entry = _row(path, number, row)
                rows[video][frame].append(entry)
    except OSError as error:
        raise UsageError(f"cannot read the boxes '{path}': {error.strerror}") from error
    names = sorted({name for f in rows.values() for e in f.values() for _, name, _ in e})
    if not names:
        raise UsageError(f"'{path}' has no boxes; write video,frame,label,x0,y0,x1,y1 and lines")
    place = {name: i for i, name in enumerate(names)}
    videos = {
        video: {
            frame: boxes(
                [box for box, _, _ in entries],
                [place[name] for _, name, _ in entries],
                [crowd for *_, crowd in entries],
            )
            for frame, entries in frames.items()
        }
        for video, frames in rows.items()
    }
    return BoxFile(named(dict.fromkeys(names)), videos)


def _row(
    path: str, number: int, row: Mapping[str, str | None]
) -> tuple[str, int, tuple[list[float], str, bool]]:
    try:
        corners = [float(row[key] or "nan") for key in CORNERS]
        frame, video, label = int(row["frame"] or ""), row["video"] or "", row["label"] or ""
    except (KeyError, ValueError):
        raise UsageError(
            f"'{path}' line {number}: needs video, frame, label, {', '.join(CORNERS)} as numbers"
        ) from None
    if not (corners[0] <= corners[2] and corners[1] <= corners[3]) or not video or not label:
        raise UsageError(f"'{path}' line {number}: {dict(row)} is no box of a class; mend it")
    return video, frame, (corners, label, (row.get("crowd") or "") in ("1", "true"))
