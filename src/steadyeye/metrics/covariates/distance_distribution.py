"""Shares of pairs within a distance, with intervals over videos or pm-sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.bootstrap import ends
from steadyeye.core.stats.intervals import REPLICATES

STEPS = 256  # an ℓ∞ distance of 8-bit pixels is one of 0/255 … 255/255


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distances of n pairs, n > 0, multiples of 1/255.

    `within`: (256,) the share of pairs within i/255. `replicates`: (2000, 256) the same of pairs
    in resamples of whole clusters, or (0, 256) where there is one cluster alone.
    """

    n: int
    within: NDArray[np.float64]
    replicates: NDArray[np.float64]

    def quantile(self, share: float) -> tuple[float, float | None, float | None]:
        """The smallest distance within which `share` of the pairs lie, and its 95 % interval."""
        value = float(_first(self.within[None], share)[0])
        if not len(self.replicates):
            return value, None, None
        return (value, *ends(_first(self.replicates, share)))


def distribution(distances: NDArray[np.floating], clusters: NDArray[np.str_]) -> Distribution:
    """The distribution of (n,) distances in 0…1, n > 0; `clusters`: (n,) what is resampled."""
    steps = np.rint(np.asarray(distances) * 255).astype(np.int64)
    names, cluster = np.unique(clusters, return_inverse=True)
    counts = np.zeros((len(names), STEPS))
    np.add.at(counts, (cluster, steps), 1.0)
    counts = counts.cumsum(axis=1)
    total = counts.sum(axis=0)
    replicates = np.zeros((0, STEPS))
    if len(names) > 1:
        even = np.full(len(names), 1 / len(names))
        draws = np.random.default_rng(0).multinomial(len(names), even, size=REPLICATES)
        resampled = draws @ counts
        replicates = resampled / resampled[:, -1:]
    return Distribution(len(steps), total / total[-1], replicates)


def _first(within: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """(m,) the first distance at which each row reaches a share."""
    return np.asarray((within >= share - 1e-12).argmax(axis=1) / 255, dtype=np.float64)
