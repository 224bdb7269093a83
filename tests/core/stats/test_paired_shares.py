"""Differences of shares of each model's own objects, from their definition and simulated."""

from itertools import product

import numpy as np
import pytest

from steadyeye.core.stats.paired import difference, prepare_outcomes
from steadyeye.core.stats.trials import Trials, share_statistic


def share(right, whole, videos=None, block=1):
    """The outcomes of a model: the successes in each image, and the objects."""
    right, whole = (np.asarray(part, dtype=np.float64) for part in (right, whole))
    names = np.arange(len(right)).astype(str) if videos is None else videos
    return prepare_outcomes(share_statistic((right, whole), names, None, block))


def simulate(rng, videos, rates):
    """Two models with objects of their own in videos of unequal length; `rates`: of both."""
    first = rng.integers(20, 400, videos)
    second = (first * rng.uniform(0.5, 1.2, videos)).astype(int) + 1
    return [
        share(rng.binomial(whole, rate), whole)
        for whole, rate in zip((first, second), rates, strict=True)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_p_is_the_share_of_all_ways_to_exchange_the_models(seed):
    """The successes in a video beyond the share of both models together, over all objects."""
    rng = np.random.default_rng(seed)
    whole, other_whole = rng.integers(1, 50, (2, 9))
    right, other_right = rng.binomial(whole, 0.6), rng.binomial(other_whole, 0.2)
    together = (right.sum() + other_right.sum()) / (whole.sum() + other_whole.sum())
    lead = (right - together * whole) / whole.sum()
    lead = lead - (other_right - together * other_whole) / other_whole.sum()
    gap = right.sum() / whole.sum() - other_right.sum() / other_whole.sum()
    assert lead.sum() == pytest.approx(gap)
    sums = np.array([signs @ lead for signs in map(np.array, product([-1, 1], repeat=9))])
    expected = 2 * min(np.mean(sums >= gap - 1e-12), np.mean(sums <= gap + 1e-12))
    change = difference(share(right, whole), share(other_right, other_whole))
    assert change.value == pytest.approx(gap)
    assert change.p == pytest.approx(min(expected, 1), abs=1e-9)
    assert -1 <= change.low < change.value < change.high <= 1
    assert (change.p <= 0.05) == (change.low > 0 or change.high < 0)


def test_models_that_find_equally_many_are_compared_as_trials_are():
    rng = np.random.default_rng(3)
    videos = np.repeat(np.arange(12).astype(str), rng.integers(2, 30, 12))
    first, second = rng.random((2, len(videos))) < [[0.3], [0.15]]
    ones = np.ones(len(videos))
    own = difference(share(first, ones, videos), share(second, ones, videos))
    trials = difference(*(prepare_outcomes(Trials(part, videos)) for part in (first, second)))
    assert own.value == pytest.approx(trials.value)
    assert own.p == pytest.approx(trials.p, abs=1e-9)
    assert (own.low, own.high) == pytest.approx((trials.low, trials.high), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("videos", [8, 60])
@pytest.mark.parametrize("together", [True, False])
def test_the_test_keeps_its_level(videos, together):
    """If both fail on the same videos, and if each fails on different ones."""
    rng = np.random.default_rng(videos)
    changes = []
    for _ in range(100):
        rates = rng.beta(1, 9, (2, videos))
        changes.append(difference(*simulate(rng, videos, rates[[0, 0 if together else 1]])))
    # of 100, 0.09 lies two standard deviations from 0.05
    assert np.mean([change.p <= 0.05 for change in changes]) < 0.09
    assert np.mean([change.low <= 0 <= change.high for change in changes]) > 0.91


@pytest.mark.slow
def test_a_true_difference_lies_in_the_interval_and_is_seen():
    rng = np.random.default_rng(1)
    changes = []
    for _ in range(100):
        rate = rng.beta(2, 8, 20)
        changes.append(difference(*simulate(rng, 20, (rate, rate / 2))))
    assert np.mean([change.low <= 0.1 <= change.high for change in changes]) > 0.92
    assert np.mean([change.p <= 0.05 for change in changes]) > 0.9


def test_five_videos_are_too_few_and_the_order_of_videos_does_not_matter():
    rng = np.random.default_rng(0)
    whole, right = rng.integers(5, 40, (2, 5)), rng.integers(0, 5, (2, 5))
    change = difference(*map(share, right, whole))
    assert change.p > 0.05
    assert "over 5 images; Gaffke's bounds; 5 are too few" in change.method
    again = difference(*map(share, right[:, ::-1], whole[:, ::-1]))
    assert (again.p, again.low, again.high) == pytest.approx((change.p, change.low, change.high))


def test_a_single_video_is_compared_in_blocks_and_says_so():
    rng = np.random.default_rng(0)
    videos, whole = np.full(200, "a"), np.ones(200)
    right = rng.random((2, 200)) < [[0.5], [0.05]]
    change = difference(*(share(part, whole, videos, 20) for part in right))
    assert change.units == 10
    assert "over 10 blocks of 20 images in a row" in change.method
    assert change.method.endswith("within this one video only")
    assert change.p <= 0.05


def test_an_image_where_neither_model_finds_anything_changes_nothing():
    right, whole = np.array([[3, 0, 1, 4, 2, 0, 5], [1, 0, 0, 1, 0, 1, 1]]), np.full((2, 7), 6)
    change = difference(*map(share, right, whole))
    more = [np.append(part, np.zeros((2, 3)), axis=1) for part in (right, whole)]
    again = difference(*map(share, *more))
    assert (again.value, again.p) == (change.value, change.p)
    assert (again.low, again.high) == pytest.approx((change.low, change.high))


def test_a_model_without_anything_has_no_difference():
    assert difference(share([1, 2], [3, 4]), share([0, 0], [0, 0])) is None
