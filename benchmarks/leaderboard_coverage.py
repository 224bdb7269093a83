"""Coverage of a leaderboard: ranks, distances from the line, rank correlation.

    python benchmarks/leaderboard_coverage.py [--tries 200] [--only ranks]

Prints one Markdown table, the same every time. Models are drawn on the videos of a data set from
populations with exact shares; intervals and ranks are those of the package itself.
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, norm

from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import chance_of_equal_means, prepare_outcomes
from steadyeye.core.stats.proportions import exchange_chances
from steadyeye.core.stats.trials import Trials
from steadyeye.metrics.testbed.testbed_fit import LOGIT, PROBIT, Space
from steadyeye.report.comparison.cluster_draws import draw_clusters, resample_values
from steadyeye.report.comparison.leaderboards import ALPHA
from steadyeye.report.comparison.own_line import AnchorOutcomes, fit_own_line
from steadyeye.report.comparison.set_correlation import SetValues, correlate_sets

VIDEOS = (5, 10, 20)
MODELS = tuple("abcdefgh")
ANCHORS = 8  # of a video
CORRELATION = 0.3  # of the anchors of a video, for one model
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SPREAD = (0.5, 0.6, 0.7, 0.8, 0.9)
CLOSE = (0.7, 0.72, 0.74, 0.76, 0.78)
ORDERS = {
    "same order": (SPREAD, SPREAD),
    "opposite order": (SPREAD, SPREAD[::-1]),
    "mixed order": (SPREAD, (0.6, 0.5, 0.8, 0.9, 0.7)),
    "close, same order": (CLOSE, CLOSE),
    "close, mixed order": (CLOSE, (0.72, 0.7, 0.76, 0.78, 0.74)),
    "unrelated order": (SPREAD, (0.6, 0.9, 0.7, 0.5, 0.8)),
    "close, unrelated order": (CLOSE, (0.72, 0.78, 0.74, 0.7, 0.76)),
    "two equal": (SPREAD, (0.6, 0.6, 0.7, 0.8, 0.9)),
}
LINES = {
    "on a line": (SPREAD, (0.3, 0.4, 0.5, 0.62, 0.78)),
    "one model off it": (SPREAD, (0.3, 0.4, 0.65, 0.62, 0.78)),
    "close": (CLOSE, (0.5, 0.54, 0.52, 0.6, 0.58)),
    "shares near 1": ((0.9, 0.93, 0.95, 0.97, 0.98), (0.8, 0.86, 0.88, 0.95, 0.96)),
}
RANKS = {
    "5 equal models": (0.7,) * 5,
    "8 equal models": (0.7,) * 8,
    "5 models, 2 pp apart": CLOSE,
    "5 models, 10 pp apart": SPREAD,
}


class Population(NamedTuple):
    """Models by their shares; of the same seed all have the same videos and anchors."""

    shares: Sequence[Sequence[float]]

    def draw(self, rng: np.random.Generator, videos: int) -> list[Bools]:
        """(m, n) outcomes for each list of m shares: within a model a lower share is contained.

        All models share half of the difficulty of a video, and half of that of an anchor.
        """
        models, n = len(self.shares[0]), videos * ANCHORS
        video = number_videos(videos)

        def draw_half_shared(size: int) -> Floats:
            own, shared = rng.normal(size=(models, size)), rng.normal(size=size)
            return np.asarray((own + shared) / np.sqrt(2))

        hard = np.sqrt(CORRELATION) * draw_half_shared(videos)[:, video]
        hard = hard + np.sqrt(1 - CORRELATION) * draw_half_shared(n)
        return [hard < norm.ppf(shares)[:, None] for shares in self.shares]


def number_videos(videos: int) -> NDArray[np.intp]:
    """(n,) the video of each anchor."""
    return np.repeat(np.arange(videos), ANCHORS)


def cover_ranks(shares: Sequence[float]) -> Callable[[np.random.Generator, int], list[bool]]:
    """A try: whether the ranks left open hold the true ones, of all models at once."""

    def attempt(rng: np.random.Generator, videos: int) -> list[bool]:
        (success,) = Population([shares]).draw(rng, videos)
        return [check_ranks(success, shares, videos)]

    return attempt


def find_clear(success: Bools, videos: int, alpha: float = ALPHA) -> Bools:
    """(m, m) whether a model's mean is clearly higher than another's.

    From the p values of the package and Holm's adjustment, as `leaderboard` has it but without the
    intervals of differences, which take most of its time.
    """
    wins = success.reshape(len(success), videos, ANCHORS).sum(axis=2).astype(np.float64)
    pairs = list(combinations(range(len(wins)), 2))
    chances = [exchange_chances(wins[i] - wins[j]) for i, j in pairs]
    plain = [min(1.0, 2 * min(both)) for both in chances]
    names = number_videos(videos).astype(str)
    many = [prepare_outcomes(Trials(own, names)) for own in success]
    means = [
        chance_of_equal_means(many[i], many[j], p) if adjusted <= ALPHA else 1.0
        for (i, j), p, adjusted in zip(pairs, plain, holm(plain), strict=True)
    ]
    better = np.zeros((len(wins), len(wins)), bool)
    for (i, j), p in zip(pairs, holm(means), strict=True):
        first, second = (i, j) if wins[i].sum() > wins[j].sum() else (j, i)
        better[first, second] = p <= alpha
    return better


def check_ranks(success: Bools, shares: Sequence[float], videos: int) -> bool:
    """Whether all models' ranks lie within; of equal models all the ranks that they share."""
    better, true = find_clear(success, videos), np.asarray(shares)
    first = 1 + better.sum(axis=0)
    last = len(true) - better.sum(axis=1)
    above, below = ((true[:, None] > true).sum(axis=axis) for axis in (0, 1))
    return bool(np.all(first <= 1 + above) and np.all(last >= len(true) - below))


def cover_ranks_of_whole_videos(rng: np.random.Generator, videos: int) -> list[bool]:
    """A try of five models of share 0.9: two of them wrong on one in ten whole videos."""
    steady = rng.random((3, videos * ANCHORS)) < 0.9
    whole = (rng.random((2, videos)) < 0.9)[:, number_videos(videos)]
    return [check_ranks(np.concatenate([steady, whole]), (0.9,) * 5, videos)]


def cover_distances(
    right: Sequence[float], steady: Sequence[float], space: Space
) -> Callable[[np.random.Generator, int], list[bool]]:
    """A try: whether the distance of each of the models lies in its interval."""
    x, y = (space.to(np.asarray(shares)) for shares in (right, steady))
    slope, intercept = np.polyfit(x, y, 1)
    truth = np.asarray(steady) - space.back(intercept + slope * x)

    def attempt(rng: np.random.Generator, videos: int) -> list[bool]:
        outcomes = Population([right, steady]).draw(rng, videos)
        models = [
            AnchorOutcomes(f"{i}", *pair) for i, pair in enumerate(zip(*outcomes, strict=True))
        ]
        own = fit_own_line(models, number_videos(videos).astype(str), space)
        return [
            d.low is not None and d.high is not None and d.low <= true <= d.high
            for d, true in zip(own.distances, truth, strict=True)
        ]

    return attempt


def cover_tau(
    first: Sequence[float], second: Sequence[float]
) -> Callable[[np.random.Generator, int], list[bool]]:
    """A try: whether the true Kendall's tau-b of two data sets lies in its interval."""
    truth = float(kendalltau(first, second).statistic)

    def attempt(rng: np.random.Generator, videos: int) -> list[bool]:
        names = number_videos(videos).astype(str)
        sets = []
        for seed, shares in enumerate((first, second)):
            (success,) = Population([shares]).draw(rng, videos)
            better = find_clear(success, videos, ALPHA / 2).astype(np.int_)
            draws = draw_clusters(names, seed=seed)
            replicates = np.stack([resample_values(Trials(own, names), draws) for own in success])
            facts = (f"{seed}", "accuracy", MODELS[: len(shares)], success.mean(axis=1))
            sets.append(SetValues(*facts, better - better.T, replicates, draws))
        (pair,) = correlate_sets(sets)
        assert pair.low is not None, "videos enough"
        assert pair.high is not None, "videos enough"
        return [pair.low - 1e-9 <= truth <= pair.high + 1e-9]

    return attempt


CASES = {
    "ranks": {
        **{f"ranks, {name}": cover_ranks(shares) for name, shares in RANKS.items()},
        "ranks, 5 equal models, 2 of them wrong on whole videos": cover_ranks_of_whole_videos,
    },
    "distances": {
        f"distance from the line ({space.name}), {name}": cover_distances(*shares, space)
        for space in (PROBIT, LOGIT)
        for name, shares in LINES.items()
    },
    "tau": {f"Kendall's τ, {name}": cover_tau(*shares) for name, shares in ORDERS.items()},
}


def main() -> None:
    """Print the coverage of each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--only", choices=sorted(CASES))
    arguments = parser.parse_args()
    print(f"| number | {' | '.join(f'{videos} videos' for videos in VIDEOS)} |")
    print("|---|" + "---|" * len(VIDEOS))
    for kind in [arguments.only] if arguments.only else CASES:
        for name, attempt in CASES[kind].items():
            cells = []
            for videos in VIDEOS:
                rng = np.random.default_rng(videos)
                covered = np.array([attempt(rng, videos) for _ in range(arguments.tries)])
                cell = f"{covered.mean(axis=0).min():.1%}"
                several = covered.shape[1] > 1
                cells.append(f"{cell} ({covered.all(axis=1).mean():.1%})" if several else cell)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
