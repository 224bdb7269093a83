"""The pictures of a label study: the anchor and a film strip of each set, made when needed.

`strips.jsonl` lists them, one line per set, once its pictures are stored: a stopped study continues
from there, and no picture is made twice.

Sets whose pictures cannot be made count as sets that nobody could label, which widens both ends;
otherwise the labels after the first set without a label would never count. They are tried again at
every start.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import append_line, encode, write_file, write_output
from steadyeye.core.storage.text_files import read_json
from steadyeye.core.types import Source
from steadyeye.data.annotations.review_set import image_name, image_path
from steadyeye.data.images.image_file import thumbnail
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN

LOG = "strips.jsonl"
FRAMES = 7  # of a strip, the anchor among them
LARGE, SMALL = 900, 320  # pixels of the longest side: of the anchor, of a frame of the strip


@dataclass(frozen=True)
class FilmStrip:
    """The pictures of a set: `image` of its anchor, and `strip`, (offset, image) in time order.

    Names of images as `review_set.image_name` makes them.
    """

    set: str
    image: str
    strip: tuple[tuple[int, str], ...]

    @property
    def payload(self) -> Mapping[str, Any]:
        """The part of a set that a reviewer receives: not its name, which may reveal its class."""
        strip = [{"offset": offset, "image": image} for offset, image in self.strip]
        return {"image": self.image, "strip": strip}


def read_strips(root: Path) -> dict[str, FilmStrip]:
    """Set → its pictures, for all sets that have them.

    A last line that was cut off when the study was stopped is left out. Raises `UsageError` for any
    other invalid line.
    """
    path = root / LOG
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    *lines, rest = text.split("\n")
    if rest:
        write_output(path, "".join(f"{line}\n" for line in lines).encode())
    strips = {}
    for number, line in enumerate(lines, 1):
        try:
            name, image, strip = json.loads(line)
            pictures = tuple((int(offset), str(picture)) for offset, picture in strip)
            strips[str(name)] = FilmStrip(str(name), str(image), pictures)
        except (ValueError, TypeError, RecursionError):
            raise UsageError(
                f"line {number} of '{path}' is damaged; delete the file, and the pictures are made "
                "again"
            ) from None
    return strips


@dataclass(frozen=True, eq=False)
class SetFrames:
    """The source of pictures: sealed `predictions`, and the `source` of their rows.

    `k`: native frames by which a set reaches from its anchor; None for single images, whose ids are
    their own.
    """

    predictions: Predictions
    source: Source
    k: int | None

    def make_strip(self, name: str, root: Path, sets: Sequence[str] = ()) -> FilmStrip:
        """Stores the pictures of a set, or of several `sets` of its scene, under `root`.

        Raises `SampleError` for a frame that cannot be decoded any more.
        """
        rows, offsets = self._find_frames(name, dict.fromkeys([name, *sets]))
        strip, anchor = [], ""
        for place in _choose_frames(offsets):
            image, offset = self.source[int(rows[place])].image(), int(offsets[place])
            if offset == 0:
                anchor = _store(root, thumbnail(image, LARGE, quality=88))
            strip.append((offset, _store(root, thumbnail(image, SMALL, quality=80))))
        return FilmStrip(name, anchor, tuple(strip))

    def _find_frames(
        self, name: str, sets: Iterable[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The predicted rows of sets in time order, and their offsets from the anchor of `name`.

        A frame of several sets stands once.
        """
        table = self.predictions
        if self.k is None:
            return np.flatnonzero(table.ids == name), np.zeros(1, dtype=np.int64)
        anchors = [self._find_anchor(member) for member in sets]
        own = np.zeros(len(table), dtype=np.bool_)
        for anchor in anchors:
            own |= (table.groups == table.groups[anchor]) & (self._measure(anchor) <= self.k)
        rows = np.flatnonzero(own & table.valid)
        middle = self._find_anchor(name)
        if "frame" in table.tags:
            frames = np.asarray(table.tags["frame"], dtype=np.int64)
            offsets = frames[rows] - frames[middle]
        else:
            offsets = np.asarray(table.tags.get("offset", np.zeros(len(table))))[rows]
        offsets, first = np.unique(offsets.astype(np.int64), return_index=True)
        return rows[first], offsets

    def _find_anchor(self, name: str) -> int:
        """The row of a set's anchor: the anchor of the group, or the frame or image with the id."""
        table = self.predictions
        if "offset" in table.tags:
            return int(np.flatnonzero((table.groups == name) & (table.tags["offset"] == 0))[0])
        return int(np.flatnonzero(table.ids == name)[0])

    def _measure(self, anchor: int) -> NDArray[np.int64]:
        """(n,) the distance of each row from an anchor in native frames, for rows of its group."""
        table = self.predictions
        for tag in ("offset", "frame"):
            if tag in table.tags:
                values = np.asarray(table.tags[tag], dtype=np.int64)
                return np.asarray(np.abs(values - values[anchor]), dtype=np.int64)
        return np.asarray(np.arange(len(table)) != anchor, dtype=np.int64)


def _choose_frames(offsets: NDArray[np.int64]) -> list[int]:
    """At most `FRAMES` indices spread evenly over a set, with the first, the last and the anchor.

    `offsets`: rising offsets of the frames, with 0.
    """
    if len(offsets) <= FRAMES:
        return list(range(len(offsets)))
    places = np.linspace(0, len(offsets) - 1, FRAMES).round().astype(np.intp)
    anchor = int(np.flatnonzero(offsets == 0)[0])
    places[int(np.argmin(np.abs(places - anchor)))] = anchor
    return sorted({0, *places.tolist(), len(offsets) - 1})


def _store(root: Path, content: bytes) -> str:
    """Stores a JPEG file, unless it exists; returns its name."""
    name = image_name(content)
    path = image_path(root, name)
    if not path.is_file():
        write_output(path, content)
    return name


def note_strip(root: Path, strip: FilmStrip) -> None:
    """Adds a set whose pictures are all stored to the list."""
    append_line(root / LOG, json.dumps([strip.set, strip.image, strip.strip], ensure_ascii=False))


FILE = "no-pictures.json"


def read_missing(root: Path) -> dict[str, str]:
    """Set → why its pictures could not be made, of a study in a folder.

    Raises `UsageError` for a file that cannot be read.
    """
    path = root / FILE
    content = read_json(path, "sets without pictures") if path.is_file() else {}
    known = content if isinstance(content, dict) else {}
    return {name: str(why) for name, why in known.items()}


def write_missing(root: Path, missing: Mapping[str, str]) -> None:
    """Writes why pictures are missing; without an entry there is no file."""
    if missing:
        write_file(root / FILE, encode(missing))
    else:
        (root / FILE).unlink(missing_ok=True)


def list_missing_labels(names: Iterable[str], of_images: bool) -> dict[str, tuple[str, ...]]:
    """Set without pictures → the label for "nobody could tell"; `of_images`: for images."""
    return dict.fromkeys(names, (UNKNOWN,) if of_images else ())
