"""Bounds for the mean of shares in clusters, whatever the dependence within a cluster.

Gaffke's bound: of the observed clusters and one more without a success, each weighted by an
exponential variable (a Bayesian bootstrap), the 2.5 % quantile of the pooled share. With one trial
per cluster the quantile is that of Beta(k, n − k + 1): Clopper and Pearson's bound. Every success
increases every draw, so one more never lowers it. N. Gaffke, "Three test statistics for a
nonparametric one-sided hypothesis on the mean of a nonnegative variable", Mathematical Methods of
Statistics 14, 2005; Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded
random variable", 2019. Its coverage is proven for shares with two values and conjectured for all;
docs/explanation/coverage.md has simulations, also for clusters of unequal size.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.special import betaincinv, ndtri

Floats = NDArray[np.float64]
Rows: TypeAlias = Floats | Sequence[Floats]
TAIL = 0.025
"""One-sided: two bounds make a 95 % interval."""

LEAST = 1e-9  # a mean below it counts as 0: its logit is beyond the precision of the search
NODES = 64  # the tail to 1e-9 of itself at 50 clusters, 1e-4 at 500 at worst
AT_ONCE = 2_000_000  # complex numbers in memory at once
CLOSE = 1e-9  # of the normal quantile of the tail
SEVERAL = 8  # a kind of cluster takes so many times as long as a cluster
TURNS = np.array([2.0, 2.5, 3, 4, 5, 6.5, 8, 10, 12.5])
GRID = TURNS[:, None] * np.linspace(0, 1, NODES)
SINH, COSH = np.sinh(GRID), np.cosh(GRID)
ALL_HALVES = 500  # halves of classes that are all tried: up to eleven classes
MEDIAN_STEPS = 41  # levels at which halves of more classes are searched


def lower_bounds(sums: Rows, weights: Rows, copies: float = 1.0) -> Floats:
    """(c,) the lower 97.5 % bound of the mean of each row of clusters.

    `weights`: (c, g) the weight of each cluster, such as its trials; 0 if it is not in the row.
    `sums`: (c, g) its successes, 0…weight. The mean is Σsums / Σweights, and the unseen cluster has
    the weight Σweights² / Σweights, the expected weight of the cluster of a random trial. `copies`:
    the number of times each cluster counts. A row whose mean is below `LEAST` has the bound 0.
    """
    bounds = np.zeros(len(sums))
    has_mean = [own.sum() > LEAST * every.sum() for own, every in zip(sums, weights, strict=True)]
    rows = np.flatnonzero(has_mean)
    some_sums, some_weights = ([every[i] for i in rows.tolist()] for every in (sums, weights))
    merged = _merge_clusters(some_sums, some_weights, copies)
    size = max(AT_ONCE // (NODES * (merged.sums.shape[1] + 1)), 1)
    for start in range(0, len(rows), size):
        some = slice(start, start + size)
        bounds[rows[some]] = _solve_bounds(Clusters(*(array[some] for array in merged)))
    return bounds


def intervals(sums: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """(c,) low and (c,) high ends of the 95 % intervals of each row, as `lower_bounds`."""
    both = lower_bounds([*sums, *np.maximum(weights - sums, 0.0)], [*weights, *weights])
    return both[: len(sums)], 1 - both[len(sums) :]


def chances(sums: Floats, weights: Floats, at: Floats, copies: float = 1.0) -> Floats:
    """(c,) one-sided p values of the means being `at` (0…1) or less: the tails beyond `at`."""
    return _tails(_merge_clusters(sums, weights, copies), at)


class Clusters(NamedTuple):
    """(c, m) sums and weights of rows of kinds of clusters, and the number of each kind.

    The last is the unseen one.
    """

    sums: Floats
    weights: Floats
    times: Floats


def _merge_clusters(sums: Rows, weights: Rows, copies: float) -> Clusters:
    """The clusters of rows and an unseen one; equal ones are merged if few kinds remain.

    Rows with fewer kinds than others are filled with kinds that occur 0 times.
    """
    shape = len(sums), len(sums[0]) if len(sums) else 0
    further = np.array([np.sum(row**2) / row.sum() for row in weights])
    merged = []
    # one row at a time: there may be very many clusters
    for of_row in zip(sums, weights, strict=True):
        merged.append(_merge_row(*of_row))
        if len(merged[-1][0]) * SEVERAL > shape[1]:
            every = np.stack([*sums, *weights, *np.full(shape, copies)]).reshape(3, *shape)
            break
    else:
        every = np.zeros((3, shape[0], max((len(row[0]) for row in merged), default=0)))
        for place, kinds in enumerate(merged):
            every[:, place, : len(kinds[0])] = kinds
        every[2] *= copies
    columns = (every[0], 0 * further), (every[1], further), (every[2], np.ones(len(further)))
    return Clusters(*map(np.column_stack, columns))


def _merge_row(sums: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """(m,) sums and weights of the kinds of clusters of a row, and the number of each."""
    order = np.lexsort((sums, weights))
    sums, weights = sums[order], weights[order]
    new = np.append(True, (np.diff(sums) != 0) | (np.diff(weights) != 0))
    first = np.flatnonzero(new[: len(sums)])
    times = np.diff(first, append=len(sums)).astype(np.float64)
    return sums[first], weights[first], times


def _tails(clusters: Clusters, at: Floats) -> Floats:
    """(c,) the chances of `chances`."""
    # Σ E·sum ≤ at · (Σ E·weight + E₀·unseen): a sum of exponentials below 0
    return _below_zero(clusters.sums - at[:, None] * clusters.weights, clusters.times)


def _solve_bounds(clusters: Clusters) -> Floats:
    """The bounds by the secant method, on scales on which the tail is nearly straight."""

    def gap(rows: NDArray[np.intp], at: Floats) -> Floats:
        tail = _tails(Clusters(*(array[rows] for array in clusters)), at)
        return np.asarray(ndtri(np.clip(tail, 1e-300, 1 - 1e-16)) - ndtri(TAIL))

    total = _total(clusters.weights, clusters.times) - clusters.weights[:, -1]
    low, high = np.zeros(len(total)), _total(clusters.sums, clusters.times) / total
    at, rise = _guess(clusters)
    at = np.clip(at, 1e-12, high * (1 - 1e-9))
    return _roots(gap, at, rise, (low, high))


def _roots(
    gap: Callable[[NDArray[np.intp], Floats], Floats],
    at: Floats,
    rise: Floats,
    ends: tuple[Floats, Floats],
) -> Floats:
    """(c,) the zero of the rising `gap` of each row, between two `ends`; starts at `at`.

    `rise`: (c,) the approximate slope with the logit there.
    """
    low, high = ends
    rows = np.arange(len(at))
    before, step = at.copy(), gap(rows, at)
    point = _logistic(_logit(at) - np.clip(step / rise, -1, 1))
    roots = at.copy()
    for _ in range(60):
        low[rows] = np.where(step < 0, np.maximum(low[rows], before), low[rows])
        high[rows] = np.where(step > 0, np.minimum(high[rows], before), high[rows])
        out = (point <= low[rows]) | (point >= high[rows])
        point = np.where(out, (low[rows] + high[rows]) / 2, point)
        now = gap(rows, point)
        x, y = _logit(before), _logit(point)
        with np.errstate(divide="ignore", invalid="ignore"):
            after = y - now * (y - x) / (now - step)
        after = np.where(np.isfinite(after), after, y)
        # the error after a further step is a fraction of the product of these two gaps
        last = np.abs(now * step) < CLOSE
        roots[rows] = np.where(last, np.clip(_logistic(after), low[rows], high[rows]), point)
        open_ = ~last & (np.abs(now) > CLOSE) & (high[rows] - low[rows] > 1e-13)
        if not open_.any():
            break
        rows, before, step = rows[open_], point[open_], now[open_]
        point = _logistic(after[open_])
    return roots


def _guess(clusters: Clusters) -> tuple[Floats, Floats]:
    """The bounds of beta distributions with the mean and the variance of the pooled share.

    Also the approximate slope of the normal quantile of the tail with the logit of a bound.
    """
    total = _total(clusters.weights, clusters.times)
    mean = _total(clusters.sums, clusters.times) / total
    gaps = clusters.sums - mean[:, None] * clusters.weights
    spread = _total(gaps**2, clusters.times) / total**2
    size = np.clip(mean * (1 - mean) / np.maximum(spread, 1e-30) - 1, 0.5, 1e9)
    at = np.asarray(betaincinv(size * mean, size * (1 - mean), TAIL), dtype=np.float64)
    return at, np.sqrt(np.maximum(size * mean * (1 - mean), 1.0))


def _below_zero(slopes: Floats, times: Floats) -> Floats:
    """(c,) P(Σ slope · G ≤ 0), G gamma variables of shape `times` (exponential if it is 1).

    The inversion of the moment generating function along a line through its saddle point, by the
    trapezoidal rule on y = width · sinh(t), in which the integrand falls doubly exponentially.
    Daniels, "Tail probability approximations", International Statistical Review 55, 1987.
    """
    ratios = slopes / slopes.min(axis=1, keepdims=True)
    saddle = _saddle(ratios, times)
    poles = ratios / (1 - ratios * saddle[:, None])
    width = 1 / np.sqrt(_total(poles**2, times) + 1 / saddle**2)
    # up to the point at which the integrand has fallen below e⁻³⁰ of its maximum
    heights = width[:, None] * SINH[:, -1]
    logs = np.log1p((poles[:, :, None] * heights[:, None]) ** 2)
    falls = np.einsum("cjt,cj->ct", logs, times) + np.log1p((heights / saddle[:, None]) ** 2)
    far = falls / 2 - np.log(COSH[:, -1]) > 30
    far[:, -1] = True
    end = far.argmax(axis=1)
    heights = width[:, None] * SINH[end]
    product = np.ones(heights.shape, dtype=np.complex128)
    np.divide(heights, saddle[:, None], out=product.imag)
    product *= _powers(poles, heights, times)
    values = (COSH[end] / product).real
    area = (values.sum(axis=1) - values[:, 0] / 2) * TURNS[end] / (NODES - 1)
    level = -_total(np.log1p(-ratios * saddle[:, None]), times) - np.log(saddle)
    return np.asarray(np.exp(level) * width * area / np.pi, dtype=np.float64)


def _total(values: Floats, times: Floats) -> Floats:
    """(c,) the sums of (c, j) values, each of which occurs `times` times."""
    return np.asarray(np.vecdot(values, times), dtype=np.float64)


def _powers(poles: Floats, heights: Floats, times: Floats) -> NDArray[np.complex128]:
    """(c, nodes) the products over kinds of (1 − i · pole · height) to the power of `times`."""
    if (times == 1).all():
        product = np.ones(heights.shape, dtype=np.complex128)
        factor = np.ones(heights.shape, dtype=np.complex128)
        for pole in poles.T:
            np.multiply(-pole[:, None], heights, out=factor.imag)
            product *= factor
        return product
    log, angle = np.zeros(heights.shape), np.zeros(heights.shape)
    for pole, several in zip(poles.T, times.T, strict=True):
        slant = pole[:, None] * heights
        log += several[:, None] / 2 * np.log1p(slant**2)
        angle -= several[:, None] * np.arctan(slant)
    return np.asarray(np.exp(log) * (np.cos(angle) + 1j * np.sin(angle)))


def _saddle(ratios: Floats, times: Floats) -> Floats:
    """(c,) the approximate minimum of −Σ times · log(1 − ratio · u) − log u, 0 < u < 1."""
    at = np.minimum(0.5, 1.5 / np.sqrt(_total(ratios**2, times)))
    for _ in range(8):
        terms = ratios / (1 - ratios * at[:, None])
        slope, bend = _total(terms, times), _total(terms**2, times)
        proposal = at - (slope - 1 / at) / (bend + 1 / at**2)
        proposal = np.where(proposal <= 0, at / 2, np.where(proposal >= 1, (1 + at) / 2, proposal))
        near = bool((np.abs(proposal - at) < 0.1 * at).all())
        at = proposal
        if near:
            break
    return at


def _logit(share: Floats) -> Floats:
    return np.asarray(np.log(share / (1 - share)))


def _logistic(value: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-value)))


def median_interval(wins: Floats, totals: Floats) -> tuple[float, float]:
    """The 95 % interval of the median over classes of their shares.

    `wins`, `totals`: (g, c) successes and trials of each class in each of g clusters; every class
    has a trial. If the median is θ or less, the shares of some half of the classes are, and so is
    the share of all their trials: the lower end is the least of Gaffke's bounds (`lower_bounds`)
    over halves of the classes. It is valid for few clusters and for classes with few trials, and is
    wide, because nothing is assumed about the half. For twelve classes or more not all halves are
    tried, only those with the fewest successes for their trials.
    """
    return _lower_median(wins, totals), 1 - _lower_median(totals - wins, totals)


def _lower_median(wins: Floats, totals: Floats) -> float:
    halves = _halves(wins.sum(axis=0), totals.sum(axis=0)).T
    sums, weights = ((column @ halves).T for column in (wins, totals))
    return max(float(lower_bounds(sums, weights).min()), 0.0)


def _halves(hits: Floats, n: Floats) -> Floats:
    """(m, c) 1 if a class is in a half: all halves, or for many classes the lowest ones."""
    classes = len(hits)
    half = -(-classes // 2)
    if comb(classes, half) <= ALL_HALVES:
        chosen = np.array(list(combinations(range(classes), half)))
    else:
        # the classes furthest below a bound have the least pooled share below it
        levels = np.linspace(0, 1, MEDIAN_STEPS)[:, None]
        gaps = np.vstack([hits / n, hits - levels * n])
        chosen = np.argsort(gaps, axis=1, kind="stable")[:, :half]
    members = np.zeros((len(chosen), classes))
    np.put_along_axis(members, chosen, 1.0, axis=1)
    return members
