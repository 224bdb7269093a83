"""The items of a label study: each set with its pictures, added in the study's order as needed.

People label few of the thousands of sets of a study, so pictures, the anchor and a film strip of
each set, are made shortly before they are needed. `strips.jsonl` lists them, one line per set, once
its pictures are stored: a stopped study continues from there, and no picture is made twice.

Sets whose pictures cannot be made count as sets that nobody could label, which widens both ends;
otherwise the labels after the first set without a label would never count. They are tried again at
every start.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.files import append_line, encode, write_file, write_output
from steadyeye.core.storage.text_files import read_json
from steadyeye.core.types import Source
from steadyeye.data.annotations.review_set import image_name, image_path
from steadyeye.data.images.image_file import thumbnail
from steadyeye.metrics.label_studies.answered_sets import UNKNOWN
from steadyeye.review.database import items
from steadyeye.review.protocol.counts import read_free_counts
from steadyeye.review.protocol.stages import STAGES, ReviewPlan
from steadyeye.review.transactions import Database, UnavailableError
from steadyeye.review.workflow.quality import set_gold
from steadyeye.review.workflow.queue import Item, add_items

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


STAGE = "labels"
AHEAD = 40  # sets that nobody was given yet
BATCH = 5  # sets that are added together
PAUSE = 0.5  # seconds between two looks at the queue

logger = logging.getLogger("uvicorn.error")


@dataclass(eq=False)
class StudyItems:
    """The items of a study in a folder. `order`: the sets in the order of labelling.

    `images`: names of pictures. `faults`: set → why it has no pictures. `scenes`: set →
    those of its scene, where one label does for a scene. `of_images`: whether all classes of single
    images are asked for. `pending`: sets whose pictures are there, and whose items are not.
    """

    root: Path
    database: Database
    frames: SetFrames
    plan: ReviewPlan
    order: Sequence[str]
    classes: Sequence[str]
    scenes: Mapping[str, Sequence[str]]
    of_images: bool = False
    images: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    strips: dict[str, FilmStrip] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)

    @property
    def gold(self) -> Mapping[str, Mapping[str, Any]]:
        """Set → known answer, for the gold questions of the plan."""
        return self.plan.gold.answers.get(STAGE, {})

    def begin(self, first: int, watch: Callable[[str, int], Callable[[int], None]]) -> None:
        """Adds the gold questions, the first sets, and those whose pictures exist already.

        Pictures that were deleted since are made again.

        `watch`: called with a description and a number of pictures; returns a function that takes
        the number of further finished ones.
        """
        strips = read_strips(self.root)
        lost = [name for name, strip in strips.items() if not self._has_pictures(strip)]
        self.strips = {name: strip for name, strip in strips.items() if name not in lost}
        self.faults = read_missing(self.root)
        self.images.update(*(_list_images(strip) for strip in self.strips.values()))
        first_sets = dict.fromkeys([*self.gold, *self.faults, *lost, *self.order[:first]])
        missing = [name for name in first_sets if name not in self.strips]
        advance = watch("pictures", len(missing)) if missing else None
        for name in missing:
            self._make(name)
            if advance:
                advance(1)
        self.pending |= {name for name in (*self.gold, *self.order) if name in self.strips}
        self._add_pending()

    def keep_ahead(self, stop: threading.Event) -> None:
        """Adds sets whenever few unassigned ones are left, until `stop` is set."""
        while not stop.wait(PAUSE):
            # a database that cannot be read or written now is asked again
            with suppress(UnavailableError):
                self.add_needed()

    def add_needed(self) -> int:
        """Adds sets if few unassigned ones are left; returns how many."""
        with self.database.reading() as connection:
            free = read_free_counts(connection).get(STAGE, 0)
        rest = (n for n in self.order if n not in self.strips and n not in self.faults)
        names = [name for name, _ in zip(rest, range(BATCH if free < AHEAD else 0), strict=False)]
        for name in names:
            self._make(name)
        self._add_pending()
        return len(names)

    def has_image(self, name: str) -> bool:
        """Whether a picture is of the study; another server of it may have made it."""
        if name not in self.images:
            query = select(items.c.payload).where(items.c.stage == STAGE)
            with self.database.reading() as connection:
                for payload in connection.execute(query).scalars():
                    self.images.update([payload["image"], *(f["image"] for f in payload["strip"])])
        return name in self.images

    def _has_pictures(self, strip: FilmStrip) -> bool:
        return all(image_path(self.root, name).is_file() for name in _list_images(strip))

    def _describe(self, name: str) -> Mapping[str, Any]:
        more = {"single": True} if self.of_images else {}
        return {**self.strips[name].payload, **more}

    def _make(self, name: str) -> None:
        """Makes the pictures of a set; a failure is recorded and logged."""
        try:
            strip = self.frames.make_strip(name, self.root, self.scenes.get(name, ()))
        except (UsageError, OSError) as error:
            self.faults = {**self.faults, name: str(error)}
            write_missing(self.root, self.faults)
            logger.error(
                "nobody is asked about %s, because its pictures cannot be made: %s", name, error
            )
            return
        if name in self.faults:
            self.faults = {key: why for key, why in self.faults.items() if key != name}
            write_missing(self.root, self.faults)
        note_strip(self.root, strip)
        self.strips[name] = strip
        self.images.update(_list_images(strip))
        self.pending.add(name)

    def _add_pending(self) -> None:
        """Adds the items of pending sets, except existing ones.

        Raises `UnavailableError` if another server of the study adds them at this moment.
        """
        if not self.pending:
            return
        places = {name: place for place, name in enumerate(self.order)}

        def work(connection: Connection) -> None:
            query = select(items.c.key).where(items.c.stage == STAGE)
            known = frozenset(connection.execute(query).scalars())
            new = [
                Item(STAGE, name, name, self._describe(name), position=places.get(name, -1))
                for name in sorted(self.pending - known)
            ]
            add_items(connection, new, self.plan)
            for name in sorted(self.pending & self.gold.keys()):
                answer = STAGES[STAGE].check(self.gold[name], self.classes)
                set_gold(connection, STAGE, name, answer)

        self.database.write(work)
        self.pending.clear()


def _list_images(strip: FilmStrip) -> Sequence[str]:
    return [strip.image, *(image for _, image in strip.strip)]
