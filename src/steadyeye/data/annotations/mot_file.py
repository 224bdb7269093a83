"""Files of MOTChallenge: the frames of a sequence, its boxes and tracks, its size and rate."""

import configparser
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from steadyeye.core.boxes import OOD, Boxes, boxes, check_pixels
from steadyeye.core.errors import UsageError, every, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.storage.confinement import check_folder
from steadyeye.core.storage.text_files import read_ini, read_number, read_rows, read_whole
from steadyeye.core.types import Classes
from steadyeye.data.annotations.boxed_videos import Sequences
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.classes.class_lists import classes_of_names, close_list, read
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.frame_folders import without_gaps
from steadyeye.data.video.paths import list_files, resolve

CLASSES = (
    "person",
    "person on vehicle",
    "car",
    "bicycle",
    "motorcycle",
    "non motorized vehicle",
    "static person",
    "distractor",
    "occluder",
    "occluder on the ground",
    "occluder full",
    "reflection",
    "crowd",
)
"""Class 1 … 13 of MOT16 and later (Milan et al., "MOT16: A Benchmark for Multi-Object Tracking",
Table 3), pedestrian, motorbike and car by COCO's names."""

PERSON, VEHICLES, IGNORED = 0, frozenset(CLASSES[2:6]), frozenset(CLASSES[7:])
COLUMNS = ("frame", "id", "left", "top", "width", "height", "active", "class")
INFO, NAMES = "seqinfo.ini", "labels.txt"
LONGEST_SIDE = 2**16
FASTEST = 1e5
"""Frames a second beyond which a rate is a mistake."""


def find_sequences(root: str) -> tuple[Path, list[Path]]:
    """The folder of the sequences, and the folder of each that has boxes.

    Raises `UsageError` where there is none.
    """
    base = resolve(root)
    folders = sorted(path.parent.parent for path in base.glob("*/gt/gt.txt"))
    if not folders:
        raise UsageError(f"'{base}' has no SEQUENCE/gt/gt.txt; give the folder of the sequences")
    return base, folders


def read_sequences(base: Path, folders: Sequence[Path]) -> tuple[Sequences, Classes]:
    """The frames, boxes and sizes of the sequences, and the classes of the boxes."""
    known = read_classes(base, folders)
    frames = {folder.name: read_frames(folder) for folder in folders}
    boxes = {f.name: read_boxes(f, len(frames[f.name]), known) for f in folders}
    sizes = {folder.name: size for folder in folders if (size := read_size(folder))}
    return Sequences(frames, boxes, sizes), known.classes


@dataclass(frozen=True)
class ClassNumbers:
    """The list of classes; for each number from 1 its label, and the label for which it is ignored.

    `is_ignored`: whether a number is never an object.
    """

    classes: Classes
    labels: tuple[int, ...]
    ignored_labels: tuple[int, ...]
    is_ignored: tuple[bool, ...]


def read_classes(base: Path, folders: Sequence[Path]) -> ClassNumbers:
    """MOTChallenge's own classes, or the lines of labels.txt, next to the sequences or in each gt.

    Its `ood` is for objects outside the classes. Raises `UsageError` if files differ.
    """
    paths = (base / NAMES, *(folder / "gt" / NAMES for folder in folders))
    lists = {read(str(path)).names for path in paths if path.is_file()}
    if len(lists) > 1:
        raise UsageError(
            f"'{base}' has several {NAMES} that differ; keep one next to the sequences"
        )
    if lists:
        lines = lists.pop()
        names = tuple(name for name in lines if name != OUTSIDE)
        labels = tuple(OOD if name == OUTSIDE else names.index(name) for name in lines)
        return ClassNumbers(_whole_list(names), labels, labels, (False,) * len(lines))
    labels = tuple(range(len(CLASSES)))
    # what is detected there is a person: a crowd of another class would not forgive that
    ignored = tuple(label if CLASSES[label] in VEHICLES else PERSON for label in labels)
    is_ignored = tuple(name in IGNORED for name in CLASSES)
    return ClassNumbers(_whole_list(CLASSES), labels, ignored, is_ignored)


def _whole_list(names: Sequence[str]) -> Classes:
    return close_list(classes_of_names(names))


def _info(folder: Path) -> configparser.ConfigParser:
    path = folder / INFO
    return read_ini(path, "description") if path.is_file() else configparser.ConfigParser()


def read_frames(folder: Path) -> Sequence[Path]:
    """The frames of a sequence in order, as many as seqinfo.ini says, if it does."""
    info = _info(folder)
    name = info.get("Sequence", "imDir", fallback="img1")
    images = folder / name
    check_folder(folder, images, folder / INFO)
    frames = without_gaps(folder.name, list_files(images, SUFFIXES))
    first = int(re.findall(r"\d+", frames[0].stem)[-1]) if frames else 1
    length = read_whole(
        info.get("Sequence", "seqLength", fallback=str(len(frames))),
        f"'{folder / INFO}', seqLength",
    )
    if first > 1 or length != len(frames):
        raise UsageError(
            f"'{images}' has {number_of(len(frames), 'frame')} from number {first}, where a "
            f"sequence begins at 1 and has {length:,}; complete them, as gt.txt counts them"
        )
    return frames


def read_size(folder: Path) -> tuple[int, int] | None:
    """Height and width of the frames, where seqinfo.ini says them."""
    info = _info(folder)
    sides = [info.get("Sequence", key, fallback="") for key in ("imHeight", "imWidth")]
    if not all(sides):
        return None
    height, width = (read_whole(side, f"'{folder / INFO}', imHeight and imWidth") for side in sides)
    if not (0 < height <= LONGEST_SIDE and 0 < width <= LONGEST_SIDE):
        raise UsageError(f"'{folder / INFO}': imHeight {height}, imWidth {width}; correct them")
    return height, width


def read_rate(folder: Path) -> float | None:
    """Frames a second, where seqinfo.ini says them."""
    text = _info(folder).get("Sequence", "frameRate", fallback="")
    if not text:
        return None
    rate = read_number(text, f"'{folder / INFO}', frameRate")
    if not 0 < rate <= FASTEST:
        raise UsageError(f"'{folder / INFO}': frameRate {rate:g}; correct it")
    return rate


def read_boxes(folder: Path, frames: int, known: ClassNumbers) -> list[Boxes]:
    """The boxes of each of `frames` frames, with the track that each is of."""
    path = folder / "gt" / "gt.txt"
    rows = every(read_rows(path, "boxes"), lambda line: _read_row(path, line, frames, known))
    if twice := find_repeated((row.frame, row.track) for row in rows):
        frame, track = twice[0]
        raise UsageError(f"'{path}' has the object {track} twice in frame {frame}; keep one")
    # right and bottom as written, with pixels from 1; rounded, as 1 was subtracted from the left
    ends = [round(max(row.corners[2:]) + 1, 6) for row in rows]
    check_pixels(max(ends, default=0.0), f"'{path}'")
    of_frame: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        of_frame[row.frame].append(row)
    return [_join(of_frame[frame]) for frame in range(1, frames + 1)]


class _Row(NamedTuple):
    """A line of gt.txt: a box in a frame; whether it is `ignored`."""

    frame: int
    track: int
    corners: list[float]
    label: int
    ignored: bool


def _join(rows: Sequence[_Row]) -> Boxes:
    labels, ignored = [row.label for row in rows], [row.ignored for row in rows]
    tracks = [row.track for row in rows]
    return boxes([row.corners for row in rows], labels, ignored, track=tracks)


def _read_row(
    path: Path, numbered: tuple[int, list[str]], frames: int, known: ClassNumbers
) -> _Row:
    number, line = numbered
    if len(line) < len(COLUMNS):
        raise UsageError(
            f"'{path}' line {number}: {','.join(line)[:80]!r} is no line of MOTChallenge; "
            f"write {', '.join(COLUMNS)}"
        )
    frame, track, left, top, width, height, active, label = (
        read_number(cell, f"'{path}' line {number}, {column}")
        for cell, column in zip(line, COLUMNS, strict=False)
    )
    if label not in range(1, len(known.labels) + 1) or width < 0 or height < 0:
        raise UsageError(
            f"'{path}' line {number}: class {label:g} and size {width:g} × {height:g}; classes "
            f"go from 1 to {len(known.labels)} and sizes are not negative"
        )
    if frame not in range(1, frames + 1):
        raise UsageError(
            f"'{path}' line {number}: frame {frame:g}, but there are {number_of(frames, 'frame')}; "
            "correct the number, or add the image"
        )
    x, y = left - 1, top - 1
    place = int(label) - 1
    ignored = active == 0 or known.is_ignored[place]
    own = (known.ignored_labels if ignored else known.labels)[place]
    return _Row(int(frame), int(track), [x, y, x + width, y + height], own, ignored)
