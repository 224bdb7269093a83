import csv
import tracemalloc
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from steadyeye.core.stats import bounded_means
from steadyeye.core.stats.intervals import (
    CellTrials,
    clopper_pearson,
    mean,
    proportion,
    proportions,
)

ANCHORS = 1109
KINDS = ("original", "perturbed")


@pytest.mark.parametrize("hits", [0, 1, 7, 50, 99, 100])
def test_clopper_pearson_is_scipys_exact_interval(hits):
    expected = binomtest(hits, 100).proportion_ci(0.95, method="exact")
    assert clopper_pearson(hits, 100) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_all_ninety_published_intervals(test_data):
    """Table 5 of the ImageNet-Vid-Robust paper: two intervals a model, 45 models."""
    path = Path(test_data).parent / "reference" / "published_imagenet_vid_robust.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    printed = [
        [row[f"{kind}{end}"] for end in ("", "_low", "_high")] for row in rows for kind in KINDS
    ]
    assert len(printed) == 90
    for share, low, high in printed:
        # a printed share stands for one or two whole counts of 1,109
        hits = [h for h in range(ANCHORS + 1) if f"{h / ANCHORS * 100:.1f}" == share]
        intervals = [[f"{end * 100:.1f}" for end in clopper_pearson(h, ANCHORS)] for h in hits]
        assert [low, high] in intervals, (share, low, high, intervals)


def test_one_trial_a_video_is_exact():
    success = np.array([True, False, True, True])
    interval = proportion(success, np.array(["a", "b", "c", "d"]))
    assert (interval.low, interval.high) == clopper_pearson(3, 4)
    assert interval.method == "Clopper–Pearson, n = 4"


def test_a_single_video_says_so():
    interval = proportion(np.array([True, False]), np.array(["a", "a"]))
    assert interval.method.endswith("within this one video only")


def test_all_of_a_video_alike_is_one_trial_a_video():
    """However many anchors a video has: 13 of 20 videos right is 13 of 20."""
    success = np.repeat(np.arange(20) < 13, 50)
    videos = np.repeat([f"v{i}" for i in range(20)], 50)
    interval = proportion(success, videos)
    assert (interval.low, interval.high) == pytest.approx(clopper_pearson(13, 20), abs=1e-9)
    assert (interval.value, interval.n) == (0.65, 1000)
    assert interval.method == "Gaffke's bounds over 20 videos"
    order = np.random.default_rng(1).permutation(1000)
    assert proportion(success[order], videos[order]) == interval


def drawn_bounds(wins, totals, draws=200_000):
    """Gaffke's bounds from their definition, by simulation: wins and totals of each video."""
    rng = np.random.default_rng(7)
    weights, further = rng.exponential(size=(draws, len(wins))), rng.exponential(size=draws)
    further *= np.sum(totals**2) / np.sum(totals)
    return [
        abs(end - np.quantile(weights @ hits / (weights @ totals + further), 0.025))
        for end, hits in ((0, wins), (1, totals - wins))
    ]


@pytest.mark.parametrize("sizes", [[4, 4], [1, 1, 2], [3, 5, 90], [20] * 12, [1, 2, 4, 8] * 9])
def test_the_bounds_are_those_of_the_definition(sizes):
    rng = np.random.default_rng(len(sizes))
    videos = np.repeat(np.arange(len(sizes)), sizes)
    success = rng.random(len(videos)) < rng.beta(4, 2, len(sizes))[videos]
    wins = np.bincount(videos, success)
    interval = proportion(success, videos)
    expected = drawn_bounds(wins, np.array(sizes, dtype=float))
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.003)


@st.composite
def footage(draw):
    """Predictions in videos of any lengths, right or wrong."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=9))
    success = draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes)))
    return np.array(success), np.repeat(np.arange(len(sizes)), sizes)


@given(footage(), st.data())
def test_one_more_right_answer_never_lowers_an_end(answers, data):
    success, videos = answers
    interval = proportion(success, videos)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    if success.all():
        assert interval.high == 1
        return
    more = success.copy()
    more[data.draw(st.sampled_from(np.flatnonzero(~success).tolist()))] = True
    better = proportion(more, videos)
    assert better.low >= interval.low - 1e-8
    assert better.high >= interval.high - 1e-8
    order = data.draw(st.permutations(range(len(success))))
    names = np.random.default_rng(len(success)).permutation(20)[videos]
    again = proportion(success[order], names[order])
    assert (again.low, again.high) == pytest.approx((interval.low, interval.high), abs=1e-8)


def test_the_better_of_two_models_has_the_higher_bound():
    """12 of 12 had 29 % where 11 of 12 had 75 %."""
    videos = np.repeat(["a", "b", "c"], 4)
    all_right, one_wrong = (proportion(np.arange(12) >= wrong, videos) for wrong in (0, 1))
    assert all_right.low == pytest.approx(clopper_pearson(3, 3)[0])
    assert one_wrong.low < all_right.low


@pytest.mark.parametrize("videos", [3, 10, 50])
def test_a_second_anchor_in_one_video_changes_little(videos):
    """There is no step from one anchor per video, which is exact, to several."""
    for hits in (0, 1, videos // 2, videos):
        success = np.append(np.arange(videos) < hits, hits > 0)
        interval = proportion(success, np.append(np.arange(videos), 0))
        exact = clopper_pearson(success.sum(), videos + 1)
        assert (interval.low, interval.high) == pytest.approx(exact, abs=1.5 / (videos + 1))


def test_one_video_with_nearly_all_anchors_is_nearly_one_video():
    success = np.arange(1000) % 10 > 0
    videos = np.append(np.zeros(910, dtype=int), np.repeat(np.arange(1, 10), 10))
    interval = proportion(success, videos)
    assert interval.low < 0.1
    assert interval.method == "Gaffke's bounds over 10 videos"


@pytest.mark.parametrize("videos", [2, 3, 5, 10, 20, 50])
@pytest.mark.parametrize("rho", [0.05, 0.3, 0.8])
def test_the_interval_covers_few_videos_of_any_length(videos, rho):
    """95 % of the intervals cover, and each bound is wrong in 3 % at most."""
    rng = np.random.default_rng(videos)
    tries = 1_000
    lengths = np.round(20 * np.exp(np.linspace(-1, 1, videos)))
    for share in (0.5, 0.9, 0.97):
        odds = (1 - rho) / rho
        chance = rng.beta(share * odds, (1 - share) * odds, size=(tries, videos))
        wins = rng.binomial(lengths.astype(int), chance).astype(np.float64)
        totals = np.tile(lengths, (tries, 1))
        at = np.full(tries, share)
        above = bounded_means.chances(wins, totals, at) < bounded_means.TAIL
        below = bounded_means.chances(totals - wins, totals, 1 - at) < bounded_means.TAIL
        # 1,000 tries: two standard errors are a point
        assert above.mean() <= 0.03
        assert above.mean() + below.mean() <= 0.06


def test_the_p_value_is_that_of_the_bound():
    rng = np.random.default_rng(0)
    totals = rng.integers(1, 30, (50, 6)).astype(np.float64)
    wins = np.round(totals * rng.random((50, 6)))
    low = bounded_means.lower_bounds(wins, totals)
    assert bounded_means.chances(wins, totals, low) == pytest.approx(0.025, abs=1e-7)
    copied = bounded_means.lower_bounds(np.hstack([wins] * 3), np.hstack([totals] * 3))
    assert bounded_means.lower_bounds(wins, totals, copies=3) == pytest.approx(copied, abs=1e-8)


def test_means_of_nearly_nothing_are_bounded_too():
    """Down to the least number above 0, and never lower for a larger mean."""
    values = [0.0, 5e-324, 1e-300, 1e-12, 1e-9, 2e-9, 3e-9, 1e-8, 1e-6, 1e-3, 0.1, 1.0]
    low, high = bounded_means.intervals(
        np.array([[0.0, value] for value in values]), np.ones((12, 2))
    )
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= -1e-9)
    assert np.all(low <= np.array(values) / 2)


def test_several_models_on_the_frames_of_one_video_are_not_independent():
    """Four models that always agree on 30 frames are no more informative than one."""
    right = np.arange(30) % 3 > 0
    cell = np.zeros(30, dtype=int)
    (interval,) = proportions(CellTrials(4 * right, np.full(30, 4), np.full(30, "v"), cell), 1)
    assert (interval.low, interval.high) == pytest.approx(clopper_pearson(20, 30), abs=1e-9)
    assert interval.method == "Gaffke's bounds over 30 frames, within this one video only"


def test_means_of_shares_are_bounded_by_video():
    values = np.array([0.25, 0.75, 1.0, 0.5])
    alone = mean(values, np.arange(4))
    assert (alone.value, alone.n) == (0.625, 4)
    expected = drawn_bounds(values, np.ones(4))
    assert (alone.low, alone.high) == pytest.approx(expected, abs=0.003)
    assert mean(np.ones(4), np.array(["a", "a", "b", "b"])).low == pytest.approx(0.025**0.5)
    assert mean(values, np.full(4, "v")).method.endswith("within this one video only")


def test_nothing_to_count_has_no_value():
    interval = proportion(np.zeros(0, dtype=bool), np.zeros(0, dtype=str))
    assert (interval.value, interval.low, interval.high, interval.n) == (None, None, None, 0)


@given(st.integers(1, 5), st.integers(2, 6), st.data())
def test_the_median_of_classes_is_bounded_by_every_half_of_them(classes, videos, data):
    """Against the least of the bounds over all halves, taken one by one."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    totals = rng.integers(0, 6, (videos, classes)) + (np.arange(videos) == 0)[:, None]
    wins = rng.integers(0, totals + 1)
    low, high = bounded_means.median_interval(wins.astype(float), totals.astype(float))

    def bound_median(hits):
        ends = []
        for half in combinations(range(classes), -(-classes // 2)):
            own, n = (counts[:, list(half)].sum(axis=1) for counts in (hits, totals))
            own, n = own[n > 0].astype(float), n[n > 0].astype(float)
            ends.append(bounded_means.lower_bounds(own[None], n[None])[0])
        return min(ends)

    assert low == pytest.approx(bound_median(wins), abs=1e-6)
    assert 1 - high == pytest.approx(bound_median(totals - wins), abs=1e-6)
    share = np.median(wins.sum(axis=0) / totals.sum(axis=0))
    assert low <= share <= high


@pytest.mark.parametrize("kinds", [1, 3])
def test_clusters_that_are_alike_count_as_so_many(kinds):
    """Merged, compared with as many that differ from each other by nearly nothing."""
    wins, totals = np.tile([[0.0, 1, 2][:kinds]], 20), np.full((1, 20 * kinds), 2.0)
    apart = totals + 1e-9 * np.arange(20 * kinds)
    wins[0, 0] = 1
    bounds = bounded_means.intervals(wins, totals)
    expected = bounded_means.intervals(wins, apart)
    assert np.array(bounds) == pytest.approx(np.array(expected), abs=1e-7)


def test_bounds_of_many_clusters_of_few_kinds_take_few_bytes_each():
    """Each of 100,000 images counts in several rows, and memory is limited."""
    rng, clusters = np.random.default_rng(0), 20_000
    weights = rng.integers(1, 6, (4, clusters)).astype(np.float64)
    sums = np.minimum(rng.integers(0, 6, weights.shape), weights)
    tracemalloc.start()
    low, high = bounded_means.intervals(sums, weights)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    share = sums.sum(axis=1) / weights.sum(axis=1)
    assert ((low < share) & (share < high)).all()
    assert most / clusters < 150
