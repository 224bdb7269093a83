"""A quantity by level, operator and on average, with intervals."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.stats.trials import Statistic
from steadyeye.core.types import Result
from steadyeye.degradation.profiles import Profiles, profiles

MEAN = "all operators"
"""The name of the cell that is the mean over operators."""


def operators(result: Result) -> tuple[Result, ...]:
    """The cells of a curve that are one operator each."""
    return tuple(cell for cell in result.cells if cell.name != MEAN)


def shares(name: str, found: Profiles, success: NDArray[np.bool_]) -> Result:
    """The share of successes, by level as any proportion (`proportion`)."""
    return _curves(name, found, success.astype(np.float32), "share", exact=True)


def averages(name: str, found: Profiles, values: NDArray[np.floating], unit: str) -> Result:
    """The mean of a quantity of every row; `unit`: "share", or "rank" from 0."""
    return _curves(name, found, values.astype(np.float32), unit, exact=False)


def statistic(
    predictions: Predictions, values: NDArray[np.generic], images: str, unit: str = "share"
) -> Statistic:
    """What models are compared by on the mean over operators of the mean over levels.

    All images are drawn, the same for every model, and each model's own baseline set is counted.
    """
    everything = profiles(predictions, "all")
    counts = np.isin(everything.images, profiles(predictions, images).images)
    numbers = values.astype(np.float64)
    curves = [numbers[rows][1:].mean(axis=0) for _, _, rows in everything.curves()]
    each = np.asarray(np.mean(curves, axis=0))

    def resampled(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        counted = weights[:, counts].astype(np.float64)
        # a resample without an image that counts has no mean
        with np.errstate(invalid="ignore"):
            return np.asarray(counted @ each[counts] / counted.sum(axis=1))

    def interval() -> Interval:
        bounds = _bounds(predictions, unit)
        return bootstrap.mean_interval(each[counts], everything.videos[counts], bounds)

    least, most = _bounds(predictions, unit)
    plain = (each, most - least) if counts.all() else None
    value = float(each[counts].mean())
    return Statistic(value, everything.videos, resampled, interval, terms=plain)


def _bounds(predictions: Predictions, unit: str) -> tuple[float, float]:
    """Between which a quantity lies: a share, or the rank of a class."""
    # in an open list, classes that the data does not have stand before the true one too
    most = len(predictions.classes) + len(predictions.others) - 1.0
    return (0.0, 1.0) if unit == "share" else (0.0, max(most, 0.0))


def _curves(
    name: str, found: Profiles, values: NDArray[np.float32], unit: str, exact: bool
) -> Result:
    """The mean over operators of the mean over levels ≥ 1.

    Cells: the operators, each with its levels, and of several operators `MEAN`: the mean of all of
    them at the levels they share. A mean over levels or operators is that of what each image has,
    so that its images or videos are what it rests on.
    """
    drawn = bootstrap.draws(found.videos)
    cells, means, blocks = [], [], []
    for operator, levels, rows in found.curves():
        block = values[rows]
        named = [f"level {level}" for level in levels]
        inner = _exact(named, block, found) if exact else _means(named, block, found, drawn, unit)
        blocks.append(dict(zip(levels.tolist(), block, strict=True)))
        means.append(block[1:].mean(axis=0, dtype=np.float64))
        cells.append(replace(_whole(operator, means[-1], found, unit), cells=inner))
    every = _whole(MEAN, np.mean(means, axis=0), found, unit)
    if len(blocks) > 1:
        shared = sorted(set.intersection(*map(set, blocks)))
        of_all = np.array([np.mean([each[level] for each in blocks], axis=0) for level in shared])
        named = [f"level {level}" for level in shared]
        cells.append(replace(every, cells=_means(named, of_all, found, drawn, unit)))
    return replace(every, name=name, notes=found.notes, cells=tuple(cells))


def _whole(name: str, each: NDArray[np.float64], found: Profiles, unit: str) -> Result:
    """The mean over images of what each has over levels, or operators."""
    own = bootstrap.mean_interval(each, found.videos, _bounds(found.predictions, unit))
    return Result(name, own.value, own.low, own.high, own.n, own.method, (), (), unit)


def _means(
    names: Sequence[str],
    block: NDArray[np.floating],
    found: Profiles,
    drawn: bootstrap.Draws,
    unit: str,
) -> tuple[Result, ...]:
    """The means over images of the rows of `block`, (rows, images)."""
    means = block.mean(axis=1, dtype=np.float64).tolist()
    ends = bootstrap.mean_ends(block, drawn, _bounds(found.predictions, unit))
    results = []
    for name, one, mean, low, high in zip(names, block, means, *ends, strict=True):
        if _by_selection(found, name, one, unit):
            results.append(_selected(name, one, unit))
            continue
        span = (min(float(low), mean), max(float(high), mean))
        results.append(Result(name, mean, *span, len(one), drawn.method, unit=unit))
    return tuple(results)


def _by_selection(found: Profiles, name: str, values: NDArray[np.floating], unit: str) -> bool:
    """Whether images were chosen so that a level has this mean, and nothing is estimated."""
    sure = 0.0 if unit == "rank" else 1.0
    return found.baseline == "right" and name == "level 0" and bool((values == sure).all())


def _selected(name: str, values: NDArray[np.floating], unit: str) -> Result:
    value = float(values[0])
    how = "none: right at level 0 by selection"
    return Result(name, value, value, value, len(values), how, unit=unit)


def _exact(names: Sequence[str], block: NDArray[np.float32], found: Profiles) -> tuple[Result, ...]:
    results = []
    for name, success in zip(names, block, strict=True):
        if _by_selection(found, name, success, "share"):
            results.append(_selected(name, success, "share"))
            continue
        share = proportion(success > 0, found.videos)
        numbers = (share.value, share.low, share.high, share.n, share.method)
        results.append(Result(name, *numbers))
    return tuple(results)
