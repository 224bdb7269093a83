"""Bounds of the median of shares, one a class, of trials that come in clusters."""

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats import bounded_means

Floats = NDArray[np.float64]
ALL = 500  # halves that are tried one by one: up to eleven classes
STEPS = 41  # levels at which halves of more classes are looked for


def interval(wins: Floats, totals: Floats) -> tuple[float, float]:
    """The 95 % interval of the median over classes of their shares.

    `wins`, `totals`: (g, c) successes and trials of each class in each of g clusters; every class
    has a trial. If the median is θ or less, the shares of some half of the classes are, and so is
    the share of all their trials: the lower end is the least of Gaffke's bounds (`bounded_means`)
    over halves of the classes. It holds for few clusters and for classes of few trials, and is
    wide: nothing is assumed about which half it is. Of twelve classes or more not all halves are
    tried, but those with the fewest successes for their trials.
    """
    return _lower(wins, totals), 1 - _lower(totals - wins, totals)


def _lower(wins: Floats, totals: Floats) -> float:
    halves = _halves(wins.sum(axis=0), totals.sum(axis=0)).T
    sums, weights = ((column @ halves).T for column in (wins, totals))
    return max(float(bounded_means.lower_bounds(sums, weights).min()), 0.0)


def _halves(hits: Floats, n: Floats) -> Floats:
    """(m, c) 1 where a class is in a half: all of them, or those that lie lowest, of many."""
    classes = len(hits)
    half = -(-classes // 2)
    if comb(classes, half) <= ALL:
        chosen = np.array(list(combinations(range(classes), half)))
    else:
        # of the classes that lie furthest below a bound the pooled share is least below it
        levels = np.linspace(0, 1, STEPS)[:, None]
        gaps = np.vstack([hits / n, hits - levels * n])
        chosen = np.argsort(gaps, axis=1, kind="stable")[:, :half]
    members = np.zeros((len(chosen), classes))
    np.put_along_axis(members, chosen, 1.0, axis=1)
    return members
