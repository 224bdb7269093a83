import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from steadyeye.core.intervals import clopper_pearson, proportion

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
    found = proportion(success, np.array(["a", "b", "c", "d"]))
    assert (found.low, found.high) == clopper_pearson(3, 4)
    assert found.method == "Clopper–Pearson, n = 4"


def test_a_single_video_says_so():
    found = proportion(np.array([True, False]), np.array(["a", "a"]))
    assert found.method.endswith("within this one video only")


def test_several_trials_a_video_are_resampled_by_video():
    # all of a video fails or succeeds: the clustered interval is far wider than the naive one
    success = np.repeat([True, False] * 10, 50)
    videos = np.repeat([f"v{i}" for i in range(20)], 50)
    found = proportion(success, videos)
    naive = clopper_pearson(500, 1000)
    assert found.high - found.low > 4 * (naive[1] - naive[0])
    assert found.method == "bootstrap over 20 videos"
    order = np.random.default_rng(1).permutation(1000)
    assert proportion(success[order], videos[order]) == found


def test_bootstrap_agrees_with_an_independent_one():
    rng = np.random.default_rng(5)
    videos = rng.integers(0, 40, 600)
    success = rng.random(600) < 0.3 + 0.4 * (videos % 2)
    found = proportion(success, videos.astype(str))
    shares = []
    for _ in range(4000):
        rows = np.concatenate([np.flatnonzero(videos == v) for v in rng.integers(0, 40, 40)])
        shares.append(success[rows].mean())
    assert (found.low, found.high) == pytest.approx(np.quantile(shares, [0.025, 0.975]), abs=0.01)


def test_no_failure_in_several_videos_falls_back_on_videos():
    found = proportion(np.ones(10, dtype=bool), np.repeat(["a", "b"], 5))
    assert (found.low, found.high) == clopper_pearson(2, 2)


def test_nothing_to_count_has_no_value():
    found = proportion(np.zeros(0, dtype=bool), np.zeros(0, dtype=str))
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 0)
