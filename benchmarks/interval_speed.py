"""Seconds of the intervals of a curve compared with a percentile bootstrap over its videos.

    python benchmarks/interval_speed.py [--rounds 7]

A curve has 31 cells, pm-0 … pm-30: the first frame at which an anchor breaks is random, correlated
within a video. Both are timed in turn, round by round; printed are the medians and the median of
the ratios within a round. The bootstrap, which covers too little with few videos
(`docs/explanation/coverage.md`), is the earlier method: 2,000 resamples of the videos, drawn once.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.stats.intervals import REPLICATES, CellTrials, proportions

SIZES = ((3, 30), (10, 20), (50, 20), (500, 4), (1_109, 2))
CELLS = 31


def curve(videos: int, anchors: int) -> CellTrials:
    """The trials of all cells, `anchors` in each video."""
    rng = np.random.default_rng(0)
    video = np.repeat(np.arange(videos), anchors)
    hard = rng.normal(size=videos)[video] + rng.normal(size=len(video))
    breaks = np.round(35 - 12 * hard)
    wins = breaks[None] > np.arange(CELLS)[:, None]
    cell = np.repeat(np.arange(CELLS), len(video))
    single = np.ones(wins.size, dtype=np.int64)
    names = np.array([f"v{v:04}" for v in video])
    return CellTrials(wins.ravel(), single, np.tile(names, CELLS), cell)


def bootstrapped(trials: CellTrials, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2, cells) percentile ends over (replicates, videos) draws."""
    _, video = np.unique(trials.videos, return_inverse=True)
    place = trials.cell * weights.shape[1] + video
    size = CELLS * weights.shape[1]
    wins, totals = (
        np.bincount(place, counts, size).reshape(CELLS, -1)
        for counts in (trials.wins, trials.totals)
    )
    return np.quantile((weights @ wins.T) / (weights @ totals.T), [0.025, 0.975], axis=0)


def main() -> None:
    """Prints one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    for videos, anchors in SIZES:
        trials = curve(videos, anchors)
        rng = np.random.default_rng(0)
        weights = rng.multinomial(videos, np.full(videos, 1 / videos), REPLICATES).astype(float)
        proportions(trials, CELLS)
        took = np.empty((rounds, 2))
        for row in took:
            started = time.perf_counter()
            proportions(trials, CELLS)
            middle = time.perf_counter()
            bootstrapped(trials, weights)
            row[:] = middle - started, time.perf_counter() - middle
        own, other = np.median(took, axis=0) * 1e3
        ratio = np.median(took[:, 0] / took[:, 1])
        print(
            f"{videos:,} videos of {anchors}: {own:.1f} ms, bootstrap {other:.1f} ms, {ratio:.2f}×"
        )


if __name__ == "__main__":
    main()
