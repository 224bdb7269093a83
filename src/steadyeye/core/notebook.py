"""Objects at a prompt or in a notebook: one line, or a small table."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeAlias, TypeVar

Bar: TypeAlias = tuple[float, float, float]
"""The low end of an interval, the value and the high end, each a share 0…1."""

LONGEST = 100  # characters of a `repr`
WIDTH, HEIGHT = 120, 12  # pixels of a bar

Kind = TypeVar("Kind", bound=type)


def short(kind: str, text: str) -> str:
    """`<Kind text>` of at most 100 characters, on one line."""
    line = " ".join(f"<{kind} {text}".split())
    return f"{line}>" if len(line) < LONGEST else f"{line[: LONGEST - 2]}…>"


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    bars: Sequence[Bar | None] = (),
) -> str:
    """A table as HTML, all text escaped; `bars`: an interval per row, in one more cell."""
    titles = [*columns, *([""] if bars else [])]
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = []
    for i, row in enumerate(rows):
        cells = [f"<td>{escape(text)}</td>" for text in row]
        cells += [f"<td>{_draw_interval(bars[i])}</td>"] if bars else []
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def prose(title: str, paragraphs: Sequence[str]) -> str:
    """A title and paragraphs as HTML, escaped."""
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    return f"<h4>{escape(title)}</h4>{text}"


Facts: TypeAlias = Sequence[tuple[str, str]]
"""The properties of an object as pairs of name and text."""


def shown_as(kind: str, facts: Callable[[Any], Facts]) -> Callable[[Kind], Kind]:
    """Gives a class a short `repr` and a table for notebooks.

    `facts`: returns the properties of an object; the `repr` has the texts alone.
    """

    def line(self: Any) -> str:
        return short(kind, ", ".join(text for _, text in facts(self) if text))

    def html(self: Any) -> str:
        return table(kind, ("", ""), facts(self))

    def give(cls: Kind) -> Kind:
        setattr(cls, "__repr__", line)  # noqa: B010
        setattr(cls, "_repr_html_", html)  # noqa: B010
        return cls

    return give


def _draw_interval(bar: Bar | None) -> str:
    """An interval as a line with a dot at the value, on a scale from 0 to 1."""
    if bar is None:
        return ""
    low, value, high = (round(WIDTH * min(max(end, 0.0), 1.0), 1) for end in bar)
    middle = HEIGHT / 2
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="interval">'
        f'<line x1="0" x2="{WIDTH}" y1="{middle}" y2="{middle}" stroke="currentColor" '
        'stroke-opacity="0.2"/>'
        f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" stroke="#0072B2" '
        'stroke-width="4"/>'
        f'<circle cx="{value}" cy="{middle}" r="4" fill="#0072B2"/></svg>'
    )
