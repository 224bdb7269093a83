"""A card of a model to share: one picture with its main numbers, and a page with the picture."""

import unicodedata
from dataclasses import dataclass

from markupsafe import Markup

from steadyeye.core.format import clean_xml
from steadyeye.report.render.html import open_templates, read_static

ROWS = 4
"""Data sets that a card has room for."""

WIDTHS = {" fijlrtI.,:;'!|()[]-": 0.5, "+=<>~#&": 0.85, "mwMW@%": 1.1}
"""Widths in DejaVu Sans Bold, the widest of the card's fonts, as shares of the letters' size."""
CAPITAL, WIDE, OTHER = 0.85, 1.1, 0.72
"""The same for capital letters, for those as wide as they are high, and for all others."""


@dataclass(frozen=True)
class CardRow:
    """A number of a card, as text; `bar`: value, low and high as shares, None for other units."""

    data: str
    metric: str
    value: str
    details: str
    rank: str
    models: int
    bar: tuple[float, float, float] | None


@dataclass(frozen=True)
class Card:
    """What the card of a model says; `title` in a sentence, `origin`: date, version and commit."""

    model: str
    title: str
    subtitle: str
    rows: tuple[CardRow, ...]
    note: str
    origin: str


def render_picture(card: Card) -> str:
    """The card as SVG, 800 wide, that needs nothing else; same input, same bytes.

    A character that SVG cannot hold, such as a control character in a name, is replaced by U+FFFD.
    """
    environment = open_templates()
    environment.filters["fit"] = fit_size
    template = environment.get_template("card.svg")
    text: str = template.render(card=card, height=178 + 104 * len(card.rows))
    return clean_xml(text) + "\n"


def fit_size(text: str, size: float, room: float) -> float:
    """The size of letters in pixels, `size` or less, at which a text stays within `room` pixels.

    Estimated from its letters, as an SVG that needs nothing else cannot measure a text.
    """
    width = sum(map(_width, text))
    return round(min(size, room / width), 1) if width else size


def _width(letter: str) -> float:
    for letters, width in WIDTHS.items():
        if letter in letters:
            return width
    if unicodedata.east_asian_width(letter) in "WF":
        return WIDE
    return CAPITAL if letter.isupper() else OTHER


def render_card(card: Card, picture: str, name: str) -> str:
    """The page of a card with the picture within it, as `render_picture` gives it.

    `name`: of its files, without a suffix.
    """
    template = open_templates().get_template("card.html")
    markup = Markup(picture)  # noqa: S704 - escaped where it was rendered
    script = Markup(read_static("card.js"))  # noqa: S704 - our own file
    text: str = template.render(card=card, picture=markup, name=name, script=script)
    return text + "\n"
