"""The line through published models, and the distance of a model from it.

Effective robustness: Taori et al., "Measuring Robustness to Natural Distribution Shifts in Image
Classification", NeurIPS 2020, Section 2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.special import expit, ndtr, ndtri, stdtrit
from steadyeye.core.stats.bootstrap import ends
from steadyeye.core.stats.intervals import LEVEL, limit_to_video, number_clusters

Floats = NDArray[np.float64]
REPLICATES = 10_000


@dataclass(frozen=True)
class Space:
    """A scale for shares: `to` it and `back` to shares 0…1."""

    name: str
    to: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


PLAIN = Space("plain", np.asarray, np.asarray)
PROBIT = Space("probit", ndtri, ndtr)


def log_odds(share: Floats) -> Floats:
    """The log odds of shares, any shape: −inf for 0, inf for 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(share) - np.log1p(-np.asarray(share)), dtype=np.float64)


LOGIT = Space("logit", log_odds, expit)
SPACES = {space.name: space for space in (PLAIN, PROBIT)}


@dataclass(frozen=True)
class Line:
    """`intercept` + `slope` · accuracy on the scale of `space`, by least squares over n models.

    `covariance`: of (intercept, slope). `residual`: standard deviation of the models around the
    line, on that scale. `r2`: share of the variance explained, on that scale; NaN where all
    perturbed shares are equal.
    """

    space: Space
    n: int
    intercept: float
    slope: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    residual: float
    r2: float


@dataclass(frozen=True)
class Effective:
    """A model against the line: shares, `value` = perturbed − expected with its 95 % interval.

    `p`: two-sided, of the model lying on the line. `n`: anchors. Without any, all are None.
    """

    original: float | None
    perturbed: float | None
    expected: float | None
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    method: str


def fit(original: Floats, perturbed: Floats, space: Space, anchors: int) -> Line:
    """The least squares line of perturbed against original shares, (m,) each, m > 2.

    `anchors`: how many each share was counted over. A share of 0 or 1 has no probit: it is moved
    by half an anchor.

    Example:
        >>> accuracy = np.array([0.5, 0.6, 0.7, 0.8])
        >>> line = fit(accuracy, accuracy - 0.1, PLAIN, anchors=1000)
        >>> round(line.slope, 6), round(line.intercept, 6)
        (1.0, -0.1)

    """
    x, y = (_finite(space, share, anchors) for share in (original, perturbed))
    n = len(x)
    design = np.stack([np.ones(n), x], axis=1)
    inverse = np.linalg.inv(design.T @ design)
    intercept, slope = inverse @ design.T @ y
    left = y - design @ np.array([intercept, slope])
    variance = float(left @ left) / (n - 2)
    (a, b), (c, d) = (inverse * variance).tolist()
    total = float(np.sum((y - y.mean()) ** 2))
    # equal perturbed shares have no variance to explain
    r2 = 1 - float(left @ left) / total if y.max() > y.min() else float("nan")
    return Line(space, n, float(intercept), float(slope), ((a, b), (c, d)), variance**0.5, r2)


def coefficients(line: Line) -> tuple[tuple[float, float], tuple[float, float]]:
    """The 95 % intervals of intercept and slope, as if the models were independent."""
    quantile = _quantile(line)
    (a, _), (_, d) = line.covariance
    return (
        (line.intercept - quantile * a**0.5, line.intercept + quantile * a**0.5),
        (line.slope - quantile * d**0.5, line.slope + quantile * d**0.5),
    )


def predict_share(line: Line, share: Floats) -> Floats:
    """The perturbed share on the line at original shares; in probit 0 stays 0 and 1 stays 1."""
    return line.space.back(line.intercept + line.slope * line.space.to(share))


def confidence_band(line: Line, share: Floats) -> tuple[Floats, Floats]:
    """Where the line itself lies, with 95 % confidence at each of (n,) original shares."""
    return _band(line, share, 0.0)


def prediction_band(line: Line, share: Floats) -> tuple[Floats, Floats]:
    """Where 95 % of models of the same kind and number of anchors lie, at (n,) original shares."""
    return _band(line, share, line.residual**2)


def effective_robustness(
    right: NDArray[np.bool_], steady: NDArray[np.bool_], videos: NDArray[np.str_], line: Line
) -> Effective:
    """How far a model lies above the line, from its anchors.

    `right`: (n,) the anchor is; `steady`: (n,) all of its set is, within `right`; `videos`: (n,).
    Accuracy and pm-k are of the same anchors, so they are drawn together: a Bayesian bootstrap over
    videos (Rubin 1981), joined by half a video of each outcome (wrong, broken, steady) because an
    outcome nobody saw may still occur: with one anchor a video Jeffreys' posterior, exactly. The
    line is drawn from its own distribution, independently. With a single video the anchors are
    drawn, and the method says so. `value` lies within the interval.
    """
    n = len(right)
    if not n:
        why = "none: n = 0"
        return Effective(None, None, None, None, None, None, None, 0, why)
    outcome = right.astype(np.intp) + steady
    video, single = number_clusters(videos), len(np.unique(videos)) == 1
    counts = np.zeros((int(video.max()) + 1, 3))
    np.add.at(counts, (video, outcome), 1)
    a, p = float(right.mean()), float(steady.mean())
    straight = float(predict_share(line, np.array([a]))[0])
    draws = _draws(counts, line)
    low, high = ends(draws)
    below, above = np.sum(draws <= 0), np.sum(draws >= 0)
    chance = min(1.0, 2 * (min(below, above) + 1) / (REPLICATES + 1))
    value = p - straight
    units = number_of(len(counts), "anchor" if single else "video")
    method = f"Bayesian bootstrap over {units}{limit_to_video(videos)}"
    return Effective(
        a, p, straight, value, min(low, value), max(high, value), float(chance), n, method
    )


def strays(original: Floats, perturbed: Floats, anchors: int, line: Line) -> tuple[Floats, Floats]:
    """How far (m,) models lie above the line, and their standard errors, from shares alone.

    One anchor a video. What survives was right, so the two shares tell how often a model was
    wrong, broken and steady, which is all that its own sampling error needs (delta method). What
    they do not tell is how models err together on the same anchors: the line's error counts as
    independent.
    """
    step = 1e-6
    tilt = (predict_share(line, original + step) - predict_share(line, original - step)) / (
        2 * step
    )
    sampling = (
        perturbed * (1 - perturbed)
        + tilt**2 * original * (1 - original)
        - 2 * tilt * perturbed * (1 - original)
    ) / anchors
    low, high = confidence_band(line, original)
    of_line = (high - low) / (2 * _quantile(line))
    return perturbed - predict_share(line, original), np.sqrt(sampling + of_line**2)


def _finite(space: Space, share: Floats, anchors: int) -> Floats:
    scaled = space.to(share)
    moved = space.to(np.clip(share, 0.5 / anchors, 1 - 0.5 / anchors))
    return np.where(np.isfinite(scaled), scaled, moved)


def _draws(counts: Floats, line: Line) -> Floats:
    """(replicates,) effective robustness of resampled videos, (v, 3) outcomes, and lines."""
    # videos with the same outcomes are drawn as one: fast, and independent of their order
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    rng = np.random.default_rng(0)
    totals = rng.gamma(times, size=(REPLICATES, len(times))) @ kinds
    totals += rng.gamma(0.5, size=(REPLICATES, 3)) * counts.sum() / len(counts)
    shares = totals / totals.sum(axis=1, keepdims=True)
    steady, right = shares[:, 2], shares[:, 1] + shares[:, 2]
    scatter = rng.standard_normal((REPLICATES, 2)) @ np.linalg.cholesky(line.covariance).T
    scatter /= np.sqrt(rng.chisquare(line.n - 2, size=(REPLICATES, 1)) / (line.n - 2))
    lines = np.array([line.intercept, line.slope]) + scatter
    z = line.space.to(right)
    return np.asarray(steady - line.space.back(lines[:, 0] + lines[:, 1] * z), dtype=np.float64)


def _band(line: Line, share: Floats, more: float) -> tuple[Floats, Floats]:
    x = line.space.to(share)
    (a, b), (_, d) = line.covariance
    half = _quantile(line) * np.sqrt(a + 2 * b * x + d * x**2 + more)
    middle = line.intercept + line.slope * x
    return line.space.back(middle - half), line.space.back(middle + half)


def _quantile(line: Line) -> float:
    return float(stdtrit(line.n - 2, (1 + LEVEL) / 2))
