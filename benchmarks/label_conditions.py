"""Results of few labels for clustered sets, uninformative confidence, and wrong labels.

    python benchmarks/label_conditions.py [--tries 10000]

Prints Markdown, the same every time. Clustered sets: every study has its own pool, in the package's
order for the seed, and is compared with one that labels whole videos first. The share of a video is
beta distributed. Strata: five of equal size by a confidence that separates right sets from wrong
ones more or less. Wrong labels: the pool of `labels.py`, pm-10 one set below 70 %, where a wrong
label changes any set, or only a right one, as if a wrong class were never the predicted one.
Boundaries and intervals are those of `steadyeye.core.stats.label_budget`.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import numpy as np
from labels import Ints, count_right, pool
from numpy.typing import NDArray
from scipy.stats import norm

from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.core.stats.label_budget import (
    RequiredShare,
    StratumCounts,
    count_ends,
    count_ends_of_strata,
)
from steadyeye.metrics.label_studies.cost import find_boundaries
from steadyeye.metrics.label_studies.study import MOST_STRATA, rank_sets

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

CONSISTENT = 1_600  # sets that can count
SHARES = (0.7, 0.95)  # of them, right; of sets in videos the first
VIDEOS = (16, 200)
CORRELATIONS = (0.1, 0.3, 0.6)  # within a video, of whether a set is right
SIZES = (50, 100, 200, 400)
PROXIES = {
    "AUROC 0.9": 0.9,
    "AUROC 0.75": 0.75,
    "random (AUROC 0.5)": 0.5,
    "inverted (AUROC 0.1)": 0.1,
}
"""How well confidence tells right sets from wrong ones."""
WRONG = 0.05  # of the labels
GOLD = (20, 100, 400)  # gold questions
DISTANCES = {
    "−5 pp": -0.05,
    "one set too few": 0.0,
    "just enough": 1e-9,
    "+3 pp": 0.03,
    "+5 pp": 0.05,
    "+10 pp": 0.1,
}
CHUNK = 500

find_ends = cache(count_ends)
find_ends_of_strata = cache(count_ends_of_strata)


@cache
def stop_lines(needed: int, consistent: int) -> tuple[Ints, Ints]:
    """(consistent,) after 1, 2, … labels the fewest right that pass and the most that fail."""
    passing, failing = find_boundaries(RequiredShare(needed, consistent, consistent))
    return passing[1:], failing[1:]


def passes(counts: Ints, needed: int) -> bool:
    """The verdict of a study after every label, on (consistent,) right so far."""
    passing, failing = stop_lines(needed, len(counts))
    stop = int(np.argmax((counts >= passing) | (counts <= failing)))
    return bool(counts[stop] >= passing[stop])


def print_table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> None:
    """A table in Markdown, with a line before it."""
    print(f"\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


# ---------------------------------------------------------------- sets in videos


def draw_clustered(rng: np.random.Generator, videos: int, correlation: float, rows: int) -> Bools:
    """(rows, sets) the right sets, video by video: the share of a video is beta distributed."""
    spread = 1 / correlation - 1
    shares = rng.beta(SHARES[0] * spread, (1 - SHARES[0]) * spread, (rows, videos))
    return rng.random((rows, CONSISTENT)) < np.repeat(shares, CONSISTENT // videos, axis=1)


def order_sets(tries: int) -> Ints:
    """(tries, sets) the orders of the package, of the seeds from 0 on."""
    numbers = {f"{number:05d}": number for number in range(CONSISTENT)}
    orders = (
        np.fromiter((numbers[name] for name in rank_sets(numbers, seed)), np.int64)
        for seed in range(tries)
    )
    return np.stack(list(orders))


def order_videos(rng: np.random.Generator, videos: int, rows: int) -> Ints:
    """(rows, sets) one video after the other, each with all its sets."""
    size = CONSISTENT // videos
    ranked = rng.permuted(np.tile(np.arange(videos), (rows, 1)), axis=1)
    return (ranked[:, :, None] * size + np.arange(size)).reshape(rows, CONSISTENT)


def check_study(counts: Ints) -> list[bool]:
    """Whether the interval covers at each number of labels; wrong passes; wrong failures."""
    truth = int(counts[-1])
    checks = []
    for size in SIZES:
        low, high = find_ends(int(counts[size - 1]), size, CONSISTENT)
        checks.append(low <= truth <= high)
    return [*checks, passes(counts, truth + 1), not passes(counts, truth)]


def measure_clusters(videos: int, correlation: float, orders: Ints, whole: bool) -> Floats:
    """The mean of `check_study` over studies; `whole`: of those that label whole videos."""
    rng = np.random.default_rng(4)
    checks = []
    for first in range(0, len(orders), CHUNK):
        uniform = orders[first : first + CHUNK]
        right = draw_clustered(rng, videos, correlation, len(uniform))
        order = order_videos(rng, videos, len(uniform)) if whole else uniform
        counts = np.cumsum(np.take_along_axis(right, order, axis=1), axis=1)
        checks += [check_study(row) for row in counts]
    return np.mean(np.array(checks), axis=0)


def print_clusters(tries: int) -> None:
    """Coverage and wrong verdicts, of a uniform order and of one by video."""
    orders = order_sets(tries)

    def list_rows() -> Iterator[tuple[str, ...]]:
        for whole, videos, correlation in product((False, True), VIDEOS, CORRELATIONS):
            shares = measure_clusters(videos, correlation, orders, whole)
            order = "whole videos first" if whole else "that of the study"
            cells = [f"{share:.1%}" for share in shares[: len(SIZES)]]
            wrong = [f"{share:.2%}" for share in shares[len(SIZES) :]]
            yield order, str(videos), str(correlation), *cells, *wrong

    sizes = tuple(f"{size} labels" for size in SIZES)
    print_table(("order", "videos", "ICC", *sizes, "passes wrongly", "fails wrongly"), list_rows())


# ---------------------------------------------------------------- strata by confidence


def draw_strata(rng: np.random.Generator, auroc: float, right: int, tries: int) -> Ints:
    """(tries, strata) how many right sets are in strata of equal size by confidence."""
    gap = np.sqrt(2) * norm.ppf(auroc)
    is_right = np.arange(CONSISTENT) < right
    rows = []
    for _ in range(tries):
        confidence = rng.standard_normal(CONSISTENT) + gap * is_right
        ranked = is_right[np.argsort(-confidence)]
        rows.append(ranked.reshape(MOST_STRATA, -1).sum(axis=1))
    return np.array(rows)


def draw_ends(auroc: float | None, right: int, size: int, tries: int) -> Floats:
    """(tries, 2) the ends of the intervals, of sets; `auroc`: None without strata."""
    rng = np.random.default_rng(5)
    if auroc is None:
        labelled = rng.hypergeometric(right, CONSISTENT - right, size, tries)
        return np.array([find_ends(int(count), size, CONSISTENT) for count in labelled])
    sample, stratum = size // MOST_STRATA, CONSISTENT // MOST_STRATA
    within = draw_strata(rng, auroc, right, tries)
    ends = []
    for row in rng.hypergeometric(within, stratum - within, sample):
        # strata of one size are exchangeable, so that fewer intervals are computed
        counts = (StratumCounts(count, 0, sample, stratum) for count in sorted(row.tolist()))
        ends.append(find_ends_of_strata(tuple(counts)))
    return np.array(ends)


def print_strata(tries: int) -> None:
    """Coverage and mean half-width, in percentage points, by how much the confidence says."""

    def list_rows() -> Iterator[tuple[str, ...]]:
        for share, (name, auroc) in product(SHARES, (("no strata", None), *PROXIES.items())):
            right, cells = round(share * CONSISTENT), []
            for size in SIZES:
                low, high = draw_ends(auroc, right, size, tries).T
                inside = np.mean((low <= right + 1e-9) & (right - 1e-9 <= high))
                cells.append(f"{inside:.1%}, ± {50 * np.mean(high - low) / CONSISTENT:.1f}")
            yield f"{share:.0%}", name, *cells

    print_table(("right", "confidence", *(f"{size} labels" for size in SIZES)), list_rows())


# ---------------------------------------------------------------- wrong labels


def draw_labels(rng: np.random.Generator, right: Ints, labels: int, both: bool) -> Ints:
    """How many of `labels` are right, of which `right` should be; `both`: also wrong ones."""
    return rng.binomial(right, 1 - WRONG) + rng.binomial(labels - right, WRONG if both else 0)


def measure_errors(both: bool, gold: int, size: int, tries: int) -> tuple[float, float]:
    """Coverage and mean half-width in percentage points of all sets, with some labels wrong.

    `gold`: gold questions, by the upper bound of whose error rate the interval is widened; 0: it is
    not.
    """
    rng = np.random.default_rng(6)
    consistent, truth = pool(0.0)
    labelled = rng.hypergeometric(truth, consistent - truth, size, tries)
    counts = draw_labels(rng, labelled, size, both)
    ends = np.array([find_ends(int(count), size, consistent) for count in counts], dtype=float)
    if gold:
        bounds = np.array([clopper_pearson(wrong, gold)[1] for wrong in range(gold + 1)])
        most = bounds[rng.binomial(gold, WRONG, tries)] * consistent
        ends = np.clip(ends + np.stack([-most, most], axis=1), 0, consistent)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    widths = 50 * (ends[:, 1] - ends[:, 0]) / 2_000
    return float(np.mean(inside)), float(np.mean(widths))


def print_errors(tries: int) -> None:
    """Coverage with wrong labels, as it is and widened by what gold questions allow."""

    def list_rows() -> Iterator[tuple[str, ...]]:
        for both in (True, False):
            kind = "either way" if both else "right sets only"
            for gold in (0, *GOLD):
                cells = (measure_errors(both, gold, size, tries) for size in SIZES)
                texts = (f"{share:.1%}, ± {width:.1f}" for share, width in cells)
                yield kind, f"{gold} gold questions" if gold else "not widened", *texts

    sizes = (f"{size} labels" for size in SIZES)
    print_table(("5 % of labels wrong", "interval", *sizes), list_rows())
    rng = np.random.default_rng(7)

    def list_gold() -> Iterator[tuple[str, ...]]:
        for gold in GOLD:
            wrong = rng.binomial(gold, WRONG, tries)
            ends = np.array([clopper_pearson(int(count), gold) for count in wrong])
            inside = np.mean((ends[:, 0] <= WRONG) & (ends[:, 1] >= WRONG))
            yield str(gold), f"{np.mean(wrong == 0):.1%}", f"{inside:.1%}", f"{ends.mean(0)[1]:.1%}"

    print_table(("gold questions", "all right", "holds 5 %", "mean upper end"), list_gold())


def measure_verdicts(distance: float, both: bool, tries: int) -> tuple[float, float]:
    """How often a study of "at least 70 %" is wrong, with and without wrong labels."""
    consistent, right = pool(distance)
    needed = 1_400  # of 2,000
    rng, wrong = np.random.default_rng(8), np.zeros(2)
    for counts in count_right(rng, consistent, right, consistent, tries):
        answers = np.diff(counts, axis=1, prepend=0).astype(np.bool_)
        moved = (rng.random(answers.shape) < WRONG) & (answers | both)
        for place, rows in enumerate((counts, np.cumsum(answers ^ moved, axis=1))):
            wrong[place] += sum(passes(row, needed) != (right >= needed) for row in rows)
    return float(wrong[0] / tries), float(wrong[1] / tries)


def print_verdicts(tries: int) -> None:
    """Wrong verdicts with wrong labels."""

    def list_rows() -> Iterator[tuple[str, ...]]:
        for name, distance in DISTANCES.items():
            cells = [measure_verdicts(distance, both, tries) for both in (True, False)]
            shares = (cells[0][0], cells[0][1], cells[1][1])
            yield name, *(f"{share:.2%}" for share in shares)

    heads = ("pm-10 from 70 %", "labels right", "5 % wrong, either way", "5 % wrong, of right sets")
    print_table(heads, list_rows())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10_000)
    arguments = parser.parse_args()
    tables: tuple[Callable[[int], None], ...] = (
        print_clusters,
        print_strata,
        print_errors,
        print_verdicts,
    )
    for print_part in tables:
        print_part(arguments.tries)


if __name__ == "__main__":
    main()
