"""How often the intervals of a review hold the truth: accepted shares, and agreement.

    python benchmarks/review_coverage.py [--tries 1000]

A video has one to four sets of ten pairs. Whether a pair is acceptable, and how often reviewers are
wrong about it, is alike within a video and a set; half of the correlation is the video's. The truth
is that of 5,000 videos.
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm

from steadyeye.review.results.agreement import (
    bound_share,
    find_clusters,
    measure_alpha,
    measure_kappa,
)

PAIRS = 10
CORRELATIONS = (0.05, 0.3, 0.8)
CASES = ((0.7, 0.05, 2), (0.95, 0.02, 2), (0.7, 0.25, 3), (0.9, 0.1, 5))
"""(share accepted, share of answers that are wrong, reviewers)"""

Floats = NDArray[np.float64]


class Population:
    """Videos of a case at a correlation, as answers: (reviewers, pairs) and (pairs,) their sets."""

    def __init__(self, case: tuple[float, float, int], correlation: float) -> None:
        self.share, self.wrong, self.people = case
        self.correlation = correlation

    def draw(self, rng: np.random.Generator, videos: int) -> tuple[NDArray[np.int32], list[str]]:
        """The answers, 0 or 1; and the names of the sets, `video/set`."""
        video = np.repeat(np.arange(videos), rng.integers(1, 5, videos))
        accepted, wrong = (
            np.repeat(self._find_chances(rng, video, share), PAIRS)
            for share in (self.share, self.wrong)
        )
        truth = rng.random(len(accepted)) < accepted
        answers = truth ^ (rng.random((self.people, len(truth))) < wrong)
        names = [f"{v}/{number}" for number, v in enumerate(video.tolist()) for _ in range(PAIRS)]
        return answers.astype(np.int32), names

    def _find_chances(self, rng: np.random.Generator, video: NDArray, share: float) -> Floats:
        """(sets,) chances with this mean, alike within a video."""
        own = rng.normal(size=video.max() + 1)[video] + rng.normal(size=len(video))
        rest = np.sqrt(1 - self.correlation)
        return norm.cdf((norm.ppf(share) + np.sqrt(self.correlation / 2) * own) / rest)


def measure(answers: NDArray[np.int32], names: list[str]) -> dict[str, tuple[float, float, float]]:
    """(value, low, high) of each number; NaN for an interval that is undefined."""
    videos = {name: name.split("/")[0] for name in names}
    clusters = find_clusters("pairs", names, videos)
    sets, place = np.unique(names, return_inverse=True)
    right = np.bincount(place, answers[0]).astype(int).tolist()
    counts = [(str(name), k, PAIRS) for name, k in zip(sets, right, strict=True)]
    k, n = sum(right), len(names)
    ends = beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
    plain = k / n, *np.nan_to_num(ends, nan=float(k == n)).tolist()
    intervals = {
        "accepted share": bound_share("pairs", counts, videos),
        "α": measure_alpha(answers, clusters),
        "κ": measure_kappa(answers[:2], clusters),
    }
    nothing = (np.nan,) * 3
    return {"Clopper–Pearson of pairs": plain} | {
        name: nothing if own.value is None else (own.value, *own.ends)
        for name, own in intervals.items()
    }


def main() -> None:
    """Print the lowest coverage over the cases, and the mean width."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=1_000)
    tries = parser.parse_args().tries
    print("| number | videos | correlation 0.05 | correlation 0.3 | correlation 0.8 |")
    print("|---|---|---|---|---|")
    populations = [[Population(case, c) for case in CASES] for c in CORRELATIONS]
    truths = {
        id(of): measure(*of.draw(np.random.default_rng(1), 5_000))
        for several in populations
        for of in several
    }
    for videos in (3, 5, 10, 30):
        cells: dict[str, list[str]] = {}
        for several in populations:
            covered: dict[str, list[tuple[float, float]]] = {}
            for number, of in enumerate(several):
                rng = np.random.default_rng([videos, round(100 * of.correlation), number])
                samples = [measure(*of.draw(rng, videos)) for _ in range(tries)]
                for name, (value, *_) in truths[id(of)].items():
                    low, high = np.array([ends[name][1:] for ends in samples]).T
                    low, high = low[~np.isnan(low)], high[~np.isnan(high)]
                    inside = np.mean((low <= value) & (value <= high))
                    covered.setdefault(name, []).append((inside, float(np.mean(high - low))))
            for name, pairs in covered.items():
                share, width = min(p[0] for p in pairs), np.mean([p[1] for p in pairs])
                cells.setdefault(name, []).append(f"{share:.1%} ({width:.2f})")
        for name, texts in cells.items():
            print(f"| {name} | {videos} | {' | '.join(texts)} |", flush=True)


if __name__ == "__main__":
    main()
