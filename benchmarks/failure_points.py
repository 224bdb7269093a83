"""Failure points by search compared with the exhaustive sweep: cost and agreement.

    python benchmarks/failure_points.py RUN [RUN …] [--repeats 200]

RUN: finished exhaustive sweeps (`steadyeye degrade`). Every repeat is a search over the sealed
predictions of the sweep, in another random order of the images; because predictions are
deterministic, this equals the search of `--fast`, without running the model. Printed for each run:
the share of forward passes; how often the interval contains the exhaustive level (all repeats,
operators and thresholds; and of the worst operator and threshold); how often the search's own level
equals it; the mean width of the interval in levels, and that of the sweep's own bootstrap interval,
over images and over videos.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import REPLICATES, number_clusters
from steadyeye.degradation.curves import Profiles, profiles
from steadyeye.degradation.failure_points import first_below
from steadyeye.degradation.failure_search import THRESHOLDS, Search, affordable, exhaustive
from steadyeye.predictions.read import cells, read
from steadyeye.runner.failure_point_search import BUDGET


def right(table: Profiles) -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    """Operators, their levels, and right images, (levels, images) each; no gradient operators."""
    curves = [
        (name, levels, table.predictions.right[rows])
        for name, levels, rows in table.curves()
        if name != "gradient_descent"
    ]
    names, levels, answers = zip(*curves, strict=True)
    return list(names), list(levels), list(answers)


def searched(
    answers: list[np.ndarray], levels: list[np.ndarray], images: int, seed: int
) -> tuple[Search, int]:
    """A search over recorded answers in a random order, and its forward passes."""
    order = np.random.default_rng(seed).permutation(answers[0].shape[1])
    state = Search(len(order), [list(map(int, values)) for values in levels], THRESHOLDS)
    budget = math.floor(BUDGET * exhaustive(images, state))
    used = images
    while queries := affordable(state.queries(), budget - used):
        for query in queries:
            at = state.levels[query.operator].index(query.level)
            samples = order[query.start : query.stop]
            state.learn(query, int(answers[query.operator][at, samples].sum()))
            used += len(query)
    return state, used


def measure(run: Path, repeats: int) -> None:
    """Prints the line of one run."""
    predictions = read(*cells(run)[0])
    table = profiles(predictions)
    names, levels, answers = right(table)
    images = int((predictions.tags["level"] == 0).sum())
    truth = {
        (o, t): first_below(answers[o].mean(axis=1)[:, None], levels[o], t)[0]
        for o in range(len(names))
        for t in THRESHOLDS
    }
    inside = dict.fromkeys(truth, 0)
    same, widths, shares = 0, [], []
    for seed in range(repeats):
        state, used = searched(answers, levels, images, seed)
        shares.append(used / exhaustive(images, state))
        for (o, t), level in truth.items():
            bracket = state.bracket(o, t)
            low = levels[o][bracket.low]
            high = levels[o][bracket.high] if bracket.high < len(levels[o]) else math.inf
            inside[o, t] += low < level <= high
            same += state.level(o, t) == level
            widths.append(bracket.high - bracket.low)
    total = repeats * len(truth)
    worst = min(inside, key=lambda key: inside[key])
    own = [np.mean(width) for width in _own(levels, answers, table)]
    print(
        f"{predictions.model:<20}{len(table.images):>7}{max(shares):>9.1%}"
        f"{sum(inside.values()) / total:>9.1%}{inside[worst] / repeats:>8.1%} "
        f"{f'{names[worst[0]]} {worst[1]}':<20}{same / total:>8.1%}"
        f"{np.mean(widths):>8.1f}{own[0]:>10.1f}{own[1]:>9.1f}"
    )


def draw_weights(clusters: np.ndarray) -> np.ndarray:
    """(replicates, n) the count of each image in each resample of whole clusters."""
    number = number_clusters(clusters)
    several = int(number.max()) + 1
    even = np.full(several, 1 / several)
    draws = np.random.default_rng(0).multinomial(several, even, REPLICATES)
    return draws[:, number].astype(np.float32)


def _own(
    levels: list[np.ndarray], answers: list[np.ndarray], table: Profiles
) -> tuple[list[int], list[int]]:
    """Widths of the bootstrap intervals of the sweep itself, over images and over videos."""
    widths: tuple[list[int], list[int]] = ([], [])
    for clusters, mine in zip((table.images, table.videos), widths, strict=True):
        weight = draw_weights(clusters)
        for level, answer in zip(levels, answers, strict=True):
            means = bootstrap.means(answer.astype(np.float32), weight)
            for threshold in THRESHOLDS:
                low, high = bootstrap.ends(first_below(means, level, threshold))
                mine.append(min(high, level[-1] + 1) - min(low, level[-1] + 1) + 1)
    return widths


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    print(f"{options.repeats} repeats, thresholds {THRESHOLDS}")
    print(
        f"{'model':<20}{'images':>7}{'passes':>9}{'holds':>9}{'worst':>8} {'':<20}{'same':>8}"
        f"{'width':>8}{'sweep’s':>10}{'videos':>9}"
    )
    for run in options.runs:
        measure(run, options.repeats)


if __name__ == "__main__":
    main()
