"""Failure points: the first level of an operator at which accuracy falls below a threshold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats import bootstrap
from steadyeye.degradation.profiles import Profiles


@dataclass(frozen=True)
class FailurePoint:
    """Where accuracy first is below `threshold`; None where it never is within the levels.

    `low`, `high`: the 95 % interval of the level, None where it lies beyond the last. `changed`:
    mean share of pixels changed there; `brightness`: mean value there, 0…255.
    """

    operator: str
    threshold: float
    level: int | None
    low: int | None
    high: int | None
    changed: float | None
    brightness: float | None
    n: int
    method: str


def failure_points(found: Profiles, thresholds: tuple[float, ...]) -> list[FailurePoint]:
    """The failure points of every operator, thresholds in the order given, over the baseline set.

    The interval goes from the first level at which accuracy may be below, as far as its lower end
    says, to the first at which its upper end is: the threshold lies within the interval of accuracy
    (`bootstrap.mean_ends`) or beyond it from one level to the next. None where that end never is.
    """
    drawn = bootstrap.draws(found.videos)
    predictions = found.predictions
    points = []
    for operator, levels, rows in found.curves():
        right = predictions.right[rows].astype(np.float32)
        accuracy = right.mean(axis=1)
        ends_of = bootstrap.mean_ends(right, drawn, (0, 1))
        if found.baseline == "right":
            # right at level 0 by selection: nothing is estimated there
            for end in ends_of:
                end[0] = 1
        for threshold in thresholds:
            at, low, high = (
                first_below(each[:, None], levels, threshold)[0] for each in (accuracy, *ends_of)
            )
            there = rows[levels == at]
            changed, brightness = (
                float(predictions.tags[tag][there].mean()) if there.size else None
                for tag in ("changed", "brightness")
            )
            ends = (finite(at), finite(low), finite(high))
            n = len(found.images)
            points.append(
                FailurePoint(operator, threshold, *ends, changed, brightness, n, drawn.method)
            )
    return points


def first_below(
    accuracy: NDArray[np.floating], levels: NDArray[np.int64], threshold: float
) -> NDArray[np.float64]:
    """(m,) the first of `levels` at which each column of (levels, m) is below; `inf` for none."""
    # a share that equals the threshold must not fall below it by the rounding of a float32 sum
    below = accuracy < threshold - 1e-6
    return np.where(below.any(axis=0), levels[below.argmax(axis=0)], np.inf)


def finite(level: float) -> int | None:
    """The level, or None for `inf`."""
    return int(level) if np.isfinite(level) else None
