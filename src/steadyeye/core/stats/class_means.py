"""Intervals of means over classes: mAP, mAR and their differences, on few images too.

A bootstrap of images leaves rare classes out of its resamples and covers too little: 75 % instead
of 95 % at 20 images. Here every class is kept. The standard error is a jackknife over videos
(images, where each is its own), the quantile Student's with as many degrees of freedom as the
jackknife bears, and the interval the one of Korn and Graubard, "Confidence Intervals for
Proportions With Small Expected Number of Positive Counts Estimated From Survey Data", 1998, which
stays within 0…1. Beyond fifty videos random halves are left out instead of single videos (Shao and
Wu, "A General Theory for Jackknife Variance Estimation", 1989): AP is read at 101 recalls, so that
one video of many moves it by a step or not at all. Three things are added, each found by simulation
(`docs/explanation/coverage.md`):

- a class that stands on few images is not as sure as it looks: its variance is at least that of
  so many right or wrong images, its own value drawn towards the mean by one image more; half of it
  for the upper end. Of few images in which nearly all is found the jackknife alone says too little,
  and a requirement of exactly the true mAP passed in 7.5 % of samples of 60 images;
- AP of few objects is too high, because precision is taken at its best at that recall or a higher
  one. By how much is read off random halves of the videos, and the lower end goes down by it;
- where all is found, or nothing, the other end is that of exact tests: the least (largest) mean
  over classes with which this could still happen in one of forty samples.

What is estimated is the mean AP, over all images there might be, of the classes that the sample
holds. Where half of the classes or more stand on fewer than `FEWEST` images (videos), no interval
that was tried covers enough: there is none then, and the method says so.
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
"""How many images, or videos, the median class must stand on for an interval."""

PIECE = 1000  # videos that are counted together
SINGLY = 50  # videos, up to which each is left out in turn
HALVES = 100  # random halves, beyond that
SPLITS = 10  # random halves both ways, up to that, for the bias alone
FEW_IMAGES = 300  # below that to begin threads takes longer than what they do
OPTIMISM = 3.0
"""How many times its growth in half of the images the bias of AP is: it falls with about the cube
root of their number."""

Floats = NDArray[np.float64]
Evaluate = Callable[[NDArray[Any] | None], Floats]
"""`weight -> (classes,)` the values with each image counting so often, None: once; NaN: absent.

Called by several threads at once, after a first call with None."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The values of k classes and how far they move with the images they stand on.

    `values`: (k,) 0…1 (−1…1 for a difference), NaN for a class without an object. `moves`: (g, k)
    by how much each rises with a video, left out in turn, or with half of them, scaled alike.
    `bias`: (k,) by how much each is higher in half of the videos. `share`: (k,) how many videos
    each stands on, those with more than one class counting in parts. `videos`, `images`: (k,) on
    how many each stands. `units`: how many videos there are, or images where each is its own; `of`:
    what they are called.
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
        """On how many images a class stands."""
        images, videos = self.images[self.is_present], self.videos[self.is_present]
        if not len(images):
            return "no class has an object"
        text = f"images per class: {np.median(images):g} (median), {images.min()} (minimum)"
        if self.of == "videos":
            text += f"; videos per class: {np.median(videos):g}, {videos.min()}"
        return text


def spread(evaluate: Evaluate, presence: NDArray[np.uint8], videos: NDArray[np.str_]) -> Spread:
    """The values of classes with how they move.

    `presence`: (n, ⌈k ÷ 8⌉) which images hold them, a bit for each as `np.packbits` of (n, k).
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
        # half of the sample differs from the whole as samples do from each other
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
    """(PIECE, k) which classes consecutive images or videos hold, 0 or 1."""
    for start in range(0, len(presence), PIECE):
        yield np.unpackbits(presence[start : start + PIECE], axis=1, count=classes)


def _count_rows(presence: NDArray[np.uint8], classes: int) -> NDArray[np.int64]:
    """(k,) how many images or videos hold each class."""
    total = np.zeros(classes, dtype=np.int64)
    for piece in _unpack_pieces(presence, classes):
        total += piece.sum(axis=0, dtype=np.int64)
    return total


def _sum_parts(in_video: NDArray[np.uint8], classes: int) -> Floats:
    """(k,) how many videos each class stands on, a video of several classes in equal parts."""
    total = np.zeros(classes)
    for piece in _unpack_pieces(in_video, classes):
        parts = piece / np.maximum(piece.sum(axis=1, keepdims=True, dtype=np.int64), 1)
        # rows are added one after the other, so that pieces give the sum of all to the last bit
        parts[0] += total
        total = parts.sum(axis=0)
    return total


def _rises(
    evaluate: Evaluate, values: Floats, video: NDArray[np.intp], units: int, both: bool
) -> Floats:
    """(halves, k) by how much a class is higher in a random half of the videos; NaN: not there.

    `both`: each half and the other.
    """
    rng = stream(0, "halves")
    sides: list[NDArray[np.uint8]] = []  # a bit for each video: there may be very many
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
        # compiled loops over detections let other threads run; more of them take only memory
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rises = list(pool.map(rise, sides))
    return np.asarray(rises, dtype=np.float64).reshape(-1, len(values))


def less(one_spread: Spread, other_spread: Spread) -> Spread:
    """The classes of one less those of the other, such that their mean is that of the means.

    Both are of the same videos. Of a class that one of them lacks the other's value counts.
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
    """The mean alone, where there are no objects or too few images; None where there are enough."""
    if not spread_.is_present.any():
        return Interval(None, None, None, n, "none: there are no objects")
    few = _too_few(spread_)
    return (
        Interval(float(spread_.values[spread_.is_present].mean()), None, None, n, few)
        if few
        else None
    )


def mean_of_classes(spread_: Spread, n: int) -> Interval:
    """The mean over the classes that are there, 0…1. `n`: what the interval says it is of."""
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
    """The mean over classes of differences, −1…1, as `less` makes them."""
    present = spread_.is_present
    if (without := _without_ends(spread_, n)) is not None:
        return without
    value = float(spread_.values[present].mean())
    if not spread_.moves.any():
        # all images alike tell nothing of their spread
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

    1 where there is no interval, or no class; `spread_` as `less` makes it.
    """
    if not spread_.is_present.any() or _too_few(spread_):
        return 1.0
    value = float(spread_.values[spread_.is_present].mean())
    if not spread_.moves.any():
        low, high = mean_difference(spread_, 0).ends
        # the far end is exact at one in forty, and nothing is said of other levels
        return 1 - LEVEL if low > 0 or high < 0 else 1.0
    error, df = _error(spread_, 0.5)
    bias = OPTIMISM * float(spread_.bias[spread_.is_present].mean())
    sure = abs(value) - max(bias * np.sign(value), 0.0)
    return float(min(2 * stdtr(df, -sure / error), 1.0))


def of_class(spread_: Spread, at: int, n: int) -> Interval:
    """One class alone, with the interval of the images that it stands on."""
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
    """Why there can be no interval; empty where there can."""
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

    `part`: of the variance of so many right or wrong images, the least that a class has.
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
    # the variance of a variance: heavy tails leave it fewer degrees of freedom than groups
    kurtosis = several * float(np.sum(means**4)) / max(squares**2, 1e-300)
    df = min(several - 1, max(1.0, 2 * several / max(kurtosis - 1, 1e-9)))
    return float(np.sqrt(factor * squares + lacking)), float(df)


def _least(share: Floats) -> float:
    """The least mean of the chances of classes with which every image is right once in forty times.

    `share`: (k,) on how many images each stands. By Lagrange's condition the chance of a class is
    in proportion to its images, or 1. An image with several classes is right at most with the
    least of their chances, so that counting it in parts is on the safe side.
    """
    falling = np.sort(share)[::-1]
    log = np.log((1 - LEVEL) / 2)
    for first in range(len(falling)):
        rest = falling[first:]
        scale = np.exp((log - np.sum(rest * np.log(rest))) / rest.sum())
        if scale * rest[0] <= 1:
            return float((first + scale * rest.sum()) / len(falling))
    return 0.0
