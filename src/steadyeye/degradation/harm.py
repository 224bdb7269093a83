"""Which operator leaves least right, and whether that is more than the luck of these images."""

from dataclasses import dataclass

import numpy as np

from steadyeye.core.predictions import Predictions
from steadyeye.core.special import stdtrit
from steadyeye.core.stats.intervals import LEVEL
from steadyeye.core.types import Result
from steadyeye.degradation.curves import operators
from steadyeye.degradation.profiles import profiles

WHITE_BOX = "gradient_descent"
"""The operator that is aimed at the model itself: it counts as any other, and is named as such."""


@dataclass(frozen=True)
class Harm:
    """The operators with the lowest and with the highest share of images still right.

    `worst`, `next`: the lowest and the one after it, None for a single operator; `low`, `high`: the
    95 % interval of how much lower it is, None where there is none. `least`: the highest.
    """

    worst: Result
    next: Result | None
    low: float | None
    high: float | None
    least: Result

    @property
    def shown(self) -> bool:
        """Whether the worst is shown to be worse than the next."""
        return self.low is not None and self.low > 0

    @property
    def doubt(self) -> str:
        """What must be said where it is not shown, empty where it is."""
        if self.shown or self.next is None:
            return ""
        return f", with no clear difference from {self.next.name}"


def harm(predictions: Predictions, degraded: Result) -> Harm:
    """The worst operator of a `degraded_accuracy`, against the one after it on the same images.

    Both are chosen by their numbers; the two-sided interval of the two alone keeps its level all
    the same (Hung and Fithian 2019, as in `core.claims.leads`).
    """
    every = sorted(operators(degraded), key=lambda cell: (cell.value or 0.0, cell.name))
    if len(every) < 2:
        return Harm(every[0], None, None, None, every[-1])
    found = profiles(predictions, _baseline(degraded))
    right = {
        operator: predictions.right[rows][1:].mean(axis=0) for operator, _, rows in found.curves()
    }
    ends = _mean_ends(right[every[1].name] - right[every[0].name], found.videos)
    return Harm(every[0], every[1], *ends, every[-1])


def named(operator: str) -> str:
    """An operator's name, with what sets it apart where it is aimed at the model."""
    return f"{operator} (uses the model's own gradient)" if operator == WHITE_BOX else operator


def _baseline(degraded: Result) -> str:
    """Which images were counted, as `degraded_accuracy` says in the interval of its level 0."""
    return "right" if operators(degraded)[0].cells[0].interval.startswith("none: right") else "all"


def _mean_ends(
    values: np.ndarray[tuple[int], np.dtype[np.floating]],
    videos: np.ndarray[tuple[int], np.dtype[np.str_]],
) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean over images, by videos; by images where they are of one video.

    The linearised standard error and Student's t. Cochran, "Sampling Techniques", 1977,
    Equation 6.13. Where all agree, which tells nothing of their spread, the mean alone if so many
    would not fall to one side by chance (sign test), else None, as for a single image.
    """
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        names, video = videos, np.arange(len(videos))
    units, mean = len(names), float(values.mean())
    residuals = np.bincount(video, values - mean, units)
    error = float(np.sqrt(units / max(units - 1, 1) * np.sum(residuals**2)) / len(values))
    if units < 2 or not error > 1e-12:
        return (mean, mean) if abs(mean) > 1e-12 and 2 * 0.5**units <= 1 - LEVEL else (None, None)
    reach = float(stdtrit(units - 1, (1 + LEVEL) / 2)) * error
    return mean - reach, mean + reach
