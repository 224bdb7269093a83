"""What few labels decide: labels, coverage and wrong verdicts on simulated pools of sets.

    python benchmarks/labels.py [--tries 10000]

Prints Markdown tables, the same every time. A pool has 2,000 sets, accuracy lies 10 points above
pm-10, and half of the wrong anchors have a set that is consistently wrong. Sets are drawn uniformly
without replacement, and a verdict is looked for after every label.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from steadyeye.core.stats.label_budget import ERROR, RequiredShare, count_ends, require
from steadyeye.metrics.label_studies.premise_checks import CHECK_ERROR

TOTAL = 2_000
THRESHOLD = 0.7
DISTANCES = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1)  # of the true pm-k from the threshold
SIZES = (50, 100, 200, 400)
BROKEN = (0.0, 0.01, 0.02, 0.072)  # share of sets that change their class
CHECKS = 100  # sets that need no label if the premise holds, and are looked at all the same
CHUNK = 250

Ints = NDArray[np.int64]


def pool(distance: float) -> tuple[int, int]:
    """How many sets are consistent, and how many are right."""
    right = round((THRESHOLD + distance) * TOTAL)
    # at the threshold: one set too few, so that a pass is wrong
    right -= distance == 0
    consistent = right + round(0.5 * (TOTAL - right - 0.1 * TOTAL))
    return consistent, right


def boundaries(requirement: RequiredShare) -> tuple[Ints, Ints]:
    """(consistent,) the most right that fail and the fewest that pass, after every label."""
    ends = [requirement.boundaries(n) for n in range(1, requirement.consistent + 1)]
    return np.array([fails for _, fails in ends]), np.array([passes for passes, _ in ends])


def repeated_boundaries(population: int, needed: int) -> tuple[Ints, Ints]:
    """The same for Clopper and Pearson's interval, wrongly looked at after every label."""
    fails, passes = [], []
    for labelled in range(1, population + 1):
        right = np.arange(labelled + 1)
        low = np.where(right > 0, beta.ppf(0.025, right, labelled - right + 1), 0)
        high = np.where(right < labelled, beta.ppf(0.975, right + 1, labelled - right), 1)
        fails.append(int(np.sum(high < needed / population)) - 1)
        passes.append(labelled + 1 - int(np.sum(low >= needed / population)))
    return np.array(fails), np.array(passes)


def count_right(
    rng: np.random.Generator, candidates: int, right: int, labels: int, tries: int
) -> Iterator[Ints]:
    """(rows, labels) how many are right of the first 1, 2, … labels, `tries` rows in all."""
    answers = np.arange(candidates) < right
    for first in range(0, tries, CHUNK):
        rows = min(CHUNK, tries - first)
        drawn = rng.permuted(np.tile(answers, (rows, 1)), axis=1)[:, :labels]
        yield np.cumsum(drawn, axis=1)


def study(
    rng: np.random.Generator, ends: tuple[Ints, Ints], right: int, tries: int
) -> tuple[NDArray[np.bool_], Ints]:
    """(tries,) whether it passed, and after how many labels something was decided."""
    fails, passes = ends
    passed, labels = [], []
    for counts in count_right(rng, len(fails), right, len(fails), tries):
        stops = (counts <= fails) | (counts >= passes)
        at = np.where(stops.any(axis=1), stops.argmax(axis=1), len(fails) - 1)
        passed.append(counts[np.arange(len(at)), at] >= passes[at])
        labels.append(at + 1)
    return np.concatenate(passed), np.concatenate(labels)


def covered(
    rng: np.random.Generator, labelled: int, broken: float, errors: float, tries: int
) -> float:
    """How often the interval holds the truth: pm-10 of 70 %, some sets and labels not as said."""
    consistent, right = pool(0.0)
    moved = round(broken * TOTAL)  # right, although class and answer change within them
    truth, right, consistent = right, right - moved, consistent - moved
    ends = np.array([count_ends(n, labelled, consistent) for n in range(labelled + 1)])
    rights = rng.hypergeometric(right, consistent - right, labelled, tries)
    votes = rng.binomial(rights, 1 - errors) + rng.binomial(labelled - rights, errors)
    return float(np.mean((ends[votes, 0] <= truth) & (truth <= ends[votes, 1])))


def covered_by_checks(
    rng: np.random.Generator, labelled: int, broken: float, tries: int
) -> tuple[float, float, float]:
    """As `covered`, with checks of the premise.

    Returns how often the interval holds the truth, its mean width, and that of the interval without
    checks.
    """
    consistent, truth = pool(0.0)
    moved = round(broken * TOTAL)
    right, consistent = truth - moved, consistent - moved
    exempt = TOTAL - consistent
    rights = rng.hypergeometric(right, consistent - right, labelled, tries)
    doubtful = rng.hypergeometric(moved, exempt - moved, CHECKS, tries)
    errors = ERROR, CHECK_ERROR
    narrow, wide = (
        np.array([count_ends(n, labelled, consistent, error) for n in range(labelled + 1)])
        for error in errors
    )
    most = np.array([count_ends(n, CHECKS, exempt, CHECK_ERROR)[1] for n in range(CHECKS + 1)])
    low, high = narrow[rights, 0], wide[rights, 1] + most[doubtful]
    holds = (low <= truth) & (truth <= high)
    stated = narrow[rights, 1] - low
    return float(holds.mean()), float((high - low).mean() / TOTAL), float(stated.mean() / TOTAL)


def print_checks(tries: int) -> None:
    """Coverage and width of the interval where the premise is checked on a sample."""
    rng = np.random.default_rng(2)
    print(f"\n| with {CHECKS} checks | " + " | ".join(f"{n} labels" for n in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for broken in BROKEN:
        cells = []
        for labelled in SIZES:
            share, width, stated = covered_by_checks(rng, labelled, broken, tries)
            cells.append(f"{share:.1%} ({100 * width:.1f}; {100 * stated:.1f} pp)")
        name = f"{broken:.1%} of the sets change their class" if broken else "one class a set"
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_decisions(tries: int) -> None:
    """Labels until decided and wrong verdicts, by distance from the threshold."""
    rng = np.random.default_rng(0)
    print("| pm-10 from 70 % | median labels | 90 in 100 | wrong verdicts |\n|---|---|---|---|")
    for distance in DISTANCES:
        consistent, right = pool(distance)
        requirement = require(THRESHOLD, consistent, TOTAL)
        if requirement.decide(0, 0).passes is False:
            print(f"| {100 * distance:+.0f} pp | 0 | 0 | none |")
            continue
        passed, labels = study(rng, boundaries(requirement), right, tries)
        wrong = float(np.mean(passed != (right >= requirement.needed)))
        median, late = np.quantile(labels, (0.5, 0.9))
        name = f"{100 * distance:+.0f} pp" if distance else "one set too few"
        print(f"| {name} | {median:.0f} | {late:.0f} | {wrong:.2%} |")
    consistent, right = pool(0.0)
    passed, _ = study(rng, repeated_boundaries(consistent, right + 1), right, tries)
    print(f"\nClopper and Pearson's interval, looked at after every label: {passed.mean():.1%}")


def print_coverage(tries: int) -> None:
    """Coverage of the interval where the premise or the labels are not as said."""
    rng = np.random.default_rng(1)
    print("\n| how often it holds the truth | " + " | ".join(f"{n} labels" for n in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for broken in BROKEN:
        cells = [f"{covered(rng, n, broken, 0, tries):.1%}" for n in SIZES]
        name = f"{broken:.1%} of the sets change their class"
        name = name if broken else "one class a set, labels right"
        print(f"| {name} | " + " | ".join(cells) + " |")
    cells = [f"{covered(rng, n, 0, 0.05, tries):.1%}" for n in SIZES]
    print("| 5 % of the labels are wrong | " + " | ".join(cells) + " |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10_000)
    arguments = parser.parse_args()
    print_decisions(arguments.tries)
    print_coverage(arguments.tries)
    print_checks(arguments.tries)


if __name__ == "__main__":
    main()
