"""The films of a page: each sprite once, and what each exhibit shows of it."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from steadyeye.core.report_types import Exhibit, Film, FilmFrame, Mark, Section
from steadyeye.report.render.document import Document
from steadyeye.report.render.sprites import Sprite

FILM_BYTES = 3_000_000
"""The most that the JPEGs of all films of a report take; as base64 they are 4 MB of the page."""

Films = Callable[[str, Film], Sprite | None]
"""`(data, film) -> sprite`, or None where it is not kept."""

Key = tuple[str, ...]


@dataclass(frozen=True)
class Reels:
    """The sprites of a page, and `place`: the data and samples of a film → which of them it is."""

    sprites: tuple[Sprite, ...]
    place: dict[Key, int] = field(repr=False)

    def sheets(self) -> Markup:
        """The sprites as JSON for the page."""
        return _json([_sheet(sprite) for sprite in self.sprites])

    def play(self, exhibit: Exhibit) -> Markup | None:
        """What an exhibit shows of its sprite as JSON for the page; None without a film."""
        film = exhibit.film
        if film is None or key(exhibit.data, film) not in self.place:
            return None
        which = self.place[key(exhibit.data, film)]
        still = {picture.sample: i for i, picture in enumerate(exhibit.pictures)}
        return _json(
            {
                "sheet": which,
                "start": film.start,
                "fixed": film.fixed,
                "bar": film.bar,
                "frames": [_frame(frame, still.get(frame.sample)) for frame in film.frames],
            }
        )


def reels(document: Document, stored: Films) -> Reels:
    """The sprites of a report's films that are kept, in its order, up to `FILM_BYTES` of them."""
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
    """Every film of sections with the data that it is of."""
    for section in sections:
        for exhibit in section.exhibits:
            if exhibit.film is not None:
                yield exhibit.data, exhibit.film


def key(data: str, film: Film) -> Key:
    """What two films share that show the same images: models may say other things of them."""
    return (data, *(frame.sample for frame in film.frames))


def _sheet(sprite: Sprite) -> dict[str, Any]:
    return {
        "src": f"data:image/jpeg;base64,{base64.b64encode(sprite.jpeg).decode()}",
        "size": [sprite.width, sprite.height],
        "columns": sprite.columns,
        "rows": -(-sprite.frames // sprite.columns),
    }


def _frame(frame: FilmFrame, still: int | None) -> dict[str, Any]:
    """`still`: which picture of the exhibit is of the same sample."""
    found: dict[str, Any] = {"at": frame.at, "line": frame.line}
    rest = {"score": frame.score, "right": frame.right, "answer": frame.answer, "still": still}
    found |= {name: value for name, value in rest.items() if value not in (None, "")}
    if frame.marks:
        found["marks"] = [_mark(mark) for mark in frame.marks]
    return found


def _mark(mark: Mark) -> list[Any]:
    return [mark.kind, *(round(value) for value in mark.box), mark.text]


def _json(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704
