"""How surely a pair of frames that nobody was asked about is similar, from those around it.

A pair is a point (first frame, last frame); what is similar changes slowly over these points, at
a pace that differs from video to video. A Gaussian process over the answers ±1 (Rasmussen and
Williams, "Gaussian Processes for Machine Learning", 2006, equations 2.25, 2.26 and 2.30) says how
far the answers reach. What it says is never taken at its word: a random audit bounds its errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr

Points = NDArray[np.float64]

MEAN = 0.62  # of answers ±1: people accepted 81 % (Shankar et al., Table 1)
VARIANCE = 1 - MEAN**2
NOISE = 0.02  # variance: answers are not quite consistent
REACHES = (2.0, 4.0, 8.0)  # frames; the likeliest is taken, video by video
NEAR = 4.0  # frames: no pair is farther from one that was asked, or from a frame and itself
UNLIKELY = 0.1
BATCH = 16
SHARE = 0.1  # of what was asked already: a batch at least
APART = 2  # frames between two pairs of a batch, in the first or in the last frame


@dataclass(frozen=True)
class PairRound:
    """What follows from the answers so far, as numbers of pairs.

    `ask`: to be asked now, the others after that. Where it is empty all are settled: `implied` are
    surely similar, `beyond` are hardly so.
    """

    ask: Sequence[int]
    implied: Sequence[int] = ()
    beyond: Sequence[int] = ()


def round_of(pairs: Points, similar: Sequence[bool | None], sure: float) -> PairRound:
    """The next pairs to ask of a video, or what the answers imply of the rest.

    `pairs`: (n, 2) first and last frame. `similar`: the answer to each; None: not asked. `sure`:
    the probability from which a pair is implied; above 1 none ever is.
    """
    known = np.array([each is not None for each in similar], dtype=bool)
    uncovered = _cover(pairs, known)
    if uncovered or known.all():
        return PairRound(uncovered)
    rest = np.flatnonzero(~known)
    answers = np.array([1.0 if each else -1.0 for each in similar if each is not None])
    likely = probability(pairs[known], answers, pairs[rest])
    unsure = (likely > UNLIKELY) & (likely < sure)
    if unsure.any():
        first = rest[unsure][np.argsort(np.abs(likely[unsure] - 0.5), kind="stable")]
        return PairRound(_spread(pairs, first, max(BATCH, int(SHARE * known.sum()))))
    return PairRound([], rest[likely >= sure].tolist(), rest[likely < sure].tolist())


def probability(pairs: Points, answers: Points, wanted: Points) -> Points:
    """How probably each of `wanted` (m, 2) is similar, after `answers` ±1 to `pairs` (n, 2).

    A frame is always similar to itself, and counts as answered.
    """
    frames = np.unique(np.concatenate([pairs, wanted]))
    points = np.concatenate([np.stack([frames, frames], 1), pairs])
    given = np.concatenate([np.ones(len(frames)), answers]) - MEAN
    apart = _distances(points, points)
    best: tuple[float, float, Points, Points] | None = None
    for reach in REACHES:
        covariance = VARIANCE * np.exp(-apart / reach) + NOISE * np.eye(len(points))
        lower = cholesky(covariance, lower=True)
        solved = solve_triangular(lower, given, lower=True)
        likelihood = -0.5 * solved @ solved - np.log(np.diag(lower)).sum()
        if best is None or likelihood > best[0]:
            best = (likelihood, reach, lower, solved)
    assert best is not None
    _, reach, lower, solved = best
    across = VARIANCE * np.exp(-_distances(points, wanted) / reach)
    seen = solve_triangular(lower, across, lower=True)
    spread = np.sqrt(np.maximum(VARIANCE - (seen**2).sum(axis=0), 1e-9))
    return np.asarray(ndtr((MEAN + seen.T @ solved) / spread))


def _cover(pairs: Points, known: NDArray[np.bool_]) -> list[int]:
    """Pairs to ask so that none is far from an answer: each time the farthest one."""
    frames = np.unique(pairs)
    answered = np.concatenate([np.stack([frames, frames], 1), pairs[known]])
    nearest = _distances(pairs, answered).min(axis=1)
    chosen = []
    while nearest.max(initial=0.0) > NEAR:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(pairs, pairs[chosen[-1:]])[:, 0])
    return chosen


def _spread(pairs: Points, ordered: NDArray[np.intp], most: int) -> list[int]:
    """The first of these pairs that are not next to each other, up to `most`."""
    chosen: list[int] = []
    for number in ordered:
        if len(chosen) == most:
            break
        apart = np.abs(pairs[chosen] - pairs[number]).max(axis=1, initial=0.0)
        if apart.min(initial=APART) >= APART:
            chosen.append(int(number))
    return chosen


def _distances(one: Points, other: Points) -> Points:
    return np.asarray(np.sqrt(((one[:, None] - other[None]) ** 2).sum(axis=-1)))
