"""Decorators that give classes of sources and models a short `repr` and a table in notebooks."""

from collections.abc import Callable
from typing import Any

from steadyeye.core.abilities import detects
from steadyeye.core.format import number_of
from steadyeye.core.notebook import Facts, Kind, shown_as


def _source(source: Any) -> Facts:
    there = source.classes
    return (
        ("name", source.name),
        ("samples", number_of(len(source), "sample")),
        ("classes", "no labels" if there is None else number_of(len(there), "class")),
        ("columns", f"columns {', '.join(source.columns)}"),
    )


def _model(model: Any) -> Facts:
    there = model.classes
    classes = "classes of the data" if there is None else number_of(len(there), "class")
    kind = "detector" if detects(model) else "classifier"
    return (("name", model.name), ("kind", kind), ("classes", classes))


source_in_short: Callable[[Kind], Kind] = shown_as("Source", _source)
"""Decorates a class of sources."""

model_in_short: Callable[[Kind], Kind] = shown_as("Model", _model)
"""Decorates a class of models."""
