"""The pictures and films of a report, made from the data and stored in the run's folder."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Film, Picture, Section
from steadyeye.core.storage.files import Place, write_file
from steadyeye.core.types import Image, Source
from steadyeye.report.render import sprites
from steadyeye.report.render.sprites import FILM_BYTES, films, key

SMALL: Mapping[str, int] = {"longest": 64, "quality": 70}
"""Size and quality of a thumbnail: about 2 kB, so that a page can hold hundreds."""

Take = Callable[[Image], None]
"""A function that receives a decoded image."""


@dataclass
class _Reel:
    """A film that is written after its last frame.

    `pixels`: of a tile. `frames`: their number. `most`: bytes of the film.
    """

    path: Place
    pixels: int
    frames: int
    most: int
    tiles: dict[int, Image] = field(default_factory=dict)
    shape: tuple[int, int] | None = None

    def add(self, place: int, image: Image) -> None:
        """Adds the image of a frame. Frames of different sizes make no film."""
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
    """Stores the pictures and films of a run's report that are not stored yet.

    `tables`: their predictions. Every image is decoded once, those of a video in order. Images that
    cannot be decoded are left out; the report says so.
    """
    by_mark = {source.fingerprint: source for source in sources}
    # every search has its own images
    last = {table.data: table for table in tables}
    for table in tables:
        repeated = last[table.data] is not table and not _is_searched(table)
        if repeated or table.fingerprint not in by_mark:
            continue
        needed = [*_stills(run, table, sections), *_reels(run, table, sections)]
        if needed:
            (run / "pictures").mkdir(parents=True, exist_ok=True)
            _decode(table, _source_of(table, by_mark[table.fingerprint]), needed)


def _is_searched(table: Predictions) -> bool:
    return "operator" in table.columns and "profile" not in table.columns


def _source_of(table: Predictions, source: Source) -> Source:
    """The source with the rows of a table; the rounds of a search have more rows than the first."""
    if not _is_searched(table):
        return source
    # with what degrades images, which whoever only reads a report does without
    from steadyeye.degradation.sweep import Sweep

    if not isinstance(source, Sweep):
        return source
    tags = table.tags
    return source.with_rows(tags["image"], tags["operator"], tags["level"])


def stored_picture(runs: Sequence[Place], mark: str, picture: Picture) -> bytes | None:
    """The stored JPEG of a picture of the source with the fingerprint `mark`, or None."""
    return _first(_picture(run, mark, picture) for run in runs)


def stored_film(runs: Sequence[Place], mark: str, film: Film) -> sprites.Sprite | None:
    """The stored frames of a film of the source with the fingerprint `mark`, or None."""
    data = _first(_film(run, mark, film) for run in runs)
    return None if data is None else sprites.unpack(data)


def _stills(
    run: Place, table: Predictions, sections: Sequence[Section]
) -> Iterator[tuple[str, Take]]:
    """The samples of pictures that are not stored yet, and functions that write them."""
    pictures: list[Picture] = []
    for section in sections:
        for exhibit in (*section.exhibits, *filter(None, [section.lead])):
            pictures += exhibit.pictures if exhibit.data == table.data else ()
        for figure in section.figures:
            pictures += figure.thumbnails if figure.data == table.data else ()
    for picture in dict.fromkeys(pictures):
        path = _picture(run, table.fingerprint, picture)
        if not path.is_file():
            yield picture.sample, partial(_write, path, picture)


def _write(path: Place, picture: Picture, image: Image) -> None:
    # with OpenCV, which a report of pictures that are kept does without
    from steadyeye.data.images.image_file import thumbnail
    from steadyeye.report.overlays import draw_heat, draw_marks, enlarge

    marked = draw_marks(*enlarge(draw_heat(image, picture.heat), picture.marks))
    write_file(path, thumbnail(marked, **(SMALL if picture.small else {})))


def _reels(
    run: Place, table: Predictions, sections: Sequence[Section]
) -> Iterator[tuple[str, Take]]:
    """The samples of films that are not stored yet, and functions that receive their images.

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
    """Decodes every requested sample once and passes it to its functions."""
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
    """The order of samples in which a video is decoded forwards, although its sets overlap."""
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
    """The content of the first of these files that exists."""
    return next((path.read_bytes() for path in paths if path.is_file()), None)
