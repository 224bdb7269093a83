"""Decisions from few labels: labels, coverage and wrong verdicts on simulated pools of sets.

    python benchmarks/labels.py [--tries 10000]

Prints Markdown tables, the same every time. A pool has 2,000 sets, accuracy is 10 points above
pm-10, and half of the wrong anchors have a set that is consistently wrong. Sets are drawn uniformly
without replacement, and a verdict is tested after every label.
"""

import argparse
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from steadyeye.core.stats.label_budget import (
    ERROR,
    RequiredShare,
    count_ends,
    count_ends_any_time,
)
from steadyeye.metrics.label_studies.cost import find_boundaries
from steadyeye.metrics.label_studies.judge import LEAST
from steadyeye.metrics.label_studies.premise_checks import CHECK_ERROR

TOTAL = 2_000
THRESHOLD = 0.7
DISTANCES = (-0.2, -0.1, -0.05, 0.0, 0.05, 0.1)  # of the true pm-k from the threshold
SIZES = (50, 100, 200, 400)
BROKEN = (0.0, 0.01, 0.02, 0.072)  # share of sets that change their class
CHECKS = 100  # sets that need no label if the premise holds, and are checked
TARGETS = {0.05: 200, 0.1: 100}
"""Half-widths at which a study stops, and how many sets it then checks."""
WIDTHS = ((40, 60, 0.1), (100, 140, 0.08), (200, 300, 0.1), (200, 300, 0.05))
RIGHT = (0.1, 0.5, 0.8, 0.95)  # of the consistent sets
MOST_LABELS = 800  # labels after which each of these studies has stopped
STUDIES_OF_A_WIDTH = 2_000
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
    passing, failing = find_boundaries(requirement)
    return failing[1:], passing[1:]


def repeated_boundaries(population: int, needed: int) -> tuple[Ints, Ints]:
    """The same for Clopper and Pearson's interval, wrongly applied after every label."""
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
    """(rows, labels) the number of right ones of the first 1, 2, … labels, `tries` rows in all."""
    answers = np.arange(candidates) < right
    for first in range(0, tries, CHUNK):
        rows = min(CHUNK, tries - first)
        samples = rng.permuted(np.tile(answers, (rows, 1)), axis=1)[:, :labels]
        yield np.cumsum(samples, axis=1)


def study(
    rng: np.random.Generator, ends: tuple[Ints, Ints], right: int, tries: int
) -> tuple[NDArray[np.bool_], Ints]:
    """(tries,) whether it passed, and after how many labels there was a decision."""
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
    """Coverage of the interval: pm-10 of 70 %, with some sets and labels against the premise."""
    consistent, right = pool(0.0)
    moved = round(broken * TOTAL)  # right, although class and prediction change within them
    truth, right, consistent = right, right - moved, consistent - moved
    ends = np.array([count_ends(n, labelled, consistent) for n in range(labelled + 1)])
    rights = rng.hypergeometric(right, consistent - right, labelled, tries)
    votes = rng.binomial(rights, 1 - errors) + rng.binomial(labelled - rights, errors)
    return float(np.mean((ends[votes, 0] <= truth) & (truth <= ends[votes, 1])))


def covered_by_checks(
    rng: np.random.Generator, labelled: int, broken: float, tries: int
) -> tuple[float, float, float]:
    """As `covered`, with checks of the premise.

    Returns the coverage of the interval, its mean width, and that of the interval without checks.
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


@cache
def tabulate_ends(most: int, error: float) -> tuple[Ints, Ints]:
    """(most + 1, most + 1) twice: the ends of `count_ends` by labels and right ones.

    All right counts of a number of labels at once, from the chances of all truths.
    """
    consistent, _ = pool(0.0)
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, consistent + 1))))
    truth = np.arange(consistent + 1)[:, None]
    low, high = np.zeros((2, most + 1, most + 1), dtype=np.int64)
    high[0] = consistent
    for labelled in range(1, most + 1):
        right = np.arange(labelled + 1)
        others, wrong = consistent - truth, labelled - right
        possible = (right <= truth) & (wrong <= others)
        chosen = logs[truth] - logs[right] - logs[np.maximum(truth - right, 0)]
        chosen += logs[others] - logs[wrong] - logs[np.maximum(others - wrong, 0)]
        chosen -= logs[consistent] - logs[labelled] - logs[consistent - labelled]
        chance = np.exp(np.where(possible, chosen, -np.inf))
        few = np.cumsum(chance, axis=1)
        low[labelled, : labelled + 1] = (1 - few + chance > error).argmax(axis=0)
        high[labelled, : labelled + 1] = consistent - (few > error)[::-1].argmax(axis=0)
    return low, high


find_ends_any_time = cache(count_ends_any_time)


def stop_at_width(
    rng: np.random.Generator, target: float, right: int, moved: int
) -> tuple[int, int, int]:
    """Labels and checks of a study that stops as its interval is narrow, with the ends of this.

    `right`: of the consistent sets. `moved`: sets with several predictions that are right all the
    same. Checks are mixed at random among as many labels, as in the package.
    """
    consistent, _ = pool(0.0)
    exempt, checks = TOTAL - consistent, TARGETS[target]
    is_check = np.append(rng.permutation(2 * checks) < checks, np.zeros(MOST_LABELS, dtype=bool))
    checked, labelled = np.cumsum(is_check), np.cumsum(~is_check)
    is_check, checked, labelled = (
        column[labelled <= MOST_LABELS] for column in (is_check, checked, labelled)
    )
    correct = np.append(0, np.cumsum(rng.permutation(consistent) < right))[labelled]
    doubtful = np.append(0, np.cumsum(rng.permutation(exempt)[:checks] < moved))[checked]
    allowed = [
        find_ends_any_time(*counts, exempt, CHECK_ERROR)[1]
        for counts in zip(doubtful.tolist(), checked.tolist(), strict=True)
    ]
    low = tabulate_ends(MOST_LABELS, ERROR)[0][labelled, correct]
    high = tabulate_ends(MOST_LABELS, CHECK_ERROR)[1][labelled, correct] + allowed
    stops = (labelled >= LEAST) & (high - low <= 2 * target * TOTAL)
    assert stops.any(), "no interval is narrow enough"
    at = int(stops.argmax())
    return at + 1, int(low[at]), int(high[at])


def print_targets(tries: int) -> None:
    """Coverage where a study with checks of the premise stops at a width, and what it takes."""
    rng = np.random.default_rng(3)
    heads = [f"± {100 * target:g} pp, {checks} checks" for target, checks in TARGETS.items()]
    print("\n| right, of consistent sets | change their class | " + " | ".join(heads) + " |")
    print("|---|---|" + "---|" * len(heads))
    consistent, _ = pool(0.0)
    for share, broken in product(RIGHT, BROKEN[:3]):
        right, moved, cells = round(share * consistent), round(broken * TOTAL), []
        for target in TARGETS:
            studies = [stop_at_width(rng, target, right, moved) for _ in range(tries)]
            taken, low, high = np.array(studies).T
            coverage = float(np.mean((low <= right + moved) & (right + moved <= high)))
            cells.append(f"{coverage:.1%} ({np.median(taken):.0f})")
        print(f"| {share:.0%} | {broken:.1%} | " + " | ".join(cells) + " |", flush=True)


def find_worst_at_width(consistent: int, sets: int, target: float) -> tuple[float, float]:
    """How often a study without checks is wrong at its width, for the worst number of right sets.

    Exact: of both ends together, and of either. All labels are right and no set changes its class.
    """
    truth, ways = np.arange(consistent + 1), {0: 1}
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, consistent + 1))))
    missed = np.zeros((2, consistent + 1))
    for labelled in range(1, consistent + 1):
        grown: dict[int, int] = {}
        for right, number in ways.items():
            for more in (0, 1):
                grown[right + more] = grown.get(right + more, 0) + number
        ways = {}
        for right, number in grown.items():
            low, high = count_ends(right, labelled, consistent)
            if labelled < LEAST or high - low > 2 * target * sets:
                ways[right] = number
                continue
            left, wrong = truth - right, consistent - truth - (labelled - right)
            possible = (left >= 0) & (wrong >= 0)
            chance = logs[truth] - logs[np.maximum(left, 0)] - logs[consistent]
            chance += logs[consistent - truth] - logs[np.maximum(wrong, 0)]
            chance += logs[consistent - labelled] + log(number)
            chance = np.where(possible, np.exp(np.where(possible, chance, 0.0)), 0.0)
            missed[0] += chance * (truth < low)
            missed[1] += chance * (truth > high)
    return float(missed.sum(axis=0).max()), float(missed.max())


def print_worst_widths() -> None:
    """What stopping at a width without checks costs at worst."""
    print("\n| consistent sets, of all | width | wrong at worst | at one end |\n|---|---|---|---|")
    for consistent, sets, target in WIDTHS:
        both, end = find_worst_at_width(consistent, sets, target)
        print(f"| {consistent} of {sets} | ± {100 * target:g} pp | {both:.1%} | {end:.1%} |")


def print_decisions(tries: int) -> None:
    """Labels until decided and wrong verdicts, by distance from the threshold."""
    rng = np.random.default_rng(0)
    print(
        "| pm-10 minus 70 % | median labels | labels in 90 % of studies | wrong verdicts |\n"
        "|---|---|---|---|"
    )
    for distance in DISTANCES:
        consistent, right = pool(distance)
        requirement = RequiredShare(round(THRESHOLD * TOTAL), consistent, TOTAL)
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
    print_worst_widths()
    print_targets(min(arguments.tries, STUDIES_OF_A_WIDTH))


if __name__ == "__main__":
    main()
