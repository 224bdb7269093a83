"""Bounds of the median of shares, one a class, of trials that come in clusters."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bounded_means

Floats = NDArray[np.float64]
STEPS = 20  # by which the least bound is reached: a handful of times as many as are needed


def interval(wins: Floats, totals: Floats) -> tuple[float, float]:
    """The 95 % interval of the median over classes of their shares.

    `wins`, `totals`: (g, c) successes and trials of each class in each of g clusters; every class
    has a trial. If the median is θ or less, the shares of some half of the classes are, and so is
    the share of all their trials: the lower end is the least of Gaffke's bounds (`bounded_means`)
    over halves of the classes. It holds for few clusters and for classes of few trials, and a
    further success does not lower it.
    """
    return _lower(wins, totals), 1 - _lower(totals - wins, totals)


def _lower(wins: Floats, totals: Floats) -> float:
    half = -(-wins.shape[1] // 2)
    hits, n = wins.sum(axis=0), totals.sum(axis=0)
    chosen = np.argsort(hits / n, kind="stable")[:half]
    least = 1.0
    # the half that lies furthest below a bound has the next lower one, as in Dinkelbach's method
    for _ in range(STEPS):
        sums, weights = (each[:, chosen].sum(axis=1) for each in (wins, totals))
        there = weights > 0
        bound = float(bounded_means.lower_bounds(sums[None, there], weights[None, there])[0])
        if bound >= least - 1e-9:
            break
        least = bound
        chosen = np.argsort(hits - least * n, kind="stable")[:half]
    return max(least, 0.0)
