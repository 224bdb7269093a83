"""Lines that are told apart by colour and by dash, and legends that show both."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.charts.style import PALETTE, colour

DASHES = ((1, 0), (7, 3), (2, 2), (10, 3, 2, 3), (4, 5), (1, 4), (14, 4))
"""One for each colour of the palette: whoever cannot tell two colours apart has the dash."""
STROKES: Mapping[str, Any] = {
    "symbolType": "stroke",
    "symbolSize": 800,
    "symbolStrokeWidth": 2.5,
    "symbolFillColor": "transparent",
    "rowPadding": -8,
}
"""What makes the symbols of a legend pieces of lines, long enough for a dash to show."""


def draw_bands(bands: int, **channels: Any) -> dict[str, Any]:
    """Areas from the field that the channel `y` names up to the field "high".

    `bands`: how many lie over each other; the more, the fainter each, so that lines stay readable.
    """
    opacity = min(0.15, 0.3 / max(bands, 1))
    return {
        "mark": {"type": "area", "opacity": opacity},
        "encoding": {**channels, "y2": {"field": "high"}},
    }


def lines(
    names: Sequence[str],
    field: str,
    colours: Sequence[str] = PALETTE,
    dashes: Sequence[Sequence[int]] = DASHES,
) -> dict[str, Any]:
    """The channels `color` and `strokeDash` of lines named by `field`, with one legend for both.

    Where there are more names than `colours` or `dashes` these come round again.
    """
    painted = [colours[i % len(colours)] for i in range(len(names))]
    return {
        "color": {**line_colour(names, field), "scale": {"domain": [*names], "range": painted}},
        "strokeDash": dash(names, field, dashes),
    }


def line_colour(names: Sequence[str], field: str) -> dict[str, Any]:
    """The channel `color` of lines whose dash says something else."""
    hue = colour(names, field, "")
    return {**hue, "legend": {**hue["legend"], **STROKES}}


def dash(
    names: Sequence[str], field: str, dashes: Sequence[Sequence[int]] = DASHES
) -> dict[str, Any]:
    """The channel `strokeDash` of lines named by `field`; by default the first is solid."""
    patterns = [list(dashes[i % len(dashes)]) for i in range(len(names))]
    scale = {"domain": list(names), "range": patterns}
    return {**line_colour(names, field), "scale": scale}
