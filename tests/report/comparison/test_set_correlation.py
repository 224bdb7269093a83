"""Rank correlation between data sets: by hand, against scipy, and with few and one-sided data."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from steadyeye.core.stats.trials import Statistic, Trials
from steadyeye.report.comparison.cluster_draws import (
    FEWEST,
    bound_replicates,
    draw_clusters,
    resample_values,
)
from steadyeye.report.comparison.set_correlation import (
    correlate_ranks,
    correlate_sets,
    describe_correlation,
    measure_set,
)

IMAGES = np.array([f"i{i:03d}" for i in range(60)])


def measured(data, wins, videos=IMAGES, metric="accuracy", seed=0):
    """Models that are right on the first `wins` samples."""
    models = [
        (f"m{i}", n / len(videos), Trials(np.arange(len(videos)) < n, videos))
        for i, n in enumerate(wins)
    ]
    return measure_set(data, metric, models, seed)


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


def test_an_order_that_much_data_shows_is_said():
    images = np.array([f"{i:04d}" for i in range(800)])
    sets = [
        measured(name, [250, 450, 650], images, seed=seed) for seed, name in enumerate("ab")
    ] + [measured("c", [650, 450, 250], images, seed=2)]
    same, opposite, _ = correlate_sets(sets)
    assert same.value == 1
    assert same.low > 0
    assert same.high == 1
    said = describe_correlation(same)
    assert said.startswith("Models with a better accuracy on a have a better accuracy on b too: τ")
    assert "3 models" in said
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
    models = [
        (f"m{i}", n / 60, Trials(np.arange(60) < n, IMAGES)) for i, n in ((2, 30), (0, 9), (1, 22))
    ]
    (pair,) = correlate_sets([first, measure_set("b", "accuracy", models, 1)])
    assert pair.models == ("m0", "m1", "m2")
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
