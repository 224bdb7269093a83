"""A card of a model to share: one picture with its main numbers, and a page with the picture."""

from dataclasses import dataclass

from markupsafe import Markup

from steadyeye.report.render.html import open_templates

ROWS = 4
"""Data sets that a card has room for."""


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
    """The card as SVG, 800 wide, that needs nothing else; same input, same bytes."""
    template = open_templates().get_template("card.svg")
    text: str = template.render(card=card, height=178 + 104 * len(card.rows))
    return text + "\n"


def render_card(card: Card, picture: str, name: str) -> str:
    """The page of a card with the picture within it, as `render_picture` gives it.

    `name`: of its files, without a suffix.
    """
    template = open_templates().get_template("card.html")
    markup = Markup(picture)  # noqa: S704 - escaped where it was rendered
    text: str = template.render(card=card, picture=markup, name=name)
    return text + "\n"
