"""MOTChallenge: sequences of frames with the boxes of people and vehicles."""

import configparser
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from steadyeye.core.boxes import EMPTY, Boxes, boxes
from steadyeye.core.errors import UsageError, every
from steadyeye.core.format import number_of
from steadyeye.core.storage.confinement import check_folder
from steadyeye.core.storage.text_files import read_ini, read_number, read_rows, read_whole
from steadyeye.data.annotations.box_pm_sets import boxed_sets
from steadyeye.data.classes.class_lists import classes_of_names, close_list
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.frame_folders import without_gaps
from steadyeye.data.video.paths import list_files, resolve
from steadyeye.data.video.pm_set_source import Drawing, FrameSets

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

IGNORED = frozenset(CLASSES[7:])
COLUMNS = ("frame", "id", "left", "top", "width", "height", "active", "class")
INFO = "seqinfo.ini"
LONGEST_SIDE = 2**16


def mot(root: str, anchors: int | str = 1, k: int = 10, seed: int = 0) -> FrameSets:
    """MOTChallenge's layout: SEQUENCE/img1 and SEQUENCE/gt/gt.txt, pm-sets drawn from each.

    `root`: the folder of the sequences. A line of gt.txt is frame, id, left, top, width, height,
    active, class, visibility; frames and pixels count from 1, so that boxes begin at left − 1 and
    top − 1. Inactive boxes, distractors, occluders, reflections and crowds neither reward nor
    punish. `anchors`: drawn a sequence, by `seed`, among the frames with an object; neighbours are
    all frames within ±`k`. Raises `UsageError` for lines that are none and files that are missing.
    Milan et al., "MOT16", 2016.

    Example: `mot(root='MOT17/train', anchors=10, k=10)`
    """
    base = resolve(root)
    folders = sorted(path.parent.parent for path in base.glob("*/gt/gt.txt"))
    if not folders:
        raise UsageError(f"'{base}' has no SEQUENCE/gt/gt.txt; give the folder of the sequences")
    frames = {folder.name: _frames(folder) for folder in folders}
    objects = {folder.name: _boxes(folder, len(frames[folder.name])) for folder in folders}
    classes = close_list(classes_of_names(dict.fromkeys(CLASSES)))
    sizes = {folder.name: size for folder in folders if (size := _size(folder))}
    return boxed_sets(base.name, frames, objects, classes, Drawing(anchors, k, seed), sizes)


def _info(folder: Path) -> configparser.ConfigParser:
    path = folder / INFO
    return read_ini(path, "description") if path.is_file() else configparser.ConfigParser()


def _frames(folder: Path) -> Sequence[Path]:
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


def _size(folder: Path) -> tuple[int, int] | None:
    """Height and width of the frames, where seqinfo.ini says them."""
    info = _info(folder)
    sides = [info.get("Sequence", key, fallback="") for key in ("imHeight", "imWidth")]
    if not all(sides):
        return None
    height, width = (read_whole(side, f"'{folder / INFO}', imHeight and imWidth") for side in sides)
    if not (0 < height <= LONGEST_SIDE and 0 < width <= LONGEST_SIDE):
        raise UsageError(f"'{folder / INFO}': imHeight {height}, imWidth {width}; correct them")
    return height, width


def _boxes(folder: Path, frames: int) -> list[Boxes]:
    path = folder / "gt" / "gt.txt"
    rows: dict[int, list[tuple[list[float], int, bool]]] = defaultdict(list)
    rows_ = every(read_rows(path, "boxes"), lambda line: _row(path, *line, frames))
    tracks: set[tuple[int, int]] = set()
    for frame, track, box, label, ignored in rows_:
        if (frame, track) in tracks:
            raise UsageError(f"'{path}' has the object {track} twice in frame {frame}; keep one")
        tracks.add((frame, track))
        rows[frame].append((box, label, ignored))
    return [
        boxes([b for b, _, _ in rows[i]], [c for _, c, _ in rows[i]], [x for *_, x in rows[i]])
        if i in rows
        else EMPTY
        for i in range(1, frames + 1)
    ]


def _row(
    path: Path, number: int, line: list[str], frames: int
) -> tuple[int, int, list[float], int, bool]:
    """Frame, object, corners, class from 0 and whether it is ignored."""
    if len(line) < len(COLUMNS):
        raise UsageError(
            f"'{path}' line {number}: {','.join(line)[:80]!r} is no line of MOTChallenge: "
            f"{', '.join(COLUMNS)}"
        )
    frame, track, left, top, width, height, active, label = (
        read_number(cell, f"'{path}' line {number}, {column}")
        for cell, column in zip(line, COLUMNS, strict=False)
    )
    if label not in range(1, len(CLASSES) + 1) or width < 0 or height < 0:
        raise UsageError(
            f"'{path}' line {number}: class {label:g} and size {width:g} × {height:g}; classes "
            f"go from 1 to {len(CLASSES)} and sizes are not negative"
        )
    if frame not in range(1, frames + 1):
        raise UsageError(
            f"'{path}' line {number}: frame {frame:g}, but there are {number_of(frames, 'frame')}"
        )
    x, y = left - 1, top - 1
    ignored = active == 0 or CLASSES[int(label) - 1] in IGNORED
    return int(frame), int(track), [x, y, x + width, y + height], int(label) - 1, ignored
