"""Several comparisons at once: p values that allow for how many there are."""

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """The p values adjusted so that one below 0.05 is wrong in 5 % of all such families at most.

    In the order of `p`. Holm, "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 1979: the smallest is multiplied by their number, the
    next by one less, and none is below that of a smaller one.
    """
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=np.float64)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return tuple(adjusted.tolist())
