"""Rank correlation between data sets: by hand, against scipy, and with few and one-sided data."""

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from steadyeye.core.stats.trials import Statistic, Trials
from steadyeye.core.types import Result
from steadyeye.report.comparison.cluster_draws import (
    FEWEST,
    bound_replicates,
    draw_clusters,
    resample_values,
)
from steadyeye.report.comparison.leaderboards import RankedModel, leaderboard
from steadyeye.report.comparison.set_correlation import (
    bound_by_clear_pairs,
    correlate_ranks,
    correlate_sets,
    describe_correlation,
    measure_set,
)

IMAGES = np.array([f"i{i:03d}" for i in range(60)])


def measured(data, wins, videos=IMAGES, metric="accuracy", seed=0):
    """Models that are right on the first `wins` samples; `wins`: by model, or of m0, m1, …"""
    wins = wins if isinstance(wins, dict) else {f"m{i}": n for i, n in enumerate(wins)}
    n = len(videos)
    outcomes = {model: Trials(np.arange(n) < right, videos) for model, right in wins.items()}
    ranked = [
        RankedModel(model, Result(metric, right / n, None, None, n, ""), outcomes[model])
        for model, right in wins.items()
    ]
    return measure_set(data, leaderboard(metric, ranked), outcomes, seed)


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


def test_an_order_that_much_data_shows_is_reported():
    images = np.array([f"{i:04d}" for i in range(800)])
    sets = [
        measured(name, [250, 450, 650], images, seed=seed) for seed, name in enumerate("ab")
    ] + [measured("c", [650, 450, 250], images, seed=2)]
    same, opposite, _ = correlate_sets(sets)
    assert same.value == 1
    assert same.low > 0
    assert same.high == 1
    text = describe_correlation(same)
    assert text.startswith("Models with a better accuracy on a have a better accuracy on b too: τ")
    assert "3 models" in text
    assert (opposite.value, opposite.low) == (-1, -1)
    assert opposite.high < 0
    assert "have a worse one on c" in describe_correlation(opposite)


def test_one_sample_more_is_no_order():
    """Each model is right on one more sample: no resample of these reverses them, a new one may."""
    (pair,) = correlate_sets([measured("a", [30, 31, 32]), measured("b", [40, 41, 42], seed=1)])
    assert pair.value == 1
    assert pair.low < 0
    assert describe_correlation(pair).startswith("A better accuracy on a does not clearly go with")


def test_same_input_same_interval_and_the_interval_holds_the_value():
    sets = [measured("a", [10, 20, 30, 40]), measured("b", [12, 10, 25, 40], seed=1)]
    (pair,) = correlate_sets(sets)
    assert correlate_sets(sets) == [pair]
    assert -1 <= pair.low <= pair.value <= pair.high <= 1


def test_too_few_videos_or_models_and_models_that_are_equal():
    videos = np.repeat(["x", "y", "z"], 20)
    assert len(set(videos.tolist())) < FEWEST
    (pair,) = correlate_sets([measured("a", [10, 20, 30], videos), measured("b", [10, 20, 30])])
    assert pair.low is None
    assert "no interval: 3 clusters are too few for a bootstrap" in describe_correlation(pair)
    assert correlate_sets([measured("a", [1, 2]), measured("b", [1, 2])]) == []
    assert correlate_sets([measured("a", [1, 2, 3]), measured("b", [1, 2, 3], metric="map")]) == []
    (equal,) = correlate_sets([measured("a", [20, 20, 20]), measured("b", [10, 20, 30])])
    assert equal.value is None
    assert "no order to compare" in describe_correlation(equal)


def test_only_models_of_both_sets_count_whatever_their_order():
    first = measured("a", [10, 20, 30, 40])
    second = measured("b", {"m2": 30, "m0": 9, "m1": 22}, seed=1)
    (pair,) = correlate_sets([first, second])
    assert set(pair.models) == {"m0", "m1", "m2"}
    assert pair.value == 1


def test_videos_are_resampled_as_a_whole_and_a_statistic_as_trials():
    videos = np.repeat([f"v{i:02d}" for i in range(12)], 5)
    success = np.random.default_rng(0).random(60) < 0.5
    draws = draw_clusters(videos)
    assert draws.weights.shape[1] == 12
    shares = resample_values(Trials(success, videos), draws)
    wins = success.reshape(12, 5).sum(axis=1)
    np.testing.assert_allclose(shares, draws.weights @ wins / (5 * draws.weights.sum(axis=1)))
    statistic = Statistic(
        float(success.mean()), videos, lambda w: w @ success / w.sum(axis=1), lambda: None
    )
    np.testing.assert_allclose(resample_values(statistic, draws), shares, rtol=1e-5)
    single = draw_clusters(np.repeat("v", 60), block=10)
    assert single.weights.shape[1] == 6
    assert single.method == "6 blocks of 10 in a row, within this one video only"


def test_a_resample_without_a_value_widens_the_interval():
    assert bound_replicates(np.array([0.1, np.nan, 0.2, 0.3]), -1.0, 1.0) == (-1.0, 1.0)


def test_models_that_are_nearly_equal_may_have_any_order():
    """Resamples of two nearly equal models have either order, so their τ lies too near 0."""
    (pair,) = correlate_sets([measured("a", [30, 31, 50]), measured("b", [30, 29, 50], seed=1)])
    assert pair.value == pytest.approx(1 / 3)
    assert pair.high == 1


def test_the_ends_of_clear_pairs_hold_for_every_true_order():
    """With true ties: brute force over all values of four models that have the clear pairs."""
    rng = np.random.default_rng(0)
    values = np.array(list(itertools.product(range(4), repeat=4)))
    signs = np.sign(values[:, :, None] - values[:, None, :])
    for _ in range(200):
        is_open = [np.triu(rng.random((4, 4)) < 0.5, k=1) for _ in range(2)]
        orders = [rng.permutation(4) for _ in range(2)]
        clear = [
            np.sign(order[:, None] - order) * ~(mask | mask.T)
            for order, mask in zip(orders, is_open, strict=True)
        ]
        fitting = [values[np.all((part == 0) | (signs == part), axis=(1, 2))] for part in clear]
        taus = correlate_ranks(fitting[0][:, None], fitting[1][None])
        low, high = bound_by_clear_pairs(*clear)
        assert low - 1e-9 <= np.nanmin(taus)
        assert np.nanmax(taus) <= high + 1e-9


def test_the_better_of_lower_numbers_is_the_lower_one():
    """A board whose lower number is the better: the clear pairs are those of the numbers."""
    videos = np.array([f"{i:04d}" for i in range(400)])
    wins = {"m0": 40, "m1": 200, "m2": 360}
    outcomes = {model: Trials(np.arange(400) < n, videos) for model, n in wins.items()}
    ranked = [
        RankedModel(model, Result("flip_rate", n / 400, None, None, 400, ""), outcomes[model])
        for model, n in wins.items()
    ]
    part = measure_set("a", leaderboard("flip_rate", ranked, lower=True), outcomes, 0)
    place = [part.models.index(model) for model in wins]
    np.testing.assert_array_equal(
        part.clear[np.ix_(place, place)], [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]
    )
