"""The pictures and films of a report: made while the data is there, kept in the run's folder."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Film, Heat, Mark, Picture, Section
from steadyeye.core.storage.files import Place, write_file
from steadyeye.core.types import Image, Source
from steadyeye.report.render import sprites
from steadyeye.report.render.sprites import FILM_BYTES, films, key

SMALL: Mapping[str, int] = {"longest": 64, "quality": 70}
"""How a thumbnail is kept: some 2 kB, so that a page can hold hundreds."""

Take = Callable[[Image], None]
"""What is done with an image once it is decoded."""


@dataclass
class _Reel:
    """A film that is written when its last frame is there.

    `pixels`: of a tile. `frames`: how many there are. `most`: bytes of the film.
    """

    path: Place
    pixels: int
    frames: int
    most: int
    tiles: dict[int, Image] = field(default_factory=dict)
    shape: tuple[int, int] | None = None

    def add(self, place: int, image: Image) -> None:
        """Takes the image of a frame. Frames of several sizes make no film."""
        self.shape = self.shape or (image.shape[0], image.shape[1])
        if self.shape != image.shape[:2]:
            return
        self.tiles[place] = sprites.tile(image, self.pixels)
        if len(self.tiles) == self.frames:
            tiles = [self.tiles.pop(i) for i in range(self.frames)]
            write_file(self.path, sprites.join(tiles, self.shape, self.most).pack())


def store(
    run: Place,
    sources: Sequence[Source],
    tables: Sequence[Predictions],
    sections: Sequence[Section],
) -> None:
    """Keeps the pictures and films that sections of a run's report show, those not kept yet.

    `tables`: the predictions they are about. Every image is decoded once, those of a video in their
    order. What cannot be decoded is left out; the report says so.
    """
    by_mark = {source.fingerprint: source for source in sources}
    for table in _distinct(tables):
        if table.fingerprint not in by_mark:
            continue
        needed = [*_stills(run, table, sections), *_reels(run, table, sections)]
        if needed:
            (run / "pictures").mkdir(parents=True, exist_ok=True)
            _decode(table, _source_of(table, by_mark[table.fingerprint]), needed)


def _distinct(tables: Sequence[Predictions]) -> Iterator[Predictions]:
    """One table of each data, and every search: each looks at images of its own."""
    last = {table.data: table for table in tables}
    for table in tables:
        if last[table.data] is table or _is_searched(table):
            yield table


def _is_searched(table: Predictions) -> bool:
    return "operator" in table.columns and "profile" not in table.columns


def _source_of(table: Predictions, source: Source) -> Source:
    """The source with the rows of a table: the rounds of a search are of more than the first."""
    if not _is_searched(table):
        return source
    # with what degrades images, which whoever only reads a report does without
    from steadyeye.degradation.sweep import Sweep

    if not isinstance(source, Sweep):
        return source
    tags = table.tags
    return source.with_rows(tags["image"], tags["operator"], tags["level"])


def stored_picture(runs: Sequence[Place], mark: str, picture: Picture) -> bytes | None:
    """The JPEG of a picture of the source with the fingerprint `mark`; None where none is kept."""
    return _first(_picture(run, mark, picture) for run in runs)


def stored_film(runs: Sequence[Place], mark: str, film: Film) -> sprites.Sprite | None:
    """The frames of a film of the source with the fingerprint `mark`; None where none is kept."""
    data = _first(_film(run, mark, film) for run in runs)
    return None if data is None else sprites.unpack(data)


def _stills(
    run: Place, table: Predictions, sections: Sequence[Section]
) -> Iterator[tuple[str, Take]]:
    """The samples of pictures that are not kept, and what writes them."""
    for picture in dict.fromkeys(_pictures(sections, table.data)):
        path = _picture(run, table.fingerprint, picture)
        if not path.is_file():
            yield picture.sample, partial(_write, path, picture)


def _pictures(sections: Sequence[Section], data: str) -> Iterator[Picture]:
    for section in sections:
        for exhibit in (*section.exhibits, *filter(None, [section.lead])):
            yield from exhibit.pictures if exhibit.data == data else ()
        for figure in section.figures:
            yield from figure.thumbnails if figure.data == data else ()


def _write(path: Place, picture: Picture, image: Image) -> None:
    # with OpenCV, which a report of pictures that are kept does without
    from steadyeye.data.images.image_file import thumbnail

    size = SMALL if picture.small else {}
    marked = draw_marks(*enlarge(draw_heat(image, picture.heat), picture.marks))
    write_file(path, thumbnail(marked, **size))


def _reels(
    run: Place, table: Predictions, sections: Sequence[Section]
) -> Iterator[tuple[str, Take]]:
    """The samples of films that are not kept, and what takes their images.

    All films of a report share `FILM_BYTES` by their frames.
    """
    every = {key(data, film): (data, film) for data, film in films(sections)}
    total = sum(len(film.frames) for _, film in every.values())
    pixels = sprites.area(total, FILM_BYTES)
    for data, film in every.values():
        most = FILM_BYTES * len(film.frames) // total
        path = _film(run, table.fingerprint, film)
        if data == table.data and not path.is_file():
            reel = _Reel(path, pixels, len(film.frames), most)
            yield from ((frame.sample, partial(reel.add, i)) for i, frame in enumerate(film.frames))


def _decode(table: Predictions, source: Source, needed: Sequence[tuple[str, Take]]) -> None:
    """Decodes every sample that is wanted once and hands it on."""
    # rows of the source: those that a review left out are among them
    sealed = table if table.candidates is None else table.candidates
    row_of = {name: row for row, name in enumerate(sealed.ids.tolist())}
    takes: dict[int, list[Take]] = {}
    for sample, take in needed:
        # what another search looked at is not among these
        if sample in row_of or not _is_searched(table):
            takes.setdefault(row_of[sample], []).append(take)
    rows = np.array(sorted(takes), dtype=np.intp)
    for row in rows[_in_time(sealed, rows)].tolist():
        with suppress(SampleError):
            image = source[row].image()
            for take in takes[row]:
                take(image)


def _in_time(table: Predictions, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The order in which a video is decoded forwards, though its sets overlap."""
    if not {"video", "frame"} <= set(table.tags) or "level" in table.tags:
        return np.arange(len(rows))
    _, video = np.unique(table.tags["video"][rows], return_inverse=True)
    return np.asarray(np.lexsort((rows, table.tags["frame"][rows], video)), dtype=np.intp)


def _picture(run: Place, mark: str, picture: Picture) -> Place:
    upon = [str(part) for part in (picture.marks, picture.heat) if part]
    upon += ["small"] if picture.small else []
    return run / "pictures" / f"{_name(mark, picture.sample, *upon)}.jpg"


def _film(run: Place, mark: str, film: Film) -> Place:
    return run / "pictures" / f"{_name(mark, *(frame.sample for frame in film.frames))}.film"


def _name(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _first(paths: Iterator[Place]) -> bytes | None:
    """What the first of these files holds that is there."""
    return next((path.read_bytes() for path in paths if path.is_file()), None)


COLOURS = {"truth": (255, 255, 255), "right": (0, 158, 115), "wrong": (213, 94, 0)}
"""Of boxes: Okabe and Ito's green and vermilion; boxes that are wrong are dashed too."""
INK = (0, 0, 0)
"""Of letters on a ground of the box's colour: a contrast of 5 : 1 at least."""
DARK = (20, 20, 20)
LONGEST = 480
"""Pixels of the longer side of a picture in a report."""
FONT = cv2.FONT_HERSHEY_SIMPLEX
LETTERS = 0.65
"""Of OpenCV's font, in a picture 480 pixels long: capitals of 14 pixels, of 10 on a phone."""
DASH = 9
"""Length of a dash in a picture 480 pixels long; the gap after it is two thirds as long."""

Rectangle: TypeAlias = tuple[int, int, int, int]


def draw_marks(image: Image, marks: Sequence[Mark]) -> Image:
    """A copy of the image, (h, w, 3) uint8 RGB, with its marks; the image itself without any.

    Labels stand on a ground of their box's colour, inside the image, none over another one as long
    as there is room.
    """
    if not marks:
        return image
    out = image.copy()
    # so that lines and letters have one size in the thumbnail, whatever that of the image
    unit = max(max(image.shape[:2]) / 480, 1.0)
    width = max(round(2 * unit), 1)
    for mark in marks:
        x0, y0, x1, y1 = (round(value) for value in mark.box)
        cv2.rectangle(out, (x0, y0), (x1, y1), DARK, width + 2)
        step = round(DASH * unit) if mark.kind == "wrong" else 0
        for start, stop in _strokes((x0, y0, x1, y1), step):
            cv2.line(out, start, stop, COLOURS[mark.kind], width)
    texts = [mark for mark in marks if mark.text]
    for mark, place in zip(texts, label_places(out.shape[:2], texts, unit), strict=True):
        x0, y0, x1, y1 = place
        cv2.rectangle(out, (x0, y0), (x1, y1), COLOURS[mark.kind], cv2.FILLED)
        at = (x0 + round(3 * unit), y1 - round(5 * unit))
        thick = max(round(1.2 * unit), 1)
        cv2.putText(out, mark.text, at, FONT, LETTERS * unit, INK, thick, cv2.LINE_AA)
    return out


def enlarge(image: Image, marks: Sequence[Mark]) -> tuple[Image, tuple[Mark, ...]]:
    """An image and its marks, enlarged to `LONGEST` where it is smaller and has any marks.

    A label is as high on every picture: on a small image it would cover what it names.
    """
    scale = LONGEST / max(image.shape[:2])
    if not marks or scale <= 1:
        return image, tuple(marks)
    size = round(image.shape[1] * scale), round(image.shape[0] * scale)
    large = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)
    moved = (replace(mark, box=tuple(value * scale for value in mark.box)) for mark in marks)
    return large, tuple(moved)


def label_places(shape: tuple[int, int], marks: Sequence[Mark], unit: float) -> list[Rectangle]:
    """Where the labels of marks stand, x0 y0 x1 y1 in pixels of an image of `shape`, h w.

    Above the upper left corner of their boxes, shifted into the image, and down past those that
    stand there already.
    """
    height, width = shape
    places: list[Rectangle] = []
    for mark in marks:
        (wide, high), _ = cv2.getTextSize(mark.text, FONT, LETTERS * unit, 1)
        wide, high = round(wide + 6 * unit), round(high + 9 * unit)
        x = max(min(round(mark.box[0]), width - wide), 0)
        y = first = max(min(round(mark.box[1]) - high, height - high), 0)
        while y + high <= height and any(_overlap((x, y, x + wide, y + high), p) for p in places):
            y += high + 1
        y = y if y + high <= height else first
        places.append((x, y, x + wide, y + high))
    return places


def _overlap(first: Rectangle, other: Rectangle) -> bool:
    return (
        first[0] < other[2] and other[0] < first[2] and first[1] < other[3] and other[1] < first[3]
    )


def _strokes(box: Rectangle, dash: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The lines of a rectangle from end to end: its sides; their dashes where `dash` is not 0."""
    x0, y0, x1, y1 = box
    for (ax, ay), (bx, by) in pairwise([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]):
        length = max(abs(bx - ax), abs(by - ay))
        step = dash * 5 // 3 if dash else max(length, 1)
        for at in range(0, max(length, 1), step):
            begin, end = at / max(length, 1), min(at + (dash or length), length) / max(length, 1)
            yield (
                (round(ax + (bx - ax) * begin), round(ay + (by - ay) * begin)),
                (round(ax + (bx - ax) * end), round(ay + (by - ay) * end)),
            )


def draw_heat(image: Image, heat: Heat | None) -> Image:
    """The image in dim grey under the colours of a map; the image itself without one.

    From nothing, which stays grey, over violet and orange to light yellow: OpenCV's inferno, whose
    lightness rises evenly, so that it is read without telling red from green.
    """
    if heat is None:
        return image
    size = image.shape[1], image.shape[0]
    values = np.asarray(heat.rows, dtype=np.float32)
    strength = np.clip(cv2.resize(values, size, interpolation=cv2.INTER_CUBIC), 0, 1)
    levels = np.round(strength * 255).astype(np.uint8)
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1].astype(np.float32)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)[..., None] * 0.6
    opacity = np.minimum(1.6 * strength, 0.8)[..., None]
    return np.asarray(grey * (1 - opacity) + colours * opacity, dtype=np.uint8)
