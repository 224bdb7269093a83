"""Profiles of a sweep: a quantity by level, by operator and on average, with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.special import stdtrit
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import LEVEL, Interval, number_clusters, proportion
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result

CHOICES = ("right", "all")
UNKNOWN = np.intp(-1)
MEAN = "all operators"
"""The name of the cell that is the mean over operators."""
WHITE_BOX = "gradient_descent"
"""The operator that uses the model's gradient: counted like the others, and marked by its name."""


@dataclass(frozen=True, eq=False)
class Profiles:
    """The rows of a sweep as a block: `row[o, l, i]` of operator o, level l and image i, or −1.

    `levels`: (levels,) rising from 0, whose rows are the same for all operators. `images`: the ids
    of the baseline set, chosen by `baseline`; `videos`: (images,) the clusters of their intervals.
    `wrong`, `lost`: number of images outside the baseline set, because they are wrong at level 0 or
    lack a prediction.
    """

    predictions: Predictions
    baseline: str
    operators: tuple[str, ...]
    levels: NDArray[np.int64]
    images: NDArray[np.str_]
    videos: NDArray[np.str_]
    row: NDArray[np.intp]
    wrong: int
    lost: int

    @property
    def notes(self) -> tuple[str, ...]:
        """Which images are left out and why."""
        notes = []
        if self.wrong:
            notes.append(f"{number_of(self.wrong, 'image')} left out: wrong at level 0")
        if self.lost:
            notes.append(f"{number_of(self.lost, 'image')} left out: no prediction at some level")
        return tuple(notes)

    def curves(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.intp]]]:
        """Each operator with its levels, (n,), and their rows, (n, images)."""
        for number, operator in enumerate(self.operators):
            has = (self.row[number] != UNKNOWN).any(axis=1)
            yield operator, self.levels[has], self.row[number][has]


def profiles(predictions: Predictions, images: str = "right") -> Profiles:
    """The block of a sweep's predictions.

    `images`: "right", those that are right at level 0, or "all". An image that lacks a prediction
    at any level is left out. Raises `UsageError` if the baseline set is empty.
    """
    if images not in CHOICES:
        raise unknown("value of images", images, CHOICES)
    every = list_rows(predictions)
    if images == "all":
        return every
    right = predictions.right[every.row[0, 0]]
    if not right.any():
        raise UsageError(
            f"{predictions.model} is right on none of "
            f"{number_of(len(right) + every.lost, 'image')} at level 0, so degradation "
            "cannot be measured; check the class map, or use --images all"
        )
    return replace(
        every,
        baseline=images,
        images=every.images[right],
        videos=every.videos[right],
        row=every.row[:, :, right],
        wrong=int((~right).sum()),
    )


def number_images(predictions: Predictions) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """The images of a sweep in the order of the data, and (n,) the place of each row's image.

    In this order detections of equal score are ranked.
    """
    names, first, image = np.unique(
        predictions.tags["image"], return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    return names[order], np.argsort(order)[image]


def list_rows(predictions: Predictions) -> Profiles:
    """The block of all images that have a prediction at every level.

    Raises `UsageError` if there is none.
    """
    tags = predictions.tags
    names, image = number_images(predictions)
    operators = tuple(sorted(set(tags["operator"].tolist()) - {""}))
    levels, level = np.unique(tags["level"], return_inverse=True)
    row = np.full((len(operators), len(levels), len(names)), UNKNOWN)
    place = np.arange(len(predictions))
    first = level == 0
    row[:, 0, image[first]] = place[first]
    operator = np.searchsorted(operators, tags["operator"][~first])
    row[operator, level[~first], image[~first]] = place[~first]
    lost = np.zeros(len(names), dtype=np.bool_)
    lost[image[~predictions.valid]] = True
    if lost.all():
        why = predictions.errors[~predictions.valid][0]
        raise UsageError(
            f"{predictions.model} has a prediction at every level for none of "
            f"{number_of(len(names), 'image')}, so degradation cannot be measured; the first "
            f"error: {why}"
        )
    videos = tags.get("video", tags["image"])[row[0, 0]]
    return Profiles(
        predictions,
        "all",
        operators,
        levels.astype(np.int64),
        names[~lost],
        videos[~lost],
        row[:, :, ~lost],
        0,
        int(lost.sum()),
    )


def operators(result: Result) -> tuple[Result, ...]:
    """The cells of a curve that belong to a single operator."""
    return tuple(cell for cell in result.cells if cell.name != MEAN)


def shares(name: str, sweep: Profiles, success: NDArray[np.bool_ | np.floating]) -> Result:
    """The share of successes, by level as a `proportion`.

    `success`: for every row, bool or 0 and 1; NaN if it does not count at that level.
    """
    return _curves(name, sweep, success.astype(np.float32), "share", exact=True)


def averages(name: str, sweep: Profiles, values: NDArray[np.floating], unit: str) -> Result:
    """The mean of a quantity given for every row; `unit`: "share", or "rank" from 0."""
    return _curves(name, sweep, values.astype(np.float32), unit, exact=False)


def statistic(
    predictions: Predictions, values: NDArray[np.generic], images: str, unit: str = "share"
) -> Statistic:
    """The statistic for comparing models by the mean over operators of the mean over levels.

    It resamples all images, the same for every model, and counts each model's own baseline set.
    """
    everything = profiles(predictions, "all")
    counts = np.isin(everything.images, profiles(predictions, images).images)
    numbers = values.astype(np.float64)
    curves = [numbers[rows][1:].mean(axis=0) for _, _, rows in everything.curves()]
    values_of_images = np.asarray(np.mean(curves, axis=0))

    def resample_images(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        image_weights = weights[:, counts].astype(np.float64)
        # a resample without an image that counts has no mean
        with np.errstate(invalid="ignore"):
            return np.asarray(image_weights @ values_of_images[counts] / image_weights.sum(axis=1))

    def interval() -> Interval:
        bounds = _bounds(predictions, unit)
        return bootstrap.mean_interval(values_of_images[counts], everything.videos[counts], bounds)

    least, most = _bounds(predictions, unit)
    plain = (values_of_images, most - least) if counts.all() else None
    value = float(values_of_images[counts].mean())
    return Statistic(value, everything.videos, resample_images, interval, terms=plain)


def _bounds(predictions: Predictions, unit: str) -> tuple[float, float]:
    """The least and greatest possible value of a quantity: a share, or the rank of a class."""
    # in an open list, classes that the data do not have may rank before the true one, too
    most = len(predictions.classes) + len(predictions.others) - 1.0
    return (0.0, 1.0) if unit == "share" else (0.0, max(most, 0.0))


def _curves(
    name: str, sweep: Profiles, values: NDArray[np.float32], unit: str, exact: bool
) -> Result:
    """The mean over operators of the mean over levels ≥ 1.

    Cells: the operators, each with its levels, and of several operators `MEAN`: the mean of all of
    them at the levels they share. A mean over levels or operators is first taken within each image,
    so that images or videos are its sample.
    """
    draws = bootstrap.draws(sweep.videos)
    cells, means, blocks = [], [], []
    for operator, levels, rows in sweep.curves():
        block = values[rows]
        titles = [f"level {level}" for level in levels]
        inner = _exact(titles, block, sweep) if exact else _means(titles, block, sweep, draws, unit)
        blocks.append(dict(zip(levels.tolist(), block, strict=True)))
        means.append(_average(block[1:]))
        cells.append(replace(_whole(operator, means[-1], sweep, unit), cells=inner))
    every = _whole(MEAN, _average(np.array(means)), sweep, unit)
    if len(blocks) > 1:
        shared = sorted(set.intersection(*map(set, blocks)))
        of_all = np.array(
            [_average(np.array([by_level[level] for by_level in blocks])) for level in shared]
        )
        titles = [f"level {level}" for level in shared]
        cells.append(replace(every, cells=_means(titles, of_all, sweep, draws, unit)))
    return replace(every, name=name, notes=sweep.notes, cells=tuple(cells))


def _average(block: NDArray[np.floating]) -> NDArray[np.float64]:
    """(images,) the mean of the rows of (rows, images) that are not NaN; NaN without any."""
    known = ~np.isnan(block)
    with np.errstate(invalid="ignore"):
        total = block.sum(axis=0, dtype=np.float64, where=known)
        return np.asarray(total / known.sum(axis=0), dtype=np.float64)


def _whole(name: str, values: NDArray[np.floating], sweep: Profiles, unit: str) -> Result:
    """The mean over images of their means over levels or operators, without NaN."""
    known = ~np.isnan(values)
    if not known.any():
        return Result(name, None, None, None, 0, "none: n = 0", unit=unit)
    bounds = _bounds(sweep.predictions, unit)
    own = bootstrap.mean_interval(values[known], sweep.videos[known], bounds)
    return Result.of(name, own, unit=unit)


def _means(
    names: Sequence[str],
    block: NDArray[np.floating],
    sweep: Profiles,
    draws: bootstrap.Draws,
    unit: str,
) -> tuple[Result, ...]:
    """The means over images of the rows of `block`, (rows, images)."""
    means = block.mean(axis=1, dtype=np.float64).tolist()
    ends = bootstrap.mean_ends(block, draws, _bounds(sweep.predictions, unit))
    results = []
    for name, values, mean, low, high in zip(names, block, means, *ends, strict=True):
        if _by_selection(sweep, name, values, unit):
            results.append(_describe_selection(name, values, unit))
            continue
        if np.isnan(values).any():
            results.append(_whole(name, values, sweep, unit))
            continue
        span = (min(float(low), mean), max(float(high), mean))
        results.append(Result(name, mean, *span, len(values), draws.method, unit=unit))
    return tuple(results)


def _by_selection(sweep: Profiles, name: str, values: NDArray[np.floating], unit: str) -> bool:
    """Whether the mean of a level follows from the choice of images, so that it is no estimate."""
    sure = 0.0 if unit == "rank" else 1.0
    return sweep.baseline == "right" and name == "level 0" and bool((values == sure).all())


def _describe_selection(name: str, values: NDArray[np.floating], unit: str) -> Result:
    value = float(values[0])
    how = "none: right at level 0 by selection"
    return Result(name, value, value, value, len(values), how, unit=unit)


def _exact(names: Sequence[str], block: NDArray[np.float32], sweep: Profiles) -> tuple[Result, ...]:
    results = []
    for name, success in zip(names, block, strict=True):
        if _by_selection(sweep, name, success, "share"):
            results.append(_describe_selection(name, success, "share"))
            continue
        known = ~np.isnan(success)
        results.append(Result.of(name, proportion(success[known] > 0, sweep.videos[known])))
    return tuple(results)


@dataclass(frozen=True)
class Harm:
    """The operators with the lowest and with the highest share of images still right.

    `worst`, `next`: the lowest and the second lowest, None for a single operator; `low`, `high`:
    the 95 % interval of their difference, None without one. `least`: the operator with the highest
    share.
    """

    worst: Result
    next: Result | None
    low: float | None
    high: float | None
    least: Result

    @property
    def is_significant(self) -> bool:
        """Whether the worst is significantly worse than the next."""
        return self.low is not None and self.low > 0

    @property
    def doubt(self) -> str:
        """A sentence if the difference is not significant; otherwise empty."""
        if self.is_significant or self.next is None:
            return ""
        return f", with no clear difference from {self.next.name}"


def harm(predictions: Predictions, degraded: Result) -> Harm:
    """The worst operator of a `degraded_accuracy`, and the second worst on the same images.

    Both are chosen by their numbers; the two-sided interval of the two alone keeps its level all
    the same (Hung and Fithian 2019, as in `core.claims.leads`).
    """
    every = sorted(operators(degraded), key=lambda cell: (cell.value or 0.0, cell.name))
    if len(every) < 2:
        return Harm(every[0], None, None, None, every[-1])
    sweep = profiles(predictions, _baseline(degraded))
    right = {
        operator: predictions.right[rows][1:].mean(axis=0) for operator, _, rows in sweep.curves()
    }
    ends = _mean_ends(right[every[1].name] - right[every[0].name], sweep.videos)
    return Harm(every[0], every[1], *ends, every[-1])


def format_operator_name(operator: str) -> str:
    """An operator's name, marked if it uses the model's gradient."""
    return f"{operator} (uses the model's own gradient)" if operator == WHITE_BOX else operator


def _baseline(degraded: Result) -> str:
    """The counted images, read from the interval of level 0 of `degraded_accuracy`."""
    return "right" if operators(degraded)[0].cells[0].interval.startswith("none: right") else "all"


def _mean_ends(
    values: np.ndarray[tuple[int], np.dtype[np.floating]],
    videos: np.ndarray[tuple[int], np.dtype[np.str_]],
) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean over images, clustered by video if there are several.

    The linearised standard error and Student's t. Cochran, "Sampling Techniques", 1977, Equation
    6.13. If all values are equal, their spread cannot be estimated: the interval is then the mean
    alone if that many would not be on one side by chance (sign test), otherwise None, as for a
    single image.
    """
    video = number_clusters(videos)
    units, mean = int(video.max(initial=-1)) + 1, float(values.mean())
    residuals = np.bincount(video, values - mean, units)
    error = float(np.sqrt(units / max(units - 1, 1) * np.sum(residuals**2)) / len(values))
    if units < 2 or not error > 1e-12:
        return (mean, mean) if abs(mean) > 1e-12 and 2 * 0.5**units <= 1 - LEVEL else (None, None)
    margin = float(stdtrit(units - 1, (1 + LEVEL) / 2)) * error
    return mean - margin, mean + margin
