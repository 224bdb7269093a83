"""The outcomes behind a metric, by which two models are compared on the same samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.class_means import Spread
from steadyeye.core.stats.intervals import Interval


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of a proportion, n of them.

    `success`: (n,) bool, the outcomes. `videos`: (n,) the video of each. `block`: consecutive
    trials of a single video that depend on each other; 1 if they do not.
    """

    success: NDArray[np.bool_]
    videos: NDArray[np.str_]
    block: int = 1


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of n images that is no proportion, and how it is resampled.

    `value`: NaN without one. `videos`: (n,) the video of each image. `resampled`: (r, n) the count
    of each image → (r,) values, NaN without one. `interval`: the value with its own interval.
    `spread`: of a mean over classes, their changes with the videos. `terms`: of a mean over images,
    the (n,) value of each, and the greatest difference of two. `parts`: of a share of a model's own
    objects, (n,) the count of successes and of objects in each image. `block`: as of `Trials`.
    """

    value: float
    videos: NDArray[np.str_]
    resampled: Callable[[NDArray[np.float32]], NDArray[np.float64]]
    interval: Callable[[], Interval]
    spread: Callable[[], Spread] | None = None
    terms: tuple[NDArray[np.float64], float] | None = None
    parts: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    block: int = 1


def share_statistic(
    parts: tuple[NDArray[np.float64], NDArray[np.float64]],
    videos: NDArray[np.str_],
    interval: Callable[[], Interval],
    block: int = 1,
) -> Statistic:
    """The statistic of a share of a model's own objects; the arguments as in `Statistic`."""
    right, whole = parts

    def resample(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.asarray((weights @ right) / (weights @ whole), dtype=np.float64)

    value = float(right.sum() / whole.sum()) if whole.sum() else float("nan")
    return Statistic(value, videos, resample, interval, parts=parts, block=block)


Outcomes: TypeAlias = Trials | Statistic

Plugin = TypeVar("Plugin", bound=Callable[..., Any])


def compare_by(
    outcomes: Callable[..., Outcomes], lower: bool = False
) -> Callable[[Plugin], Plugin]:
    """A decorator that declares the outcomes by which models are compared on a metric.

    `outcomes`: has the metric's parameters; for two models on the same samples, trials and images
    are in the same order. `lower`: whether the lower of two values is better.
    """

    def declare(plugin: Plugin) -> Plugin:
        vars(plugin).update(outcomes=outcomes, lower=lower)
        return plugin

    return declare
