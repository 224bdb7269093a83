"""Logistic regression with intervals that are valid for clustered trials."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.special import expit, stdtr, stdtrit
from steadyeye.core.stats.intervals import LEVEL

STEPS = 50
FARTHEST = 12.0  # log-odds per standard deviation; beyond it the outcome counts as separated


@dataclass(frozen=True, eq=False)
class Fit:
    """The slopes of a logistic regression, p of them, in log-odds per unit.

    `slope`, `low`, `high`, `p`: (p,) float64 with 95 % intervals and two-sided p-values.
    """

    slope: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    p: NDArray[np.float64]


def logistic(
    values: NDArray[np.floating], outcome: NDArray[np.bool_], clusters: NDArray[np.str_]
) -> Fit | None:
    """Maximum likelihood of P(outcome) = 1/(1 + exp(−a − values · slope)), by Newton's method.

    `values`: (n, p); `outcome`: (n,) bool; `clusters`: (n,) the cluster of each trial. Variances
    are the linearised cluster jackknife, CV3L, with t(G − 1) for G clusters (MacKinnon, Nielsen and
    Webb, "Cluster-robust jackknife and bootstrap inference for logistic regression models", 2024):
    the plain sandwich is too narrow for few or unequal clusters. None without a maximum (the values
    separate the outcomes, or are linearly dependent) and with fewer than two informative clusters.
    """
    design = np.column_stack([np.ones(len(values)), values])
    coefficients = _maximum(design, outcome.astype(np.float64))
    if coefficients is None:
        return None
    chance = expit(design @ coefficients)
    _, cluster = np.unique(clusters, return_inverse=True)
    count = int(cluster.max()) + 1
    spread = _jackknife(design, chance, outcome - chance, cluster)
    if spread is None or count < 2:
        return None
    slope, error = coefficients[1:], np.sqrt(np.diag(spread)[1:])
    half_width = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
    p = 2 * stdtr(count - 1, -np.abs(slope) / error)
    return Fit(slope, slope - half_width, slope + half_width, np.asarray(p, dtype=np.float64))


def _maximum(
    design: NDArray[np.float64], outcome: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    coefficients = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = expit(design @ coefficients)
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design
        if np.linalg.cond(curvature) > 1e12:
            return None
        step = np.linalg.solve(curvature, design.T @ (outcome - chance))
        # a whole Newton step may overshoot the maximum if probabilities are near 0 or 1
        coefficients = coefficients + step * min(1.0, 4 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(coefficients[1:]).max(initial=0) > FARTHEST:
            return None
        if np.abs(step).max() < 1e-10:
            return coefficients
    return None


def _jackknife(
    design: NDArray[np.float64],
    chance: NDArray[np.float64],
    residual: NDArray[np.float64],
    cluster: NDArray[np.intp],
) -> NDArray[np.float64] | None:
    """(p + 1, p + 1) covariance: (G − 1)/G · Σ of the squared steps on leaving each cluster out."""
    count, width = int(cluster.max()) + 1, design.shape[1]
    scores = np.zeros((count, width))
    np.add.at(scores, cluster, design * residual[:, None])
    parts = np.zeros((count, width, width))
    weighted = design[:, :, None] * design[:, None, :] * (chance * (1 - chance))[:, None, None]
    np.add.at(parts, cluster, weighted)
    rest = parts.sum(axis=0) - parts
    if np.linalg.cond(rest).max() > 1e12:
        return None
    steps = np.linalg.solve(rest, -scores[:, :, None])[:, :, 0]
    return np.asarray((count - 1) / count * steps.T @ steps, dtype=np.float64)


def inflation(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """(p,) variance inflation factors: 1/(1 − R²) of each column on the others; ≥ 1."""
    correlation = np.corrcoef(values, rowvar=False).reshape(values.shape[1], -1)
    # with the ridge, linearly dependent columns give a huge number, not an error
    ridge = 1e-9 * np.eye(values.shape[1])
    return np.asarray(np.diag(np.linalg.inv(correlation + ridge)), dtype=np.float64)
