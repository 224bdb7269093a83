"""A quantity by level, operator and on average, with intervals."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bootstrap
from steadyeye.core.intervals import proportion
from steadyeye.core.types import Result
from steadyeye.degradation.profiles import Profiles


def shares(name: str, found: Profiles, success: NDArray[np.bool_]) -> Result:
    """The share of successes, by level exact where images are independent (`proportion`)."""
    return _curves(name, found, success.astype(np.float32), "share", exact=True)


def averages(name: str, found: Profiles, values: NDArray[np.floating], unit: str) -> Result:
    """The mean of a quantity of every row, with a bootstrap over images or videos."""
    return _curves(name, found, values.astype(np.float32), unit, exact=False)


def _curves(
    name: str, found: Profiles, values: NDArray[np.float32], unit: str, exact: bool
) -> Result:
    """The mean over operators of the mean over levels ≥ 1; cells: operators, and their levels."""
    weight = bootstrap.weights(found.videos)
    method = bootstrap.method(found.videos)
    n = len(found.images)
    cells, replicates = [], []
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
        replicates.append(drawn[1:].mean(axis=0))
        value = float(block[1:].mean())
        ends = bootstrap.ends(replicates[-1])
        cells.append(Result(operator, value, *ends, n, method, (), inner, unit))
    value = float(np.mean([cell.value for cell in cells]))
    ends = bootstrap.ends(np.mean(replicates, axis=0))
    return Result(name, value, *ends, n, method, found.notes, tuple(cells), unit)


def _exact(name: str, success: NDArray[np.float32], found: Profiles) -> Result:
    if found.baseline == "right" and name == "level 0":
        return Result(name, 1.0, 1.0, 1.0, len(success), "none: right at level 0 by selection")
    share = proportion(success > 0, found.videos)
    return Result(name, share.value, share.low, share.high, share.n, share.method)
