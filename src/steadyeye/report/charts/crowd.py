"""Figures of more models than a reader can tell apart: which of them are drawn."""

from collections.abc import Mapping
from typing import Any

MOST = 7
"""As many as the palette has colours."""

BELOW: Mapping[str, Any] = {"title": None, "orient": "bottom", "symbolOpacity": 1}
"""A legend below its chart; how many of its columns fit is for the page to say."""


def choose_drawn(values: Mapping[str, float | None], most: int = MOST) -> list[str]:
    """The names with the largest values, at most `most`, in the order they were given."""
    best = sorted(values, key=lambda name: -(values[name] or 0.0))[:most]
    return [name for name in values if name in set(best)]


def describe_omitted(values: Mapping[str, float | None], most: int = MOST) -> str:
    """What a caption says of the models that are not drawn; empty where all are."""
    if len(values) <= most:
        return ""
    return f" Drawn: the {most} most accurate of {len(values)} models; the table has all."
