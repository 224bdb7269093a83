"""Decorators that give classes of sources and models a short `repr` and a table in notebooks."""

from collections.abc import Callable
from typing import Any

from steadyeye.core.abilities import detects
from steadyeye.core.format import number_of
from steadyeye.core.notebook import Facts, Kind, shown_as


def _source(source: Any) -> Facts:
    classes = source.classes
    return (
        ("name", source.name),
        ("samples", number_of(len(source), "sample")),
        ("classes", "no labels" if classes is None else number_of(len(classes), "class")),
        ("columns", f"columns {', '.join(source.columns)}"),
    )


def _model(model: Any) -> Facts:
    names = model.classes
    classes = "classes of the data" if names is None else number_of(len(names), "class")
    kind = "detector" if detects(model) else "classifier"
    return (("name", model.name), ("kind", kind), ("classes", classes))


source_in_short: Callable[[Kind], Kind] = shown_as("Source", _source)
"""Decorates a class of sources."""

model_in_short: Callable[[Kind], Kind] = shown_as("Model", _model)
"""Decorates a class of models."""
