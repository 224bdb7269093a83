"""The items of a label study: each set with its pictures, added in the study's order as needed.

People label few of the thousands of sets of a study, so pictures are made shortly before they are
needed.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.review_set import image_path
from steadyeye.review.database import items
from steadyeye.review.protocol.counts import read_free_counts
from steadyeye.review.protocol.stages import STAGES, ReviewPlan
from steadyeye.review.studies.film_strips import (
    FilmStrip,
    SetFrames,
    note_strip,
    read_missing,
    read_strips,
    write_missing,
)
from steadyeye.review.transactions import Database, UnavailableError
from steadyeye.review.workflow.quality import set_gold
from steadyeye.review.workflow.queue import Item, add_items

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
