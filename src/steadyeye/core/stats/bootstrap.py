"""Intervals of means of bounded values over images, by random weights of their videos.

`block_bootstrap` is for time series, of which a single video can be cut into blocks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadyeye.core.format import number_of
from steadyeye.core.stats.intervals import (
    LEVEL,
    REPLICATES,
    Interval,
    count_clusters,
    limit_to_video,
    mean,
    number_clusters,
)
from steadyeye.core.stats.trials import Statistic


def means(values: NDArray[np.floating], weight: NDArray[np.float32]) -> NDArray[np.float64]:
    """(..., replicates) weighted means over the last axis of `values`, (..., n)."""
    return np.asarray(values @ weight.T / weight.sum(axis=1), dtype=np.float64)


def ends(replicates: NDArray[np.floating]) -> tuple[float, float]:
    """The percentile interval of (replicates,) values; `inf` may be among them."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Draws:
    """Random weights of n samples by their video, and of one more, unseen video.

    `of_samples`: (replicates, n) float32, above 0, equal for all samples of a video. `unseen`:
    (replicates,) float32, the weight of the unseen video, which has as many samples as the video of
    a random sample. `method`: the name of the method of a mean's interval.
    """

    of_samples: NDArray[np.float32]
    unseen: NDArray[np.float32]
    method: str

    def means(self, values: NDArray[np.floating], further: ArrayLike) -> NDArray[np.float64]:
        """(..., replicates) means of (..., n) values; `further`: the value of the unseen video."""
        sums = np.asarray(values, dtype=np.float32) @ self.of_samples.T
        total = self.of_samples.sum(axis=1) + self.unseen
        further = np.asarray(further, dtype=np.float32)[..., None]
        return np.asarray((sums + self.unseen * further) / total, dtype=np.float64)


def draws(videos: NDArray[np.str_], counted: NDArray[np.bool_] | None = None) -> Draws:
    """Dirichlet weights for the intervals of `mean_ends`, seeded.

    `videos`: (n,) the video of each sample; if each has its own, they are images. The images of a
    single video count as independent, and the method says so. `counted`: (n,) bool, the samples
    that count; the others have the weight 0; None: all. At least one must count.
    """
    video = number_clusters(videos)
    rng = np.random.default_rng(0)
    # a column per video, the unseen one last: adding a video does not change other weights
    weight = rng.standard_exponential((int(video.max()) + 2, REPLICATES), dtype=np.float32)
    is_counted = np.ones(len(videos), np.bool_) if counted is None else counted
    assert is_counted.any(), "a mean is of something"
    size = np.bincount(video[is_counted])
    further = np.float32(np.sum(size**2) / size.sum())
    of = videos[is_counted]
    method = f"Gaffke's bounds over {count_clusters(of)}{limit_to_video(of)}"
    return Draws(weight[video].T * is_counted, weight[-1] * further, method)


def mean_ends(
    values: NDArray[np.floating], replicates: Draws, bounds: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(...,) lower and upper ends of the means over the last axis of `values`, (..., n).

    `bounds`: the least and greatest possible value. Gaffke's bounds, as in `bounded_means`, but
    from random draws, which is faster for many rows.
    """
    least, most = bounds
    tail = (1 - LEVEL) / 2
    # every resample rises with every value, and so do its quantiles
    low = np.quantile(replicates.means(values, least), tail, axis=-1)
    high = np.quantile(replicates.means(values, most), 1 - tail, axis=-1)
    return np.maximum(low, least), np.minimum(high, most)


def mean_interval(
    values: NDArray[np.floating], videos: NDArray[np.str_], bounds: tuple[float, float]
) -> Interval:
    """The mean of (n,) bounded values, n > 0, with Gaffke's bounds over videos.

    `bounds`: the least and greatest possible value, so that the interval is open even if all values
    are at one of them; no higher value lowers an end.
    """
    least, most = bounds
    width = max(most - least, 1e-300)
    slack = 1e-6 * width  # float32
    assert values.min() >= least - slack, "no value lies below the bounds"
    assert values.max() <= most + slack, "no value lies above the bounds"
    interval = mean((values.astype(np.float64) - least) / width, videos)
    low, high = (least + width * end for end in interval.ends)
    value = float(np.mean(values, dtype=np.float64))
    # images without a video have one each, but are called images
    alone = interval.method == f"Gaffke's bounds over {number_of(len(values), 'video')}"
    method = f"Gaffke's bounds over {count_clusters(videos)}" if alone else interval.method
    return Interval(value, min(low, value), max(high, value), len(values), method)


def mean_statistic(
    values: NDArray[np.floating], videos: NDArray[np.str_], bounds: tuple[float, float]
) -> Statistic:
    """The statistic to compare models by the mean of (n,) bounded values; NaN without values."""

    def resample_mean(weight: NDArray[np.float32]) -> NDArray[np.float64]:
        # an empty resample has no mean
        with np.errstate(invalid="ignore"):
            return means(values, weight)

    def interval() -> Interval:
        if not len(values):
            return Interval(None, None, None, 0, "none: n = 0")
        return mean_interval(values, videos, bounds)

    value = float(np.mean(values, dtype=np.float64)) if len(values) else float("nan")
    terms = (values.astype(np.float64), float(bounds[1] - bounds[0]))
    return Statistic(value, videos, resample_mean, interval, terms=terms)
