"""Labels and scene cuts of videos, from a JSON or CSV file beside them.

JSON::

    {"classes": {"bicycle": "n02834778", "car": "n02958343"},
     "videos": {"bikes.mp4": {"cuts": [30, 76],
                              "labels": [{"first": 0, "last": 29, "labels": ["car"]}]}}}

The listed classes occur in the data, but a model with more classes may predict any of them. If
`classes` lists all possible classes, add `"closed": true`.

CSV, one range a line, several labels joined by `|`, `first` and `last` empty or left out for the
whole video::

    video,first,last,labels
    bikes.mp4,0,29,car|bicycle
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyeye.core.errors import (
    UsageError,
    find_repeated,
    list_texts,
    refuse_misspelt,
    shorten,
    unknown,
)
from steadyeye.core.storage.files import URL, Place
from steadyeye.core.storage.number_columns import list_unread_numbers
from steadyeye.core.storage.text_files import Row, read_json, read_table, read_whole
from steadyeye.core.types import Classes, Labels
from steadyeye.data.classes.class_lists import classes_of_names, close_list
from steadyeye.data.video.paths import (
    absence_notes,
    check_names,
    compose,
    find_name,
    resolve_path,
)

WHOLE = 2**62
ALL = "*"
"""The key for all videos."""
COLUMNS = ("labels", "label", "first", "last")


@dataclass(frozen=True)
class Range:
    """Frames `first` … `last`, both included, that carry `labels`."""

    first: int
    last: int
    labels: Labels


@dataclass(frozen=True)
class VideoLabels:
    """The sidecar's entry of one video; `cuts`: the first frame of each scene except the first.

    `repeats`: of `share_of_repeats`, if cuts were looked for.
    """

    ranges: tuple[Range, ...] = ()
    cuts: tuple[int, ...] = ()
    repeats: float | None = field(default=None, repr=False)

    def at(self, frame: int) -> Labels:
        """The labels of a frame, in ascending order; empty where it has none."""
        labels = {c for r in self.ranges if r.first <= frame <= r.last for c in r.labels}
        return tuple(sorted(labels))

    def within(self, video: str, frames: int) -> "VideoLabels":
        """The same, of a video of `frames` frames.

        Raises `UsageError` where a frame is named that it does not have: such labels are of another
        video, of another cut of it, or counted from 1.
        """
        ends = [frame for range_ in self.ranges for frame in (range_.first, range_.last)]
        outside = [frame for frame in (*ends, *self.cuts) if frames <= frame < WHOLE]
        if outside:
            raise UsageError(
                f"the labels or cuts name frame {max(outside)} of '{video}', which has frames 0 "
                f"to {frames - 1}; correct them, and leave 'last' empty for the rest of a video"
            )
        return self


@dataclass(frozen=True)
class Sidecar:
    """Classes and, by video name, labels and cuts. `classes` is None where nothing is labelled."""

    classes: Classes | None
    videos: Mapping[str, VideoLabels]

    @property
    def present(self) -> frozenset[int]:
        """The classes that some frame carries."""
        ranges = (range_ for video in self.videos.values() for range_ in video.ranges)
        return frozenset(label for range_ in ranges for label in range_.labels)

    def of(self, video: str) -> VideoLabels:
        """The entry of a video by one of its names (see `names_of`), or that for all (`*`)."""
        return self.videos.get(find_name(video, self.videos) or ALL, VideoLabels())

    def labelled_videos(self, videos: Sequence[str]) -> list[str]:
        """The videos that have labels, in order; all of them where nothing is labelled at all.

        Raises `UsageError` where there are classes and none of the videos has a label, and for a
        name that several videos go by.
        """
        check_names(videos, self.videos, "labels")
        if self.classes is None:
            return list(videos)
        labelled = [video for video in videos if self.of(video).ranges]
        if videos and not labelled:
            others = [name for name, own in self.videos.items() if own.ranges]
            raise UsageError(
                f"no labels for any video, first '{videos[0]}' of {len(videos):,}; the label file "
                f"has labels for {list_texts(others) or 'no video'}: use the same names"
            )
        return labelled

    def notes(self, videos: Iterable[str]) -> tuple[str, ...]:
        """How many videos there are labels of that are not among `videos`, and the first."""
        return absence_notes(videos, self.videos.keys() - {ALL}, "labels")


def read(labels: str | None) -> Sidecar:
    """The sidecar at a path, or one label for every frame where `labels` is no file name.

    Raises `UsageError` for a file that is absent, or whose classes or labels are invalid.
    """
    if labels is None:
        return Sidecar(None, {})
    path = resolve_path(labels) if URL.match(labels) else Path(labels)
    if path.suffix.lower() not in {".json", ".csv"}:
        label = _name(labels)
        return _build(
            classes_of_names({label: None}), {ALL: {"labels": [{"labels": [label]}]}}, label
        )
    if not path.is_file():
        raise UsageError(f"no label file at '{path}'; check the path")
    rows = _json(path) if path.suffix.lower() == ".json" else _csv(path)
    ranges = (entry for video in rows["videos"].values() for entry in video.get("labels", []))
    class_names = rows.get("classes") or sorted({n for entry in ranges for n in entry["labels"]})
    is_list = isinstance(class_names, list) and all(isinstance(n, str) for n in class_names)
    wnids = dict.fromkeys(class_names) if is_list else class_names
    if not isinstance(wnids, Mapping) or not all(isinstance(w, str | None) for w in wnids.values()):
        raise UsageError(f"the labels '{path}': classes must be names, or {{name: wnid or null}}")
    pairs = {_name(name): wnid for name, wnid in wnids.items()}
    if len(pairs) < len(wnids):
        raise UsageError(f"the labels '{path}' have two classes that differ by blanks; keep one")
    try:
        classes = classes_of_names(pairs) if pairs else None
    except UsageError as error:
        raise UsageError(f"the labels '{path}': {error}") from None
    if rows.get("closed") and classes:
        classes = close_list(classes)
    return _build(classes, rows["videos"], str(path))


def _json(path: Place) -> dict[str, Any]:
    content = read_json(path, "label file", lambda pairs: _once(path, pairs))
    if not isinstance(content, dict) or not isinstance(content.get("videos"), dict):
        raise UsageError(f"the labels '{path}' have no 'videos' object; see the docs on sidecars")
    key = f"the labels '{path}' have a key"
    refuse_misspelt(content, ("classes", "closed", "videos"), key)
    whole = content.get("closed", False)
    if not isinstance(whole, bool) or (whole and not content.get("classes")):
        raise UsageError(
            f"the labels '{path}' have closed={whole!r}; write true and list all classes, or "
            "leave it out"
        )
    for name, video in content["videos"].items():
        if not isinstance(video, dict) or not isinstance(video.get("labels", []), list):
            raise UsageError(f"the labels '{path}': '{name}' must be an object with labels or cuts")
        refuse_misspelt(video, ("labels", "cuts"), key)
        video["labels"] = [_entry(path, name, entry) for entry in video.get("labels", [])]
    videos = _once(path, [(compose(name), video) for name, video in content["videos"].items()])
    return {**content, "videos": videos}


def _entry(path: Place, video: str, entry: Any) -> dict[str, Any]:
    """A range with its labels as a list of names without blanks around them."""
    labels = entry.get("labels") if isinstance(entry, dict) else None
    several = [labels] if isinstance(labels, str) else labels
    if not isinstance(several, list) or not all(isinstance(label, str) for label in several):
        raise UsageError(
            f"the labels '{path}': '{video}' has a range without a list of labels; "
            'give it "labels": [...]'
        )
    known = ("first", "last", "labels")
    refuse_misspelt(entry, known, f"the labels '{path}' have a key")
    # without one of first and last a range would have more frames than was meant
    numbers = {key for key, value in entry.items() if isinstance(value, int | float)} - {*known}
    if numbers and not {"first", "last"} <= entry.keys():
        raise UsageError(
            f"the labels '{path}': '{video}' has a range with '{shorten(min(numbers))}'; a range "
            "has first, last and labels"
        )
    return {**entry, "labels": _names(several)}


def split_labels(cell: str) -> list[str]:
    """The labels in a cell of a CSV file: `car | bicycle`."""
    return _names(cell.split("|"))


def _names(labels: Sequence[str]) -> list[str]:
    # in their order and as often as they stand there: DAVIS numbers the objects of a sequence so
    return list(filter(None, map(_name, labels)))


def _name(label: str) -> str:
    """A label without blanks around it, which are no part of a name: `car | bicycle`."""
    return " ".join(label.split())


def _once(path: Place, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = find_repeated(key for key, _ in pairs)
    if twice:
        raise UsageError(f"the labels '{path}' name '{twice[0]}' twice; join the two")
    return dict(pairs)


def _csv(path: Place) -> dict[str, Any]:
    videos: dict[str, Any] = {}
    rows = read_table(path, "labels", ("video",), COLUMNS)
    if not rows:
        raise UsageError(f"the labels '{path}' have no line after the header; add one per range")
    _check_ranges(path, rows)
    for row in rows:
        video, labels = (
            compose(row.get("video")),
            split_labels(row.get("labels") or row.get("label")),
        )
        if not video or not labels:
            raise UsageError(
                f"{row.place}: needs a video and its labels in the columns video and labels; "
                "take out lines of frames without a label"
            )
        entry = {"first": row.get("first"), "last": row.get("last"), "labels": labels}
        videos.setdefault(video, {"labels": []})["labels"].append(entry)
    return {"videos": videos}


def _check_ranges(path: Place, rows: Sequence[Row]) -> None:
    """Raises `UsageError` for frames in other columns than first and last: `frame`, `start`.

    Without them every frame of a video would have all its labels.
    """
    lacking = [column for column in ("first", "last") if column not in rows[0].cells]
    others = list_unread_numbers(path, "labels", ("video", *COLUMNS)) if lacking else []
    others = [column for column in others if not _numbers_lines(path, column)]
    if others:
        raise UsageError(
            f"the labels '{path}' have numbers in the column '{shorten(others[0])}', but no column "
            f"{' and '.join(lacking)}; name the first and the last frame of a range so (one frame: "
            "the same in both), or take the column out"
        )


def _numbers_lines(path: Place, column: str) -> bool:
    """Whether a column numbers three lines or more, each of another video, as an id does."""
    rows = read_table(path, "labels", ("video", column))
    cells, videos = [row.get(column) for row in rows], {row.get("video") for row in rows}
    if not 3 <= len(rows) == len(videos) or not all(cell.isdecimal() for cell in cells):
        return False
    return [int(cell) - int(cells[0]) for cell in cells] == list(range(len(rows)))


def _build(classes: Classes | None, videos: Mapping[str, Any], where: str) -> Sidecar:
    position = {name: i for i, name in enumerate(classes.names)} if classes else {}
    return Sidecar(classes, {name: _video(v, position, where) for name, v in videos.items()})


def _video(video: Mapping[str, Any], position: Mapping[str, int], where: str) -> VideoLabels:
    ranges = tuple(_range(entry, position, where) for entry in video.get("labels", []))
    cuts = video.get("cuts", [])
    if not isinstance(cuts, list):
        raise UsageError(f"the labels '{where}' have the cuts '{cuts}'; give a list of frames")
    return VideoLabels(ranges, tuple(sorted({_read_bound(cut, 0, where) for cut in cuts})))


def _range(entry: Mapping[str, Any], position: Mapping[str, int], where: str) -> Range:
    for label in entry["labels"]:
        if label not in position:
            error = unknown("class", label, position)
            raise UsageError(f"the labels '{where}' use a class that is not listed: {error}")
    first, last = (
        _read_bound(entry.get("first"), 0, where),
        _read_bound(entry.get("last"), WHOLE, where),
    )
    if first > last:
        raise UsageError(f"the labels '{where}' have a range from {first} to {last}; swap its ends")
    # in their order, by which DAVIS numbers the objects of a sequence
    return Range(first, last, tuple(position[label] for label in entry["labels"]))


def _read_bound(value: object, default: int, where: str) -> int:
    if value is None or value == "":
        return default
    number = read_whole(str(value), f"the labels '{where}', a frame number")
    if number < 0:
        raise UsageError(
            f"the labels '{where}' have the frame number {number}; frames count from 0"
        )
    return number
