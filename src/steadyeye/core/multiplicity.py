"""Several comparisons at once: p values that allow for how many there are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def holm(p: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """(n,) the p values adjusted so that one below 0.05 is wrong in 5 % of such families at most.

    In the order of `p`; NaN are no tests and stay NaN. Holm, "A simple sequentially rejective
    multiple test procedure", Scandinavian Journal of Statistics 6, 1979: the smallest is
    multiplied by their number, the next by one less, and none is below that of a smaller one.
    """
    values = np.asarray(p, dtype=np.float64)
    tests = np.flatnonzero(np.isfinite(values))
    order = tests[np.argsort(values[tests], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
