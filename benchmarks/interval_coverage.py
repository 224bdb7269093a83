"""Coverage of intervals: simulated videos, few and many, with and without correlation.

    python benchmarks/interval_coverage.py [--tries 4000] [--only proportion]

Prints one Markdown table, the same every time. A case is a function of `CASES`; a new kind of
number adds one.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from steadyeye.core.stats import bounded_means, proportions

VIDEOS = (3, 5, 10, 20, 50)
CORRELATIONS = (0.05, 0.3, 0.8)
SHARES = (0.5, 0.7, 0.9, 0.97)
PAIRS = ((0.5, 0.5), (0.7, 0.6), (0.9, 0.88), (0.97, 0.97), (0.97, 0.95), (0.97, 0.9))
ANCHORS = 20  # of a video, on average
WIDTHS = 100  # intervals whose width is measured, of all that are tried


@dataclass(frozen=True)
class Covered:
    """The results of intervals around one truth.

    `above`, `below`: (tries,) bool, the low end is above it, the high end below it. `width`: their
    mean width. All None if there is no interval ("too few").
    """

    above: NDArray[np.bool_] | None
    below: NDArray[np.bool_] | None
    width: float | None


Case = Callable[[np.random.Generator, int, float, int], list[Covered]]
"""(rng, videos, correlation within a video, tries) → the results for each of its truths."""


def lengths(videos: int, equal: bool) -> NDArray[np.float64]:
    """(videos,) anchors of each: 20, or from 4 to 90."""
    if equal:
        return np.full(videos, float(ANCHORS))
    return np.round(ANCHORS * np.exp(np.linspace(-1.5, 1.5, videos)))


def proportion(
    rng: np.random.Generator, videos: int, correlation: float, tries: int
) -> list[Covered]:
    """Accuracy, pm-k, flip rate: beta-binomial videos of equal and of unequal length."""
    trials = []
    for equal in (True, False):
        anchors = lengths(videos, equal)
        totals = np.tile(anchors, (tries, 1))
        for share in SHARES:
            odds = (1 - correlation) / correlation
            chance = rng.beta(share * odds, (1 - share) * odds, size=totals.shape)
            wins = rng.binomial(anchors.astype(int), chance).astype(np.float64)
            trials.append(bounded(wins, totals, share))
    return trials


def bounded(
    wins: NDArray[np.float64], totals: NDArray[np.float64], share: float, scale: float = 1.0
) -> Covered:
    """Gaffke's bounds around a share; `scale`: the value of a share of 1."""
    at = np.full(len(wins), share)
    above = bounded_means.chances(wins, totals, at) < bounded_means.TAIL
    below = bounded_means.chances(totals - wins, totals, 1 - at) < bounded_means.TAIL
    low, high = bounded_means.intervals(wins[:WIDTHS], totals[:WIDTHS])
    return Covered(above, below, scale * float(np.mean(high - low)))


def difference(
    rng: np.random.Generator, videos: int, correlation: float, tries: int
) -> list[Covered]:
    """Two models that share half of a video's difficulty: probit-normal videos of 20 anchors."""
    trials = []
    totals = np.full((tries, videos), float(ANCHORS))
    for share, other in PAIRS:
        shared = rng.normal(size=(tries, videos))
        wins = [
            rng.binomial(ANCHORS, _chance(rng, shared, correlation, wins_of))
            for wins_of in (share, other)
        ]
        lead = (wins[0] - wins[1]).astype(np.float64)
        gap = share - other
        some = [
            proportions.cluster_ends(*wins_of)[:2]
            for wins_of in zip(lead[:WIDTHS], totals, strict=False)
        ]
        width = float(np.mean([high - low for low, high in some]))
        above, below = _excludes(lead, totals, gap), _excludes(-lead, totals, -gap)
        # equal to a comparison with the ends, without computing them
        assert sum(above[:WIDTHS] != [low > gap + 1e-9 for low, _ in some]) <= WIDTHS // 50
        trials.append(Covered(above, below, width))
    return trials


def _chance(
    rng: np.random.Generator, shared: NDArray[np.float64], correlation: float, share: float
) -> NDArray[np.float64]:
    """(tries, videos) the probability that an anchor is right: normal difficulty of each video."""
    hard = (shared + rng.normal(size=shared.shape)) * np.sqrt(correlation / 2)
    return np.asarray(norm.cdf((norm.ppf(share) - hard) / np.sqrt(1 - correlation)))


def _excludes(
    lead: NDArray[np.float64], totals: NDArray[np.float64], gap: float
) -> NDArray[np.bool_]:
    """(tries,) whether the low end of `proportions.cluster_ends` lies above a gap."""
    half = proportions.subsets(lead.shape[1])
    tail = bounded_means.TAIL
    below = np.mean((lead - max(gap, 0) * totals) @ half.T <= 1e-9, axis=1) <= tail
    if gap >= 0:
        return below
    shares, at = (lead + totals) / 2, np.full(len(lead), (1 + gap) / 2)
    return below | (bounded_means.chances(shares, totals, at) < tail)


CASES: dict[str, Case] = {
    "proportion": proportion,
    "difference": difference,
}


def line(
    name: str, case: Case, videos: int, tries: int, correlations: Sequence[float] = CORRELATIONS
) -> str:
    """A row of the table: coverage (width) at each correlation, and the worst single end.

    A cell says how many of the case's truths have intervals, if not all; `correlations`: those that
    are simulated, a dash for the others.
    """
    cells, ends = [], 0.0
    for correlation in correlations:
        rng = np.random.default_rng([videos, round(100 * correlation)])
        every = case(rng, videos, correlation, tries)
        trials = [trial for trial in every if trial.width is not None]
        if not trials:
            cells.append("too few")
            continue
        missed = [(trial.above.mean(), trial.below.mean()) for trial in trials]
        ends = max(ends, *(max(pair) for pair in missed))
        width = np.mean([trial.width for trial in trials])
        part = "" if len(trials) == len(every) else f", {len(trials)} of {len(every)}"
        cells.append(f"{1 - max(map(sum, missed)):.1%} ({width:.2f}{part})")
    cells += ["–"] * (len(CORRELATIONS) - len(correlations))
    return f"| {name} | {videos} | {' | '.join(cells)} | {ends:.1%} |"


def print_head() -> None:
    """Print the head of a table of `line`."""
    columns = " | ".join(f"correlation {c}" for c in CORRELATIONS)
    print(f"| number | videos | {columns} | worst end |")
    print("|---|---|" + "---|" * (len(CORRELATIONS) + 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=4_000)
    parser.add_argument("--only", choices=sorted(CASES))
    arguments = parser.parse_args()
    print_head()
    for name in [arguments.only] if arguments.only else CASES:
        for videos in VIDEOS:
            print(line(name, CASES[name], videos, arguments.tries), flush=True)


if __name__ == "__main__":
    main()
