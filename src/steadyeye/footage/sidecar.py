"""Labels and scene cuts of videos, from a JSON or CSV file beside them.

JSON::

    {"classes": {"bicycle": "n02834778", "car": "n02958343"},
     "videos": {"bikes.mp4": {"cuts": [30, 76],
                              "labels": [{"first": 0, "last": 29, "labels": ["car"]}]}}}

CSV, one range a line, several labels joined by `|`, `first` and `last` empty or left out for the
whole video::

    video,first,last,labels
    bikes.mp4,0,29,car|bicycle
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyeye.classes.known import named
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Classes, Labels
from steadyeye.footage.paths import located
from steadyeye.storage.place import URL, Place

WHOLE = 2**62


@dataclass(frozen=True)
class Range:
    """Frames `first` … `last`, both included, that carry `labels`."""

    first: int
    last: int
    labels: Labels


@dataclass(frozen=True)
class VideoLabels:
    """What the sidecar says of one video; `cuts`: the first frame of each scene but the first."""

    ranges: tuple[Range, ...] = ()
    cuts: tuple[int, ...] = ()

    def at(self, frame: int) -> Labels:
        """The labels of a frame, in ascending order; empty where it has none."""
        found = {c for r in self.ranges if r.first <= frame <= r.last for c in r.labels}
        return tuple(sorted(found))


@dataclass(frozen=True)
class Sidecar:
    """Classes and, by video name, labels and cuts. `classes` is None where nothing is labelled."""

    classes: Classes | None
    videos: Mapping[str, VideoLabels]

    def of(self, video: str) -> VideoLabels:
        """What is known of a video: by its name, its name without suffix, or for all (`*`)."""
        for key in (video, Path(video).stem, "*"):
            if key in self.videos:
                return self.videos[key]
        return VideoLabels()

    def labelled(self, videos: Sequence[str]) -> list[str]:
        """The videos that have labels, in order; all of them where nothing is labelled at all.

        Raises `UsageError` where there are classes and none of the videos has a label.
        """
        if self.classes is None:
            return list(videos)
        found = [video for video in videos if self.of(video).ranges]
        if videos and not found:
            raise UsageError(
                f"the labels say nothing of any of the {len(videos):,} videos, first "
                f"'{videos[0]}'; check their names"
            )
        return found


NOTHING = Sidecar(None, {})


def read(labels: str | None) -> Sidecar:
    """The sidecar at a path, or one label for every frame where `labels` is no file name."""
    if labels is None:
        return NOTHING
    path = located(labels) if URL.match(labels) else Path(labels)
    if path.suffix.lower() not in {".json", ".csv"}:
        return _build(named({labels: None}), {"*": {"labels": [{"labels": [labels]}]}}, labels)
    if not path.is_file():
        raise UsageError(f"no label file at '{path}'; check the path")
    rows = _json(path) if path.suffix.lower() == ".json" else _csv(path)
    listed = rows.get("classes") or _distinct(rows["videos"])
    pairs = listed if isinstance(listed, Mapping) else dict.fromkeys(listed)
    return _build(named(pairs) if pairs else None, rows["videos"], str(path))


def _json(path: Place) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"cannot read the labels '{path}': {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("videos"), dict):
        raise UsageError(f"the labels '{path}' have no 'videos' object; see the docs on sidecars")
    return content


def _csv(path: Place) -> dict[str, Any]:
    videos: dict[str, Any] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            labels = row.get("labels") or row.get("label")
            if not row.get("video") or not labels:
                raise UsageError(f"'{path}' line {line}: needs the columns video and labels")
            entry = {
                "first": row.get("first"),
                "last": row.get("last"),
                "labels": labels.split("|"),
            }
            videos.setdefault(row["video"], {"labels": []})["labels"].append(entry)
    return {"videos": videos}


def _distinct(videos: Mapping[str, Any]) -> list[str]:
    ranges = [entry for video in videos.values() for entry in video.get("labels", [])]
    return sorted({label for entry in ranges for label in entry["labels"]})


def _build(classes: Classes | None, videos: Mapping[str, Any], where: str) -> Sidecar:
    position = {name: i for i, name in enumerate(classes.names)} if classes else {}
    return Sidecar(classes, {name: _video(v, position, where) for name, v in videos.items()})


def _video(video: Mapping[str, Any], position: Mapping[str, int], where: str) -> VideoLabels:
    ranges = tuple(_range(entry, position, where) for entry in video.get("labels", []))
    return VideoLabels(ranges, tuple(sorted(int(cut) for cut in video.get("cuts", []))))


def _range(entry: Mapping[str, Any], position: Mapping[str, int], where: str) -> Range:
    for label in entry["labels"]:
        if label not in position:
            error = unknown("class", label, position)
            raise UsageError(f"the labels '{where}' use a class that is not listed: {error}")
    first, last = _bound(entry.get("first"), 0, where), _bound(entry.get("last"), WHOLE, where)
    if first > last:
        raise UsageError(f"the labels '{where}' have a range from {first} to {last}; swap its ends")
    return Range(first, last, tuple(sorted(position[label] for label in entry["labels"])))


def _bound(value: object, default: int, where: str) -> int:
    if value is None or value == "":
        return default
    try:
        return int(str(value))
    except ValueError:
        raise UsageError(f"the labels '{where}' have the frame number '{value}'") from None
