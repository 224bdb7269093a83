"""Intervals and decisions from a few labels: exact on every small pool, by brute force."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import boundaries
from scipy.special import betaln
from scipy.stats import beta, betabinom, hypergeom, norm
from scipy.stats import t as student

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.core.format import percent
from steadyeye.core.stats.label_budget import (
    RequiredShare,
    StratumCounts,
    bound_without_labels,
    count_ends,
    count_ends_of_strata,
)
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.self_consistency import self_consistency


@pytest.mark.parametrize("consistent", [1, 2, 7, 30])
def test_the_interval_holds_every_truth_with_95_percent(consistent):
    for labelled in range(consistent + 1):
        ends = [count_ends(right, labelled, consistent) for right in range(labelled + 1)]
        for truth in range(consistent + 1):
            chances = hypergeom.pmf(np.arange(labelled + 1), consistent, truth, labelled)
            holds = [low <= truth <= high for low, high in ends]
            assert chances[holds].sum() >= 0.95 - 1e-9, (labelled, truth)


def test_the_ends_are_those_of_counting_samples():
    """Five labelled of nine: which numbers of right sets 2.5 % of the samples would allow."""
    samples = list(combinations(range(9), 5))
    for right in range(6):
        allowed = []
        for truth in range(9 + 1):
            counts = [sum(place < truth for place in sample) for sample in samples]
            as_many = Fraction(sum(count >= right for count in counts), len(samples))
            as_few = Fraction(sum(count <= right for count in counts), len(samples))
            if min(as_many, as_few) > Fraction(25, 1000):
                allowed.append(truth)
        assert count_ends(right, 5, 9) == (allowed[0], allowed[-1])


def test_a_bound_is_of_all_sets():
    bound = bound_without_labels(40, 100)
    assert (bound.low, bound.value, bound.high) == (0, None, 0.4)
    assert bound_without_labels(0, 0).high is None


def reference(needed, consistent, right, labelled):
    """The two ratios as they are published, with the beta-binomial posterior."""
    if needed <= right:
        return inf, 0
    if needed > right + consistent - labelled:
        return 0, inf
    wrong = labelled - right
    posterior = betabinom(consistent - labelled, 1 + right, 1 + wrong)
    mixture = np.exp(betaln(1 + right, 1 + wrong))
    below = posterior.cdf(needed - 1 - right) if needed > right else 0

    def falling(x, m):
        return np.prod([float(x - i) for i in range(m)])

    def at(null):
        chance = falling(null, right) * falling(consistent - null, wrong)
        return chance / falling(consistent, labelled)

    prior_above = (consistent - needed + 1) / (consistent + 1)
    prior_below = needed / (consistent + 1)
    passing = (1 - below) / prior_above * mixture / at(needed - 1) if prior_above else 0
    failing = below / prior_below * mixture / at(needed) if prior_below else 0
    return passing, failing


@given(st.data())
@settings(deadline=None)
def test_evidence_is_that_of_the_publication(data):
    consistent = data.draw(st.integers(1, 60))
    labelled = data.draw(st.integers(0, consistent))
    right = data.draw(st.integers(0, labelled))
    needed = data.draw(st.integers(1, consistent))
    requirement = RequiredShare(needed, consistent, consistent)
    verdict = requirement.decide(right, labelled)
    expected = reference(needed, consistent, right, labelled)
    assert verdict.evidence == pytest.approx(expected, rel=1e-6)
    # one more right label never moves it towards failing
    if labelled < consistent:
        order = (False, None, True)
        before, after = verdict.passes, requirement.decide(right + 1, labelled + 1).passes
        assert order.index(after) >= order.index(before)


@pytest.mark.parametrize(("consistent", "step"), [(5, 1), (20, 3), (60, 17)])
def test_few_studies_err_if_they_are_judged_after_every_label(consistent, step):
    """The exact probability that a wrong verdict is ever shown, over all orders of the labels."""
    worst = {True: 0.0, False: 0.0}
    for needed in range(1, consistent + 1, step):
        requirement = RequiredShare(needed, consistent, consistent)
        ends = [boundaries(requirement, labelled) for labelled in range(consistent + 1)]
        for truth, wrong in ((needed - 1, True), (needed, False)):
            chance, error_chance = np.zeros(consistent + 2), 0.0
            chance[0] = 1
            for labelled, (passing, failing) in enumerate(ends):
                gone = slice(passing, None) if wrong else slice(0, failing + 1)
                error_chance += chance[gone].sum()
                chance[gone] = 0
                if labelled < consistent:
                    right = np.arange(consistent + 2)
                    share = np.clip((truth - right) / (consistent - labelled), 0, 1)
                    chance = chance * (1 - share) + np.append(0, (chance * share)[:-1])
            worst[wrong] = max(worst[wrong], error_chance)
    assert max(worst.values()) <= 0.025
    # it is no rule that never decides
    if consistent >= 20:
        assert min(worst.values()) > 0.004


def test_the_result_with_all_labels_is_the_true_share():
    for needed in range(12):
        requirement = RequiredShare(needed, 10, 20)
        for right in range(11):
            assert requirement.decide(right, 10).passes is (right >= needed)


def test_boundaries_are_those_of_the_decisions():
    requirement = RequiredShare(50, 80, 100)
    for labelled in (0, 5, 20, 50, 80):
        passing, failing = boundaries(requirement, labelled)
        decisions = [requirement.decide(right, labelled).passes for right in range(labelled + 1)]
        assert [passes is True for passes in decisions].count(True) == labelled + 1 - passing
        assert decisions.count(False) == failing + 1
        assert all(passes is None for passes in decisions[failing + 1 : passing])


def test_a_requirement_may_be_decided_without_labels():
    """Too few consistent sets fail without labels, and a requirement of nothing passes."""
    assert RequiredShare(70, 60, 100).decide(0, 0).passes is False
    assert RequiredShare(70, 70, 100).decide(0, 0).passes is None
    assert RequiredShare(0, 70, 100).decide(0, 0).passes is True
    with pytest.raises(UsageError, match="3 right of 2 labelled sets, 5 consistent ones and 9"):
        RequiredShare(7, 5, 9).decide(3, 2)


def test_decisions_on_ten_thousand_sets_are_the_published_ones():
    """Labels until decided at 90 % right with a requirement of 70 %: 28 in the median."""
    rng = np.random.default_rng(0)
    requirement = RequiredShare(7_000, 10_000, 10_000)
    stops = []
    for _ in range(21):
        right = np.cumsum(rng.permutation(10_000) < 9_000)
        decided = (n for n in range(5, 200) if requirement.decide(int(right[n - 1]), n).passes)
        stops.append(next(decided))
    assert 20 <= np.median(stops) <= 36


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
@settings(deadline=None)
def test_pm_k_is_at_most_the_share_of_consistent_sets(seed, margin):
    """Whatever the labels are, if a set has one class; without labels the result says so."""
    labelled = testing.example_predictions(12, seed, margin)
    truth = np.zeros_like(labelled.truth)
    plain = replace(
        labelled, truth=truth, columns=tuple(c for c in labelled.columns if c != "truth")
    )
    consistent = self_consistency(plain)
    assert pm_k(labelled).value <= consistent.value
    bound = f"pm_k(k=2) of these 12 sets is at most {percent(consistent.value)}, whatever is in"
    assert bound in consistent.notes[0]
    assert self_consistency(labelled).notes == ()


POOLS = {
    "alike": [(200, 0.5)] * 5,
    "apart": [(200, share) for share in (0.1, 0.3, 0.5, 0.7, 0.95)],
    "nothing or all": [(200, share) for share in (0.0, 0.0, 0.02, 1.0, 1.0)],
    "rare": [(200, 0.02)] * 5,
    "of different sizes": [(40, 0.9), (60, 0.5), (400, 0.6), (300, 0.1), (200, 1.0)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("labels", [50, 100, 200])
def test_the_interval_of_strata_covers(name, labels):
    """95 of 100 intervals cover; of 600 random ones at least 93 in 100."""
    rng = np.random.default_rng(labels)
    pools = [(size, round(size * share)) for size, share in POOLS[name]]
    turns = sorted(((j + 0.5) / size, h) for h, (size, _) in enumerate(pools) for j in range(size))
    sample_sizes = np.bincount([h for _, h in turns[:labels]], minlength=len(pools))
    true = sum(right for _, right in pools)
    covered = 0
    for _ in range(600):
        counts = [
            StratumCounts(int(rng.hypergeometric(right, size - right, n)), 0, int(n), size)
            for (size, right), n in zip(pools, sample_sizes, strict=True)
        ]
        low, high = count_ends_of_strata(counts)
        covered += low - 1e-9 <= true <= high + 1e-9
    assert covered / 600 >= 0.93


def test_the_ends_of_strata_are_korn_and_graubards():
    strata = [StratumCounts(6, 0, 10, 100), StratumCounts(9, 0, 20, 200)]
    share = (0.6 * 100 + 0.45 * 200) / 300
    own = [0.6 * 0.4 / 9 * 0.9 * (1 / 3) ** 2, 0.45 * 0.55 / 19 * 0.9 * (2 / 3) ** 2]
    shrunk = [(6 + 2 * share) / 12, (9 + 2 * share) / 22]
    other = [
        p * (1 - p) / (n - 1) * 0.9 * w**2
        for p, n, w in zip(shrunk, (10, 20), (1 / 3, 2 / 3), strict=True)
    ]
    variance = max(sum(own), sum(other))
    trials = share * (1 - share) / variance * (norm.ppf(0.025) / student.ppf(0.025, 28)) ** 2
    right = share * trials
    low, high = count_ends_of_strata(strata)
    assert low / 300 == pytest.approx(beta.ppf(0.025, right, trials - right + 1))
    assert high / 300 == pytest.approx(beta.ppf(0.975, right + 1, trials - right))


def test_the_ends_of_strata_where_they_are_not_estimated():
    # one label in a stratum says nothing of its spread: what is possible
    assert count_ends_of_strata([StratumCounts(1, 0, 1, 10), StratumCounts(3, 0, 5, 10)]) == (4, 18)
    # all labelled
    assert count_ends_of_strata([StratumCounts(4, 0, 10, 10), StratumCounts(1, 1, 2, 2)]) == (5, 6)
    # nobody could label one: wrong for the lower end, right for the higher
    low, high = count_ends_of_strata([StratumCounts(5, 3, 10, 50)] * 2)
    assert low == count_ends_of_strata([StratumCounts(5, 0, 10, 50)] * 2)[0]
    assert high == count_ends_of_strata([StratumCounts(8, 0, 10, 50)] * 2)[1]
