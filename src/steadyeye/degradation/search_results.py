"""Failure points from the predictions of a search."""

import numpy as np

from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.degradation.failure_points import FailurePoint, finite
from steadyeye.degradation.failure_search import Search, exhaustive

METHOD = "sequential tests: contains the level of a full sweep over these images, ≥ 95 %"


def state(predictions: Predictions, thresholds: tuple[float, ...]) -> tuple[Search, list[str]]:
    """What a search has learnt, and the names of its operators."""
    levels = predictions.sweep["levels"]
    tags = predictions.tags
    images = int(predictions.right[tags["level"] == 0].sum())
    asked = {}
    for which, operator in enumerate(levels):
        mine = tags["operator"] == operator
        for level in np.unique(tags["level"][mine]).tolist():
            right = predictions.right[mine & (tags["level"] == level)]
            asked[which, level] = (len(right), int(right.sum()))
    return Search(images, list(levels.values()), thresholds, asked), list(levels)


def searched_points(predictions: Predictions, thresholds: tuple[float, ...]) -> list[FailurePoint]:
    """The failure points of every operator as far as the search went, with what they rest on."""
    found, operators = state(predictions, thresholds)
    return [
        _point(predictions, found, which, operator, threshold)
        for operator, which in sorted(zip(operators, range(len(operators)), strict=True))
        for threshold in thresholds
    ]


def _point(
    predictions: Predictions, found: Search, which: int, operator: str, threshold: float
) -> FailurePoint:
    levels = found.levels[which]
    bracket = found.bracket(which, threshold)
    level = found.level(which, threshold)
    tags = predictions.tags
    there = (tags["operator"] == operator) & (tags["level"] == level)
    changed, brightness = (
        float(tags[tag][there].mean()) if there.any() else None for tag in ("changed", "brightness")
    )
    high = levels[bracket.high] if bracket.high < len(levels) else None
    low = levels[bracket.low + 1] if bracket.low + 1 < len(levels) else None
    return FailurePoint(
        operator, threshold, finite(level), low, high, changed, brightness, found.images, METHOD
    )


def cost(predictions: Predictions) -> str:
    """What the search took, beside a whole sweep."""
    passes = len(predictions)
    found, _ = state(predictions, ())
    whole = exhaustive(int((predictions.tags["level"] == 0).sum()), found)
    return f"{passes:,} forward passes, {percent(passes / whole)} of the {whole:,} of a full sweep"
