"""What a metric is made of, for two models to be compared on the same samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.class_means import Spread
from steadyeye.core.stats.intervals import Interval


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials a proportion counts, n of them.

    `success`: (n,) bool, what the metric counts. `videos`: (n,) the video of each. `block`: trials
    of a single video that follow each other in time and tell nearly the same; 1 where they do not.
    """

    success: NDArray[np.bool_]
    videos: NDArray[np.str_]
    block: int = 1


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of n images that is no proportion, and how it is counted anew.

    `value`: NaN where there is none. `videos`: (n,) the video of each image. `resampled`: (r, n)
    how often each image counts → (r,) values, NaN where there is none. `interval`: the value with
    its own interval. `spread`: of a mean over classes, how these move with the videos. `terms`: of
    a mean over images, the (n,) value of each, and how far two of them may lie apart at most.
    `parts`: of a share of what each model itself finds, (n,) how much of it counts and how much of
    it there is in each image. `block`: as of `Trials`.
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
    """The statistic of a share of what a model itself finds; `parts` and the rest as there."""
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
    """A decorator that declares what models are compared by on a metric.

    `outcomes`: takes what the metric takes; of two models on the same samples, trials and images
    come in the same order. `lower`: whether the lower of two values is the better.
    """

    def declare(plugin: Plugin) -> Plugin:
        vars(plugin).update(outcomes=outcomes, lower=lower)
        return plugin

    return declare
