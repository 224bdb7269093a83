"""Random weights of the clusters of a data set, the same for all models measured on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.intervals import (
    LEVEL,
    count_clusters,
    limit_to_video,
    number_clusters,
)
from steadyeye.core.stats.trials import Outcomes, Trials

Floats = NDArray[np.float64]
FEWEST = 5
"""Clusters below which resamples of them are too few for an interval."""
REPLICATES = 2_000
PART = 4_000_000
"""Number of sample weights in memory at once."""


@dataclass(frozen=True, eq=False)
class ClusterDraws:
    """Weights of g clusters: `weights` (replicates, g), above 0; `method`: the units, in words.

    `unseen`: (replicates,) the share of a further cluster that nobody has seen, which is as large
    as the cluster of a sample drawn at random. `enough`: whether there are clusters enough for an
    interval.
    """

    weights: Floats
    unseen: Floats
    method: str
    enough: bool


def draw_clusters(videos: NDArray[np.str_], block: int = 1, seed: int = 0) -> ClusterDraws:
    """The Bayesian bootstrap (Rubin 1981) over the clusters of (n,) samples, n > 0, seeded.

    A cluster is a video; within a single video it is a sample, or `block` samples in a row, and the
    method says that the result holds within this one video only. Fewer than `FEWEST` clusters are
    too few.
    """
    sizes = np.bincount(number_clusters(videos, block)).astype(np.float64)
    clusters = len(sizes)
    drawn_weights = np.random.default_rng(seed).standard_exponential((REPLICATES, clusters + 1))
    weights, further = drawn_weights[:, :-1], drawn_weights[:, -1]
    further = further * np.sum(sizes**2) / sizes.sum()
    unseen = further / (weights @ sizes + further)
    if clusters < FEWEST:
        method = f"none: {clusters} clusters are too few for a bootstrap, which needs {FEWEST}"
        return ClusterDraws(weights, unseen, method, enough=False)
    blocks = block > 1 and len(np.unique(videos)) == 1
    of = f"{clusters:,} blocks of {block} in a row" if blocks else count_clusters(videos)
    return ClusterDraws(weights, unseen, f"{of}{limit_to_video(videos)}", enough=True)


def resample_values(outcomes: Outcomes, draws: ClusterDraws) -> Floats:
    """(replicates,) values of a number in resamples of its clusters; NaN without a value."""
    if isinstance(outcomes, Trials):
        cluster = number_clusters(outcomes.videos, outcomes.block)
        return resample_shares(outcomes.success, cluster, draws.weights)
    cluster = number_clusters(outcomes.videos)
    rows = max(PART // len(cluster), 1)
    parts = [
        outcomes.resampled(draws.weights[first : first + rows, cluster].astype(np.float32))
        for first in range(0, len(draws.weights), rows)
    ]
    return np.concatenate(parts).astype(np.float64)


def resample_shares(
    success: NDArray[np.bool_], cluster: NDArray[np.intp], weights: Floats
) -> Floats:
    """(replicates,) shares of (n,) successes, their (n,) clusters having the weights given."""
    wins = np.bincount(cluster, weights=success, minlength=weights.shape[1])
    return np.asarray(weights @ wins / (weights @ np.bincount(cluster)), dtype=np.float64)


def bound_replicates(replicates: Floats, least: float, most: float) -> tuple[float, float]:
    """The percentile interval of (replicates,) values between `least` and `most`.

    A resample without a value may have any: it counts as the least at the lower end and as the
    most at the upper one.
    """
    tail = (1 - LEVEL) / 2
    lacking = np.isnan(replicates)
    low = np.quantile(np.where(lacking, least, replicates), tail, method="inverted_cdf")
    high = np.quantile(np.where(lacking, most, replicates), 1 - tail, method="inverted_cdf")
    return float(low), float(high)
