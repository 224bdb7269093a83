"""A quantity by level, operator and on average, with intervals."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bootstrap
from steadyeye.core.intervals import proportion
from steadyeye.core.outcomes import Statistic
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result
from steadyeye.degradation.profiles import Profiles, profiles

MEAN = "all operators"
"""The name of the cell that is the mean over operators."""

Block: TypeAlias = dict[int, tuple[NDArray[np.float32], NDArray[np.float64]]]
"""Level → the values of all images, and the mean of every bootstrap replicate."""


def operators(result: Result) -> tuple[Result, ...]:
    """The cells of a curve that are one operator each."""
    return tuple(cell for cell in result.cells if cell.name != MEAN)


def shares(name: str, found: Profiles, success: NDArray[np.bool_]) -> Result:
    """The share of successes, by level exact where images are independent (`proportion`)."""
    return _curves(name, found, success.astype(np.float32), "share", exact=True)


def averages(name: str, found: Profiles, values: NDArray[np.floating], unit: str) -> Result:
    """The mean of a quantity of every row, with a bootstrap over images or videos."""
    return _curves(name, found, values.astype(np.float32), unit, exact=False)


def statistic(predictions: Predictions, values: NDArray[np.generic], images: str) -> Statistic:
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

    return Statistic(float(each[counts].mean()), everything.videos, resampled)


def _curves(
    name: str, found: Profiles, values: NDArray[np.float32], unit: str, exact: bool
) -> Result:
    """The mean over operators of the mean over levels ≥ 1.

    Cells: the operators, each with its levels, and of several operators `MEAN`: the mean of all of
    them at the levels they share.
    """
    weight = bootstrap.weights(found.videos)
    method = bootstrap.method(found.videos)
    n = len(found.images)
    cells, replicates, blocks = [], [], []
    for operator, levels, rows in found.curves():
        block = values[rows]
        drawn = bootstrap.means(block, weight)
        inner = tuple(
            _exact(f"level {level}", one, found)
            if exact
            else Result(
                f"level {level}", float(one.mean()), *bootstrap.ends(many), n, method, unit=unit
            )
            for level, one, many in zip(levels, block, drawn, strict=True)
        )
        blocks.append(dict(zip(levels.tolist(), zip(block, drawn, strict=True), strict=True)))
        replicates.append(drawn[1:].mean(axis=0))
        value = float(block[1:].mean())
        ends = bootstrap.ends(replicates[-1])
        cells.append(Result(operator, value, *ends, n, method, (), inner, unit))
    value = float(np.mean([cell.value for cell in cells]))
    ends = bootstrap.ends(np.mean(replicates, axis=0))
    if len(blocks) > 1:
        levels_of_all = _mean(blocks, n, method, unit)
        cells.append(Result(MEAN, value, *ends, n, method, (), levels_of_all, unit))
    return Result(name, value, *ends, n, method, found.notes, tuple(cells), unit)


def _mean(blocks: Sequence[Block], n: int, method: str, unit: str) -> tuple[Result, ...]:
    """The mean over operators at every level that all of them have."""
    shared = sorted(set.intersection(*(set(block) for block in blocks)))
    results = []
    for level in shared:
        value = float(np.mean([block[level][0].mean() for block in blocks]))
        drawn = np.mean([block[level][1] for block in blocks], axis=0)
        ends = bootstrap.ends(drawn)
        results.append(Result(f"level {level}", value, *ends, n, method, unit=unit))
    return tuple(results)


def _exact(name: str, success: NDArray[np.float32], found: Profiles) -> Result:
    if found.baseline == "right" and name == "level 0":
        return Result(name, 1.0, 1.0, 1.0, len(success), "none: right at level 0 by selection")
    share = proportion(success > 0, found.videos)
    return Result(name, share.value, share.low, share.high, share.n, share.method)
