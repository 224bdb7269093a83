"""Where reference data are sparse: k-NN density ratios of two sets of points, and their null.

The density at a point is estimated by the neighbours near it (Loftsgaarden and Quesenberry, "A
Nonparametric Estimate of a Multivariate Density Function", Annals of Mathematical Statistics 36,
1965). Of two sets within one ball the volume cancels, so that the ratio of their densities is that
of the counts, whatever the number of dimensions (the ball of Wang, Kulkarni and Verdú, "Divergence
Estimation for Multidimensional Densities via k-Nearest-Neighbor Distances", IEEE Transactions on
Information Theory 55, 2009, grown until both sets together have k). Counts of labels among
neighbours have a null that is exact for any density: Schilling, "Multivariate Two-Sample Tests
Based on Nearest Neighbors", Journal of the American Statistical Association 81, 1986.
Nearest groups are exact: every distance is computed, block by block.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom

from steadyeye.core.seeds import stream
from steadyeye.core.stats.multiple_testing import benjamini_hochberg

Vectors: TypeAlias = NDArray[np.float32]

CELLS = 2**25
"""Distances in memory at once: 128 MB as float32."""

FALSE = 0.05
"""The false discovery rate of sparse points, and the error rate for data without sparse regions."""

SHUFFLES = 999
LEAST, MOST = 3, 50

DIMENSIONS = 64
"""Dimensions of the space in which vectors are compared."""


def space(vectors: Vectors, dimensions: int = DIMENSIONS) -> Vectors:
    """(n, ≤ `dimensions`) float32: vectors of length 1, on their leading principal components.

    `vectors`: (n, d). Of length 1, a distance is one of directions, as networks compare; few
    dimensions, since distances in many differ little (Beyer et al., "When Is Nearest Neighbor
    Meaningful?", ICDT 1999). Components of both sets together, so that no set is preferred; their
    signs are fixed by the largest loading. A vector of length 0 stays there.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    centred = unit - unit.mean(axis=0)
    _, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    leading = axes[:, ::-1][:, :dimensions]
    sign = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    return np.asarray(centred @ (leading * sign).astype(np.float32), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Thinness:
    """How sparse the reference is at each of n points of the other set.

    `ratio`: (n,) natural logarithm of the density of the other set over that of the reference,
    above 0 if the reference is sparse. `p`: (n,) the probability of so few reference groups among
    the `k` nearest groups; `adjusted`: the same after Benjamini and Hochberg. `thin`: (n,) bool,
    the sparse points. `far`: (n,) the share of the reference, 0…1, that is nearer to the rest of
    the reference than the point. `chance`: how often shuffled labels give an adjusted p as small as
    the smallest. `groups`: number of groups of the reference and of the other set.
    """

    ratio: NDArray[np.float64]
    p: NDArray[np.float64]
    adjusted: NDArray[np.float64]
    thin: NDArray[np.bool_]
    far: NDArray[np.float64]
    chance: float
    k: int
    groups: tuple[int, int]


def thinness(points: Vectors, group: NDArray[np.str_], reference: NDArray[np.bool_]) -> Thinness:
    """How sparse the reference is at each point of the other set, in the given order.

    `points`: (n, d) float32 of both sets; `group`: (n,) the image or video of each, none of which
    is in both sets; `reference`: (n,) bool. At least `LEAST` + 1 groups of the reference and 2 of
    the other set. The nearest groups are counted, not points, and a point's own is left out. Under
    the null, labels are exchangeable between groups, so that the count of the reference among k of
    the others is hypergeometric, whatever the densities. Points share neighbours, so a point is
    `thin` only if its adjusted p is at most `FALSE` and the smallest of them is beyond that share
    of `SHUFFLES` shuffles of the labels of whole groups. The order of the points does not matter.
    """
    _, group_of = np.unique(group, return_inverse=True)
    of_reference = np.zeros(int(group_of.max()) + 1, dtype=np.bool_)
    of_reference[group_of[reference]] = True
    assert not of_reference[group_of[~reference]].any(), "a group is in both sets"
    inside, outside = int(of_reference.sum()), int((~of_reference).sum())
    assert inside > LEAST, "too small a reference"
    assert outside > 1, "one group alone has no neighbours of its set"
    # the square root of their number, as Loftsgaarden and Quesenberry use
    k = min(max(round(len(of_reference) ** 0.5), LEAST), MOST, inside - 1)
    near = nearest_groups(points, group_of, k).group
    chances = hypergeom.cdf(np.arange(k + 1), len(of_reference) - 1, inside, k)
    count = of_reference[near].sum(axis=1)[~reference]
    p = chances[count]
    adjusted = benjamini_hochberg(p)
    chance = _chance(near, group_of, of_reference, chances)
    # one neighbour more, as expected under the null, keeps the logarithm finite and unbiased
    expected = inside / (len(of_reference) - 1)
    of_others = np.log((k - count + 1 - expected) / (1 - expected))
    ratio = of_others - np.log((count + expected) / expected)
    return Thinness(
        ratio=np.asarray(ratio),
        p=p,
        adjusted=adjusted,
        thin=np.asarray((adjusted <= FALSE) & (chance <= FALSE), dtype=np.bool_),
        far=_far(points, group_of, of_reference, k),
        chance=chance,
        k=k,
        groups=(inside, outside),
    )


def _chance(
    near: NDArray[np.int64],
    group_of: NDArray[np.int64],
    of_reference: NDArray[np.bool_],
    chances: NDArray[np.float64],
) -> float:
    """The share of shuffles, the sealed labels among them, whose smallest adjusted p is as small.

    The largest statistic over all points under a joint shuffle: Westfall and Young,
    "Resampling-Based Multiple Testing", 1993, Section 2.6.
    """
    rng = stream(0, "blind spots")
    observed = _smallest_adjusted(near, group_of, of_reference, chances)
    labels = (rng.permutation(of_reference) for _ in range(SHUFFLES))
    as_small = sum(
        _smallest_adjusted(near, group_of, permuted, chances) <= observed for permuted in labels
    )
    return (1 + as_small) / (1 + SHUFFLES)


def _smallest_adjusted(
    near: NDArray[np.int64],
    group_of: NDArray[np.int64],
    of_reference: NDArray[np.bool_],
    chances: NDArray[np.float64],
) -> float:
    """The smallest p after Benjamini and Hochberg, from the number of points with each count."""
    other = ~of_reference[group_of]
    count = of_reference[near].sum(axis=1)[other]
    so_few = np.bincount(count, minlength=len(chances)).cumsum()
    occupied = so_few > 0
    return float((chances[occupied] * len(count) / so_few[occupied]).min())


def _far(
    points: Vectors, group_of: NDArray[np.int64], of_reference: NDArray[np.bool_], k: int
) -> NDArray[np.float64]:
    """(n,) for points of the other set, the share of the reference nearer to the rest of it.

    Each group of the reference counts as one, its points in equal parts; each of them is left out
    with its whole group when its own distance to the k-th nearest group is taken.
    """
    distance = nearest_groups(points, group_of, k, among=of_reference).distance[:, -1]
    reference = of_reference[group_of]
    weight = 1 / np.bincount(group_of)[group_of[reference]] / of_reference.sum()
    order = np.argsort(distance[reference], kind="stable")
    rising = distance[reference][order]
    share = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray((share / share[-1])[np.searchsorted(rising, distance[~reference])])


@dataclass(frozen=True, eq=False)
class Nearest:
    """The k nearest groups of each of n points, the point's own left out, rising by distance.

    `group`: (n, k) int64 indices of groups; `distance`: (n, k) float32, to the nearest point of
    each.
    """

    group: NDArray[np.int64]
    distance: NDArray[np.float32]


def nearest_groups(
    points: Vectors, group: NDArray[np.int64], k: int, among: NDArray[np.bool_] | None = None
) -> Nearest:
    """The k nearest groups of every point, each by its nearest member.

    `points`: (n, d) float32. `group`: (n,) 0 … g − 1, all of them there. `among`: (g,) bool, the
    groups that can be neighbours, all if left out; more than k. Boxes of one video show the same
    objects repeatedly, so a group counts once. Groups at equal distances go by their index. If
    every point is its own group, these are the k nearest neighbours.
    """
    counts = np.ones(int(group.max()) + 1, dtype=np.bool_) if among is None else among
    names = np.flatnonzero(counts)
    assert 0 < k < len(names), "fewer groups than neighbours"
    column = np.where(counts, np.cumsum(counts) - 1, -1)[group]
    order = np.argsort(column, kind="stable")[int((column < 0).sum()) :]
    others, starts = points[order], np.searchsorted(column[order], np.arange(len(names)))
    squares = np.einsum("ij,ij->i", others, others)
    nearest = Nearest(
        np.empty((len(points), k), dtype=np.int64), np.empty((len(points), k), dtype=np.float32)
    )
    size = max(CELLS // len(others), 1)
    for first in range(0, len(points), size):
        block = slice(first, first + size)
        apart = _apart(points[block], others, squares)
        if len(names) < len(others):
            apart = np.minimum.reduceat(apart, starts, axis=1)
        own = np.flatnonzero(column[block] >= 0)
        apart[own, column[block][own]] = np.inf
        columns = _smallest(apart, k)
        nearest.group[block] = names[columns]
        nearest.distance[block] = np.sqrt(np.take_along_axis(apart, columns, axis=1))
    return nearest


def _apart(block: Vectors, others: Vectors, squares: NDArray[np.float32]) -> NDArray[np.float32]:
    """(b, n) squared distances; never below 0, which rounding could make them."""
    apart = np.asarray(block @ others.T, dtype=np.float32)
    apart *= -2
    apart += squares
    apart += np.einsum("ij,ij->i", block, block)[:, None]
    np.maximum(apart, 0, out=apart)
    return apart


def _smallest(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """(b, k) the columns of the k smallest values of each row, rising; ties by column."""
    bar = np.partition(values, k - 1, axis=1)[:, k - 1]
    rows, columns = np.nonzero(values <= bar[:, None])
    order = np.lexsort((columns, values[rows, columns], rows))
    first = np.searchsorted(rows, np.arange(len(values)))
    picked: NDArray[np.int64] = columns[order][first[:, None] + np.arange(k)]
    return picked
