"""Rank correlation between data sets: by hand, against scipy, and with few and one-sided data."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from steadyeye.core.stats.paired import Difference
from steadyeye.core.types import Result
from steadyeye.report.comparison.leaderboards import Leaderboard, ModelPair, Standing
from steadyeye.report.comparison.set_correlation import (
    correlate_ranks,
    correlate_sets,
    describe_correlation,
    order_models,
)


def ordered(data, values, open_pairs=(), metric="accuracy", lower=False, one_video=False):
    """The order of models m0, m1, … by `values`; `open_pairs`: those the data leave open."""
    models = [f"m{i}" for i in range(len(values))]
    standings = tuple(
        Standing(1, (1, len(values)), model, Result(metric, value, None, None, 60, ""), ())
        for model, value in zip(models, values, strict=True)
    )
    method = "exact, within this one video only" if one_video else "exact"
    pairs = []
    for i, j in itertools.combinations(range(len(values)), 2):
        better, worse = (i, j) if (values[i] > values[j]) != lower else (j, i)
        p = 0.03 if {i, j} in map(set, open_pairs) else 0.02
        gap = Difference(abs(values[i] - values[j]), -1, 1, p, 60, "images", method)
        pairs.append(ModelPair(models[better], models[worse], gap, p, True, p))
    return order_models(data, Leaderboard(metric, lower, standings, tuple(pairs)))


def test_tau_by_hand():
    # pairs: 12 agree, 13 agree, 14 agree, 23 disagree, 24 agree, 34 agree: (5 − 1) / 6
    assert correlate_ranks(np.array([1, 2, 3, 4.0]), np.array([1, 3, 2, 4.0])) == pytest.approx(
        4 / 6
    )
    # one pair tied on the left: 2 of 3 pairs, √(2 · 3) below
    assert correlate_ranks(np.array([1, 1, 2.0]), np.array([1, 2, 3.0])) == pytest.approx(
        2 / 6**0.5
    )


@pytest.mark.parametrize("models", [2, 3, 5, 9])
def test_tau_is_that_of_scipy(models):
    rng = np.random.default_rng(models)
    first = rng.integers(0, 4, (200, models)) / 7
    second = rng.integers(0, 4, (200, models)) / 7
    expected = [kendalltau(x, y).statistic for x, y in zip(first, second, strict=True)]
    np.testing.assert_allclose(correlate_ranks(first, second), expected, atol=1e-12)


def test_an_order_that_all_pairs_show_is_said():
    sets = [ordered("a", [0.2, 0.4, 0.6]), ordered("b", [0.5, 0.6, 0.7])]
    sets.append(ordered("c", [0.6, 0.4, 0.2]))
    same, opposite, _ = correlate_sets(sets)
    assert (same.value, same.low, same.high) == (1, 1, 1)
    sentence = describe_correlation(same)
    assert sentence.startswith(
        "Models with a better accuracy on a have a better accuracy on b too: τ"
    )
    assert "3 models" in sentence
    assert (opposite.value, opposite.low, opposite.high) == (-1, -1, -1)
    assert "have a worse one on c" in describe_correlation(opposite)


def test_an_open_pair_may_have_either_order():
    """At 2.5 % for each data set: p = 0.03 orders a pair on a leaderboard, and not here."""
    first = ordered("a", [0.1, 0.2, 0.3, 0.4], open_pairs=[(0, 1), (1, 2)])
    second = ordered("b", [0.1, 0.2, 0.4, 0.3], open_pairs=[(1, 2)])
    (pair,) = correlate_sets([first, second])
    # 23 disagrees, 01 and 12 are open, 02, 03 and 13 agree
    assert (pair.value, pair.low, pair.high) == pytest.approx((4 / 6, 0, 4 / 6))
    assert pair.method == "clear order of 4 (a) and 5 (b) of 6 pairs of models"
    assert describe_correlation(pair).startswith("A better accuracy on a does not clearly go with")


def test_the_interval_holds_whatever_the_order_of_open_pairs():
    """Every true order, with ties, that has the pairs that are clear: brute force over values."""
    rng = np.random.default_rng(0)
    every = np.array(list(itertools.product(range(3), repeat=4)))
    pairs = list(itertools.combinations(range(4), 2))
    for _ in range(60):
        accuracies = [rng.permutation(4) / 10 for _ in range(2)]
        opens = [[pair for pair in pairs if rng.random() < 0.5] for _ in range(2)]
        (correlation,) = correlate_sets(
            [ordered(name, *part) for name, *part in zip("ab", accuracies, opens, strict=True)]
        )
        fitting = [
            np.array(
                [
                    true
                    for true in every
                    if all(
                        (true[i] - true[j]) * (values[i] - values[j]) > 0
                        for i, j in pairs
                        if (i, j) not in own
                    )
                ]
            )
            for values, own in zip(accuracies, opens, strict=True)
        ]
        if not all(map(len, fitting)):
            continue
        taus = correlate_ranks(fitting[0][:, None], fitting[1][None])
        taus = taus[~np.isnan(taus)]
        assert correlation.low - 1e-9 <= taus.min(initial=1)
        assert taus.max(initial=-1) <= correlation.high + 1e-9
        assert correlation.low - 1e-9 <= correlation.value <= correlation.high + 1e-9


def test_lower_numbers_may_be_the_better_ones():
    rates = ordered("a", [0.1, 0.2, 0.3], metric="flip_rate", lower=True)
    np.testing.assert_array_equal(rates.clear, [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]])
    (pair,) = correlate_sets([rates, ordered("b", [5, 6, 7], metric="flip_rate", lower=True)])
    assert (pair.value, pair.low, pair.high) == (1, 1, 1)


def test_too_few_models_and_models_that_are_equal():
    assert correlate_sets([ordered("a", [1, 2]), ordered("b", [1, 2])]) == []
    assert correlate_sets([ordered("a", [1, 2, 3]), ordered("b", [1, 2, 3], metric="map")]) == []
    none = [(0, 1), (0, 2), (1, 2)]
    (equal,) = correlate_sets([ordered("a", [2, 2, 2], none), ordered("b", [1, 2, 3])])
    assert (equal.value, equal.low, equal.high) == (None, -1, 1)
    assert "no order to compare" in describe_correlation(equal)


def test_only_models_of_both_sets_count_whatever_their_order():
    second = ordered("b", [0.3, 0.2, 0.1])
    second = replace(second, models=("m2", "m1", "m0"))
    (pair,) = correlate_sets([ordered("a", [0.1, 0.2, 0.3, 0.4]), second])
    assert pair.models == ("m0", "m1", "m2")
    assert (pair.value, pair.low, pair.high) == (1, 1, 1)


def test_an_order_within_one_video_is_said_to_be_of_that_one():
    (pair,) = correlate_sets([ordered("a", [1, 2, 3], one_video=True), ordered("b", [1, 2, 3])])
    assert "clear order of 3 (a, within this one video only) and 3 (b)" in pair.method
