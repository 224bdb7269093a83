"""The frames of a film as one JPEG of tiles, small enough for a page."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from steadyeye.core.format import isolate
from steadyeye.core.report_types import Exhibit, Film, FilmFrame, Section
from steadyeye.core.types import Image
from steadyeye.report.render.document import Document

BLOCK = 16  # pixels that JPEG codes together: tiles of whole blocks do not bleed into each other
LONGEST = 320  # pixels of the longest side of a tile
SMALLEST = 96 * 54  # pixels of a tile, below which little is seen
BYTES_PER_PIXEL = 0.2  # measured on frames of DAVIS at the first of `QUALITIES`: 0.13 to 0.21
QUALITIES = (55, 40, 25)
SHRINK = 0.7


@dataclass(frozen=True)
class Sprite:
    """Tiles of one size, in rows of `columns`, as a JPEG.

    `width`, `height`: of the original images in pixels; the shape of a tile differs slightly.
    `tile`: width and height of a tile. `frames`: number of tiles.
    """

    jpeg: bytes
    width: int
    height: int
    tile: tuple[int, int]
    columns: int
    frames: int

    def pack(self) -> bytes:
        """The sprite as bytes: a line of JSON, then the JPEG."""
        about = {key: value for key, value in asdict(self).items() if key != "jpeg"}
        return json.dumps(about).encode() + b"\n" + self.jpeg


def unpack(data: bytes) -> Sprite:
    """The sprite from the bytes of `Sprite.pack`."""
    line, _, jpeg = data.partition(b"\n")
    about = json.loads(line)
    return Sprite(**{**about, "tile": tuple(about["tile"])}, jpeg=jpeg)


def area(frames: int, most: int) -> int:
    """The pixels of a tile such that `frames` tiles take about `most` bytes.

    At least `SMALLEST`, with which many tiles take more.
    """
    return max(int(most / BYTES_PER_PIXEL / max(frames, 1)), SMALLEST)


def tile(image: Image, pixels: int) -> Image:
    """The image, (h, w, 3) uint8 RGB, as a tile of whole blocks of about `pixels` or fewer."""
    height, width = image.shape[:2]
    scale = min(np.sqrt(pixels / (height * width)), LONGEST / max(height, width), 1.0)
    return _resize(image, scale)


def join(tiles: Sequence[Image], shape: tuple[int, int], most: int) -> Sprite:
    """The sprite of tiles of one size, of images of `shape`, height and width.

    `most`: bytes; a larger JPEG, as of noisy images, is coded with lower quality, then with smaller
    tiles.
    """
    import simplejpeg

    height, width = tiles[0].shape[:2]
    columns = int(np.ceil(np.sqrt(len(tiles) * height / width)))
    sheet = np.zeros((-(-len(tiles) // columns) * height, columns * width, 3), dtype=np.uint8)
    for i, image in enumerate(tiles):
        y, x = i // columns * height, i % columns * width
        sheet[y : y + height, x : x + width] = image
    for quality in QUALITIES:
        jpeg = bytes(simplejpeg.encode_jpeg(sheet, quality, "RGB", "420"))
        if len(jpeg) <= most:
            break
    else:
        if min(height, width) > BLOCK:
            return join([_resize(image, SHRINK) for image in tiles], shape, most)
    return Sprite(jpeg, shape[1], shape[0], (width, height), columns, len(tiles))


def _resize(image: Image, scale: float) -> Image:
    """The scaled image in whole blocks, at least one; less than a block larger than before."""
    import cv2  # which a report, that only reads films, does without

    height, width = image.shape[:2]
    size = tuple(max(int(length * scale / BLOCK), 1) * BLOCK for length in (width, height))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


FILM_BYTES = 3_000_000
"""Most bytes of the JPEGs of all films of a report; as base64 they are 4 MB of the page."""

Films = Callable[[str, Film], Sprite | None]
"""`(data, film) -> sprite`, or None if it is not stored."""

Key = tuple[str, ...]

COMPACT = (",", ":")
"""Separators of JSON without spaces."""


@dataclass(frozen=True)
class Reels:
    """The sprites of a page; `place`: data and samples of a film → index of its sprite."""

    sprites: tuple[Sprite, ...]
    place: dict[Key, int] = field(repr=False)

    def sheets(self) -> Markup:
        """The sprites as JSON for the page."""
        sheets = [
            {
                "src": data_uri(sprite.jpeg),
                "size": [sprite.width, sprite.height],
                "columns": sprite.columns,
                "rows": -(-sprite.frames // sprite.columns),
            }
            for sprite in self.sprites
        ]
        return embed_json(sheets, COMPACT)

    def play(self, exhibit: Exhibit) -> Markup | None:
        """The film of an exhibit as JSON for the page; None without a film."""
        film = exhibit.film
        if film is None or key(exhibit.data, film) not in self.place:
            return None
        still = {picture.sample: i for i, picture in enumerate(exhibit.pictures)}
        content = {
            "sheet": self.place[key(exhibit.data, film)],
            "start": film.start,
            "fixed": film.fixed,
            "bar": film.bar,
            "verdicts": film.verdicts,
            "frames": [_frame(frame, still.get(frame.sample)) for frame in film.frames],
            # of each frame the first letter of the object's state
            "lanes": [
                (isolate(lane.name), "".join(state[0] for state in lane.states))
                for lane in film.lanes
            ],
        }
        return embed_json(content, COMPACT)


def reels(document: Document, stored: Films) -> Reels:
    """The stored sprites of a report's films, in its order, up to `FILM_BYTES`."""
    sprites: list[Sprite] = []
    place: dict[Key, int] = {}
    left = FILM_BYTES
    for data, film in films(document.sections):
        name = key(data, film)
        sprite = None if name in place else stored(data, film)
        if sprite is not None and len(sprite.jpeg) <= left:
            left -= len(sprite.jpeg)
            place[name] = len(sprites)
            sprites.append(sprite)
    return Reels(tuple(sprites), place)


def films(sections: Sequence[Section]) -> Iterator[tuple[str, Film]]:
    """Every film of the sections with its data."""
    for section in sections:
        for exhibit in section.exhibits:
            if exhibit.film is not None:
                yield exhibit.data, exhibit.film


def key(data: str, film: Film) -> Key:
    """The key of a film, which is equal for films of the same images."""
    return (data, *(frame.sample for frame in film.frames))


def _frame(frame: FilmFrame, still: int | None) -> dict[str, Any]:
    """`still`: index of the exhibit's picture of the same sample."""
    content: dict[str, Any] = {"at": frame.at, "line": isolate(frame.line)}
    rest = {"score": frame.score, "right": frame.right, "answer": frame.answer, "still": still}
    content |= {name: value for name, value in rest.items() if value not in (None, "")}
    if frame.marks:
        content["marks"] = [
            [mark.kind, *(round(value) for value in mark.box), mark.text] for mark in frame.marks
        ]
    return content


def data_uri(jpeg: bytes) -> str:
    """A JPEG as a data URI."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def embed_json(content: Any, separators: tuple[str, str] | None = None) -> Markup:
    """Plain values as JSON that cannot end its script element; `separators` as of `json.dumps`."""
    text = json.dumps(content, ensure_ascii=False, separators=separators)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704
