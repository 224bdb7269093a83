"""Several comparisons at once: p values adjusted for their number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def holm(p: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """(n,) p values adjusted so that at most 5 % of families have a false one below 0.05.

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


def benjamini_hochberg(p: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """(n,) p values adjusted so that a share q of those below q is false on average.

    In the order of `p`, none NaN. Benjamini and Hochberg, "Controlling the False Discovery Rate",
    Journal of the Royal Statistical Society B 57, 1995: the r-th smallest of n is multiplied by
    n / r, and none is above that of a larger one.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1)
    return adjusted
