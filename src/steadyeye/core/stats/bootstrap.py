"""Resampling images by their video, for intervals of anything that is not a proportion."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadyeye.core.format import number_of
from steadyeye.core.special import ndtr, ndtri
from steadyeye.core.stats.intervals import LEVEL, REPLICATES, Interval, mean
from steadyeye.core.stats.trials import Statistic


def weights(videos: NDArray[np.str_], replicates: int = REPLICATES) -> NDArray[np.float32]:
    """(replicates, n) how often each sample counts in each resample of whole videos, seeded.

    `videos`: (n,) the video of each sample; each its own makes it the plain bootstrap.
    """
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        # nothing to resample but the images themselves; `method` says so
        names, video = videos, np.arange(len(videos))
    draws = np.random.default_rng(0).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=replicates
    )
    return np.asarray(draws[:, video], dtype=np.float32)


def means(values: NDArray[np.floating], weight: NDArray[np.float32]) -> NDArray[np.float64]:
    """(..., replicates) weighted means over the last axis of `values`, (..., n)."""
    return np.asarray(values @ weight.T / weight.sum(axis=1), dtype=np.float64)


def ends(replicates: NDArray[np.floating]) -> tuple[float, float]:
    """The percentile interval of (replicates,) values; `inf` may be among them."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)


def bias_corrected_interval(replicates: NDArray[np.floating], value: float) -> tuple[float, float]:
    """The bias-corrected percentile interval of (replicates,) values around a `value`.

    For statistics whose resamples lie to one side of it, as mAP's do: a resample that lacks a
    class leaves that class out of the mean. Efron, "The Jackknife, the Bootstrap and Other
    Resampling Plans", 1982, Section 10.7. `value` lies within the interval.
    """
    tail = ndtri((1 - LEVEL) / 2)
    shares = ndtr(2 * bias(replicates, value) + np.array([tail, -tail]))
    low, high = np.quantile(replicates, shares, method="inverted_cdf")
    return min(float(low), value), max(float(high), value)


def bias(replicates: NDArray[np.floating], value: float) -> float:
    """How far (replicates,) values lie below a `value` in the middle, in standard deviations."""
    below = np.mean(replicates < value) + np.mean(replicates == value) / 2
    least = 1 / (2 * len(replicates))
    return float(ndtri(np.clip(below, least, 1 - least)))


def method(videos: NDArray[np.str_]) -> str:
    """What the interval is called: a bootstrap over images or over videos."""
    several = len(np.unique(videos))
    if several == len(videos):
        return f"bootstrap over {number_of(several, 'image')}"
    if several == 1:
        return f"bootstrap over {number_of(len(videos), 'image')}, within this one video only"
    return f"bootstrap over {number_of(several, 'video')}"


@dataclass(frozen=True, eq=False)
class Draws:
    """Random weights of n samples by their video, and of one more video that nobody has seen.

    `of_samples`: (replicates, n) float32, above 0, the same for all samples of a video. `unseen`:
    (replicates,) float32, the weight of the further video, which is as large as the video of a
    sample drawn at random. `method`: what the interval of a mean is called.
    """

    of_samples: NDArray[np.float32]
    unseen: NDArray[np.float32]
    method: str

    def means(self, values: NDArray[np.floating], further: ArrayLike) -> NDArray[np.float64]:
        """(..., replicates) means of (..., n) values, the further video having the value given."""
        sums = np.asarray(values, dtype=np.float32) @ self.of_samples.T
        total = self.of_samples.sum(axis=1) + self.unseen
        further = np.asarray(further, dtype=np.float32)[..., None]
        return np.asarray((sums + self.unseen * further) / total, dtype=np.float64)


def draws(videos: NDArray[np.str_], counted: NDArray[np.bool_] | None = None) -> Draws:
    """Dirichlet weights for the intervals of `mean_ends`, seeded.

    `videos`: (n,) the video of each sample; each its own: images. Of a single video its images
    stand for themselves, and the method says so. `counted`: (n,) bool, the samples that count, the
    others having the weight 0; None: all. At least one must count.
    """
    names, video = np.unique(videos, return_inverse=True)
    if len(names) == 1:
        names, video = videos, np.arange(len(videos))
    rng = np.random.default_rng(0)
    # a column a video and the further one last: adding a video changes no other's weights
    weight = rng.standard_exponential((len(names) + 1, REPLICATES), dtype=np.float32)
    is_counted = np.ones(len(videos), np.bool_) if counted is None else counted
    assert is_counted.any(), "a mean is of something"
    size = np.bincount(video[is_counted])
    further = np.float32(np.sum(size**2) / size.sum())
    name = method(videos[is_counted]).removeprefix("bootstrap over ")
    return Draws(weight[video].T * is_counted, weight[-1] * further, f"Gaffke's bounds over {name}")


def mean_ends(
    values: NDArray[np.floating], replicates: Draws, bounds: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(...,) lower and upper ends of the means over the last axis of `values`, (..., n).

    `bounds`: between which every value lies, whatever the image. Gaffke's bounds, as in
    `bounded_means`, from random draws: many rows are quicker so.
    """
    least, most = bounds
    tail = (1 - LEVEL) / 2
    # every resample rises with every value, and so does a quantile of them
    low = np.quantile(replicates.means(values, least), tail, axis=-1)
    high = np.quantile(replicates.means(values, most), 1 - tail, axis=-1)
    return np.maximum(low, least), np.minimum(high, most)


def mean_interval(
    values: NDArray[np.floating], videos: NDArray[np.str_], bounds: tuple[float, float]
) -> Interval:
    """The mean of (n,) bounded values, n > 0, with Gaffke's bounds over videos.

    `bounds`: between which every value lies, whatever the image: open where all are at one of them,
    and no higher value lowers an end.
    """
    least, most = bounds
    width = max(most - least, 1e-300)
    slack = 1e-6 * width  # float32
    assert values.min() >= least - slack, "no value lies below the bounds"
    assert values.max() <= most + slack, "no value lies above the bounds"
    interval = mean((values.astype(np.float64) - least) / width, videos)
    assert interval.low is not None, "of something"
    assert interval.high is not None, "of something"
    low, high = (least + width * end for end in (interval.low, interval.high))
    value = float(np.mean(values, dtype=np.float64))
    return Interval(value, min(low, value), max(high, value), len(values), interval.method)


def mean_statistic(
    values: NDArray[np.floating], videos: NDArray[np.str_], bounds: tuple[float, float]
) -> Statistic:
    """What models are compared by on the mean of (n,) bounded values; NaN on nothing."""

    def resample_mean(weight: NDArray[np.float32]) -> NDArray[np.float64]:
        # a resample of nothing has no mean
        with np.errstate(invalid="ignore"):
            return means(values, weight)

    def interval() -> Interval:
        if not len(values):
            return Interval(None, None, None, 0, "none: n = 0")
        return mean_interval(values, videos, bounds)

    value = float(np.mean(values, dtype=np.float64)) if len(values) else float("nan")
    terms = (values.astype(np.float64), float(bounds[1] - bounds[0]))
    return Statistic(value, videos, resample_mean, interval, terms=terms)
