"""Intervals of means over classes: mAP, mAR and their differences, on few images too.

A bootstrap of images leaves rare classes out of its resamples and covers too little: 75 % instead
of 95 % at 20 images. Here every class is kept. The standard error is a jackknife over videos (or
images without videos), the quantile is Student's with the degrees of freedom of the jackknife, and
the interval is that of Korn and Graubard, "Confidence Intervals for Proportions With Small Expected
Number of Positive Counts Estimated From Survey Data", 1998, which stays within 0…1. Beyond fifty
videos random halves are left out instead of single videos (Shao and Wu, "A General Theory for
Jackknife Variance Estimation", 1989): AP is read at 101 recalls, so that one video of many moves it
by a step or not at all. Three corrections, each found by simulation
(`docs/explanation/coverage.md`):

- The jackknife underestimates the variance of a class on few images. Its variance is at least that
  of as many right or wrong images, with its value shrunk towards the mean by one image; half of it
  for the upper end. By the jackknife alone, a requirement of exactly the true mAP passed in 7.5 %
  of samples of 60 images in which nearly everything was found.
- AP of few objects is too high, because precision is the best at that recall or a higher one. The
  bias is estimated from random halves of the videos and subtracted from the lower end.
- If everything or nothing is found, the other end is that of exact tests: the least (largest) mean
  over classes with which this still happens in one of forty samples.

The estimand is the mean AP, over all possible images, of the classes in the sample. If half of the
classes or more have fewer than `FEWEST` images (videos), no interval that was tried covers enough:
there is none, and the method says so.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.seeds import stream
from steadyeye.core.special import stdtr, stdtrit
from steadyeye.core.stats.intervals import LEVEL, Interval, korn_graubard, number_clusters

FEWEST = 5
"""The images, or videos, that the median class must have for an interval."""

PIECE = 1000  # videos that are counted together
SINGLY = 50  # videos, up to which each is left out in turn
HALVES = 100  # random halves, for more videos
SPLITS = 10  # pairs of random halves for fewer videos, for the bias alone
FEW_IMAGES = 300  # below that, starting threads takes longer than their work
OPTIMISM = 3.0
"""The bias of AP as a multiple of its increase in half of the images: it falls with about the cube
root of their number.
"""

Floats = NDArray[np.float64]
Evaluate = Callable[[NDArray[Any] | None], Floats]
"""`weight -> (classes,)` the values with each image counted so often, None: once; NaN: absent.

Several threads call it at once, after a first call with None.
"""


@dataclass(frozen=True, eq=False)
class Spread:
    """The values of k classes and how much they change with their images.

    `values`: (k,) 0…1 (−1…1 for a difference), NaN for a class without an object. `moves`: (g, k)
    the increase of each with a video, from leaving it out, or half of them, scaled alike. `bias`:
    (k,) by how much each is higher in half of the videos. `share`: (k,) the number of videos of
    each, those with several classes counted in parts. `videos`, `images`: (k,) the numbers of each.
    `units`: the number of videos, or of images without videos; `of`: their name.
    """

    values: Floats
    moves: Floats
    bias: Floats
    share: Floats
    videos: NDArray[np.int64]
    images: NDArray[np.int64]
    units: int
    of: str

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """(k,) the classes with an object."""
        return ~np.isnan(self.values)

    def note(self) -> str:
        """The number of images of a class, in words."""
        images, videos = self.images[self.is_present], self.videos[self.is_present]
        if not len(images):
            return "no class has an object"
        text = f"images per class: {np.median(images):g} (median), {images.min()} (minimum)"
        if self.of == "videos":
            text += f"; videos per class: {np.median(videos):g}, {videos.min()}"
        return text


def spread(evaluate: Evaluate, presence: NDArray[np.uint8], videos: NDArray[np.str_]) -> Spread:
    """The values of classes with their changes.

    `presence`: (n, ⌈k ÷ 8⌉) the classes in each image, one bit each as `np.packbits` of (n, k).
    """
    video = number_clusters(videos)
    units = int(video.max(initial=-1)) + 1
    of = "images" if units == len(videos) else "videos"
    if len(videos) and (videos == videos[0]).all():
        of = "images of this one video only"
    values = evaluate(None)
    in_video = np.zeros((units, presence.shape[1]), dtype=np.uint8)
    np.bitwise_or.at(in_video, video, presence)
    share, of_videos, of_images = (
        _sum_parts(in_video, len(values)),
        _count_rows(in_video, len(values)),
        _count_rows(presence, len(values)),
    )
    if units <= SINGLY:
        left_in = (video != np.arange(units)[:, None]).astype(np.int64)
        moves = np.array([values - evaluate(weights) for weights in left_in]).reshape(
            -1, len(values)
        )
        rises = _rises(evaluate, values, video, units, both=True)
    else:
        rises = _rises(evaluate, values, video, units, both=False)
        # half of the sample differs from the whole as much as samples differ from each other
        moves = -rises / np.sqrt(len(rises) - 1)
    halves = np.maximum((~np.isnan(rises)).sum(axis=0), 1)
    return Spread(
        values,
        np.nan_to_num(moves),
        np.asarray(np.nansum(rises, axis=0) / halves, dtype=np.float64),
        share,
        of_videos,
        of_images,
        units,
        of,
    )


def _unpack_pieces(presence: NDArray[np.uint8], classes: int) -> Iterator[NDArray[np.uint8]]:
    """(PIECE, k) the classes in consecutive images or videos, 0 or 1."""
    for start in range(0, len(presence), PIECE):
        yield np.unpackbits(presence[start : start + PIECE], axis=1, count=classes)


def _count_rows(presence: NDArray[np.uint8], classes: int) -> NDArray[np.int64]:
    """(k,) the number of images or videos with each class."""
    total = np.zeros(classes, dtype=np.int64)
    for piece in _unpack_pieces(presence, classes):
        total += piece.sum(axis=0, dtype=np.int64)
    return total


def _sum_parts(in_video: NDArray[np.uint8], classes: int) -> Floats:
    """(k,) the number of videos of each class; a video of several classes counts in equal parts."""
    total = np.zeros(classes)
    for piece in _unpack_pieces(in_video, classes):
        parts = piece / np.maximum(piece.sum(axis=1, keepdims=True, dtype=np.int64), 1)
        # rows are added in order, so that pieces give the same sum to the last bit
        parts[0] += total
        total = parts.sum(axis=0)
    return total


def _rises(
    evaluate: Evaluate, values: Floats, video: NDArray[np.intp], units: int, both: bool
) -> Floats:
    """(halves, k) by how much a class is higher in a random half of the videos; NaN: absent.

    `both`: each half and the other.
    """
    rng = stream(0, "halves")
    sides: list[NDArray[np.uint8]] = []  # one bit per video: there may be very many
    for _ in range((SPLITS if units > 1 else 0) if both else HALVES):
        half = np.zeros(units, dtype=np.bool_)
        half[rng.permutation(units)[: units // 2]] = True
        sides += map(np.packbits, (half, ~half) if both else (half,))

    def rise(side: NDArray[np.uint8]) -> Floats:
        is_in = np.unpackbits(side, count=units)
        return evaluate(is_in[video]) - values

    if len(video) < FEW_IMAGES:
        rises = list(map(rise, sides))
    else:
        # compiled loops over detections release the GIL; more threads only take memory
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rises = list(pool.map(rise, sides))
    return np.asarray(rises, dtype=np.float64).reshape(-1, len(values))


def less(one_spread: Spread, other_spread: Spread) -> Spread:
    """The classes of one minus those of the other; the mean is the difference of the means.

    Both have the same videos. A class that is absent in one of them counts as 0 there.
    """
    several = int((one_spread.is_present | other_spread.is_present).sum())
    first, second = (
        several / max(int(spread_.is_present.sum()), 1) for spread_ in (one_spread, other_spread)
    )

    def subtract(a: Floats, b: Floats) -> Floats:
        return first * np.nan_to_num(a) - second * np.nan_to_num(b)

    values = np.where(
        one_spread.is_present | other_spread.is_present,
        subtract(one_spread.values, other_spread.values),
        np.nan,
    )
    return replace(
        one_spread,
        values=values,
        moves=subtract(one_spread.moves, other_spread.moves),
        bias=subtract(one_spread.bias, other_spread.bias),
        share=np.minimum(
            *(np.where(s.is_present, s.share, np.inf) for s in (one_spread, other_spread))
        ),
        videos=np.minimum(
            *(np.where(s.is_present, s.videos, s.units) for s in (one_spread, other_spread))
        ),
        images=np.maximum(one_spread.images, other_spread.images),
    )


def _without_ends(spread_: Spread, n: int) -> Interval | None:
    """The mean alone, without objects or with too few images; None if there are enough."""
    if not spread_.is_present.any():
        return Interval(None, None, None, n, "none: there are no objects")
    few = _too_few(spread_)
    return (
        Interval(float(spread_.values[spread_.is_present].mean()), None, None, n, few)
        if few
        else None
    )


def mean_of_classes(spread_: Spread, n: int) -> Interval:
    """The mean over the present classes, 0…1. `n`: the n of the interval."""
    present = spread_.is_present
    if (without := _without_ends(spread_, n)) is not None:
        return without
    value = float(spread_.values[present].mean())
    if value in (0.0, 1.0):
        far = _least(spread_.share[present])
        ends = (0.0, 1 - far) if value == 0 else (far, 1.0)
        return Interval(value, *ends, n, f"exact, over {spread_.units:,} {spread_.of}")
    error, df = _error(spread_, 0.5)
    high = korn_graubard(value, error, df)[1]
    bias = OPTIMISM * max(float(spread_.bias[present].mean()), 0.0)
    low = korn_graubard(max(value - bias, 0.0), *_error(spread_, 1.0))[0]
    method = f"jackknife over {spread_.units:,} {spread_.of}, Student's t, {df:.0f} df"
    return Interval(value, min(low, value), max(high, value), n, method)


def mean_difference(spread_: Spread, n: int) -> Interval:
    """The mean over classes of differences, −1…1, as returned by `less`."""
    present = spread_.is_present
    if (without := _without_ends(spread_, n)) is not None:
        return without
    value = float(spread_.values[present].mean())
    if not spread_.moves.any():
        # if all images are equal, their spread cannot be estimated
        far = 1 - _least(spread_.share[present])
        ends = (max(value - far, -1.0), min(value + far, 1.0))
        return Interval(value, *ends, n, f"exact, over {spread_.units:,} {spread_.of}, all equal")
    error, df = _error(spread_, 0.5)
    half_width = float(stdtrit(df, (1 + LEVEL) / 2)) * error
    bias = OPTIMISM * float(spread_.bias[present].mean())
    low, high = value - half_width - max(bias, 0), value + half_width - min(bias, 0)
    method = f"jackknife over {spread_.units:,} {spread_.of}, Student's t, {df:.0f} df"
    return Interval(value, max(low, -1.0), min(high, 1.0), n, method)


def chance_of_none(spread_: Spread) -> float:
    """The two-sided p value of no difference: of the level at which the interval reaches 0.

    1 without an interval or a class; `spread_` as returned by `less`.
    """
    if not spread_.is_present.any() or _too_few(spread_):
        return 1.0
    value = float(spread_.values[spread_.is_present].mean())
    if not spread_.moves.any():
        low, high = mean_difference(spread_, 0).ends
        # the far end is exact at one in forty, and not defined at other levels
        return 1 - LEVEL if low > 0 or high < 0 else 1.0
    error, df = _error(spread_, 0.5)
    bias = OPTIMISM * float(spread_.bias[spread_.is_present].mean())
    sure = abs(value) - max(bias * np.sign(value), 0.0)
    return float(min(2 * stdtr(df, -sure / error), 1.0))


def of_class(spread_: Spread, at: int, n: int) -> Interval:
    """One class alone, with the interval over its images."""
    alone = replace(
        spread_,
        values=spread_.values[[at]],
        moves=spread_.moves[:, [at]],
        bias=spread_.bias[[at]],
        share=spread_.videos[[at]].astype(np.float64),
        videos=spread_.videos[[at]],
        images=spread_.images[[at]],
    )
    return mean_of_classes(alone, n)


def _too_few(spread_: Spread) -> str:
    """Why there is no interval; empty if there is one."""
    videos = spread_.videos[spread_.is_present]
    if np.median(videos) >= FEWEST:
        return ""
    units = spread_.of.split(" ")[0]
    units = units.removesuffix("s") if np.median(videos) == 1 else units
    if len(videos) == 1:
        return f"none: too few images: only {int(videos[0])} {units} with objects"
    return (
        f"none: too few images: the median class has objects in {np.median(videos):g} {units}, the "
        f"rarest in {int(videos.min())}"
    )


def _error(spread_: Spread, part: float) -> tuple[float, float]:
    """The standard error of the mean over classes, above 0, and its degrees of freedom.

    `part`: of the variance of as many right or wrong images, the least variance of a class.
    """
    present = spread_.is_present
    moves = spread_.moves[:, present] - spread_.moves[:, present].mean(axis=0)
    several = len(moves)
    factor = (several - 1) / several
    size = np.minimum(np.abs(spread_.values[present]), 1.0)
    videos = spread_.videos[present]
    middle = (spread_.units * size.mean() + 0.5) / (spread_.units + 1)
    shrunk = (videos * size + middle) / (videos + 1)
    least = part * shrunk * (1 - shrunk) / videos
    lacking = np.maximum(least - factor * np.sum(moves**2, axis=0), 0).sum() / present.sum() ** 2
    means = moves.mean(axis=1)
    squares = float(np.sum(means**2))
    # the variance of a variance: with heavy tails it has fewer degrees of freedom
    kurtosis = several * float(np.sum(means**4)) / max(squares**2, 1e-300)
    df = min(several - 1, max(1.0, 2 * several / max(kurtosis - 1, 1e-9)))
    return float(np.sqrt(factor * squares + lacking)), float(df)


def _least(share: Floats) -> float:
    """The least mean of class probabilities with which all images are right once in forty times.

    `share`: (k,) the number of images of each. By Lagrange's condition the probability of a class
    is proportional to its images, or 1. An image with several classes is right at most with the
    least of their probabilities, so that counting it in parts is conservative.
    """
    falling = np.sort(share)[::-1]
    log = np.log((1 - LEVEL) / 2)
    for first in range(len(falling)):
        rest = falling[first:]
        scale = np.exp((log - np.sum(rest * np.log(rest))) / rest.sum())
        if scale * rest[0] <= 1:
            return float((first + scale * rest.sum()) / len(falling))
    return 0.0
