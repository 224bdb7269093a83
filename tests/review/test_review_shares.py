"""Intervals of accepted shares over videos, against Gaffke's bounds by random weights."""

import numpy as np
import pytest
from review_toys import CLASSES, GOOD, NO, YES, Review, draw, source
from scipy.stats import beta, norm

from steadyeye.data.annotations import review_set
from steadyeye.review.results import status
from steadyeye.review.results.agreement import bound_share
from steadyeye.review.sampling.sampling import Sampling


def bound_by_weights(counts, clusters):
    """Gaffke's bounds by 400,000 draws; `clusters`: unit -> cluster."""
    names = sorted(set(clusters.values()))
    accepted, reviewed = np.zeros((2, len(names)))
    for unit, right, every in counts:
        accepted[names.index(clusters[unit])] += right
        reviewed[names.index(clusters[unit])] += every
    weights = np.random.default_rng(1).standard_exponential((400_000, len(names) + 1))
    further = weights[:, -1] * (reviewed**2).sum() / reviewed.sum()
    whole = weights[:, :-1] @ reviewed + further
    low = np.quantile(weights[:, :-1] @ accepted / whole, 0.025)
    return low, np.quantile((weights[:, :-1] @ accepted + further) / whole, 0.975)


@pytest.mark.parametrize("seed", range(4))
def test_a_share_of_pairs_has_gaffkes_bounds_over_videos(seed):
    random = np.random.default_rng(seed)
    units = [f"set{i}" for i in range(12)]
    videos = {unit: f"video{i % 4}" for i, unit in enumerate(units)}
    reviewed = random.integers(0, 20, 12).tolist()
    counts = [(u, int(random.integers(0, n + 1)), n) for u, n in zip(units, reviewed, strict=True)]
    own = bound_share("pairs", counts, videos)
    assert own.n == sum(reviewed)
    assert own.value == pytest.approx(sum(right for _, right, _ in counts) / sum(reviewed))
    assert own.ends == pytest.approx(bound_by_weights(counts, videos), abs=0.004)
    assert own.method == "Gaffke's bounds over 4 videos"


def test_clusters_are_videos_sets_or_images():
    counts = [("a", 3, 4), ("b", 4, 4)]
    pairs = bound_share("pairs", counts, {"a": "v", "b": "v"})
    assert pairs.method == "Gaffke's bounds over 2 sets, within this one video only"
    assert pairs.ends == pytest.approx(bound_by_weights(counts, {"a": "a", "b": "b"}), abs=0.004)
    boxes = bound_share("classification", counts, {})
    assert (boxes.ends, boxes.method) == (pairs.ends, "Gaffke's bounds over 2 images")
    anchors = bound_share("anchors", [(u, 1, 1) for u in "abc"], {u: u for u in "abc"})
    assert anchors.ends == pytest.approx((0.025 ** (1 / 3), 1.0))
    assert anchors.method == "Clopper–Pearson over 3 videos"
    assert bound_share("pairs", [("a", 0, 0)], {"a": "v"}).value is None


@pytest.mark.slow
def test_the_interval_of_pairs_covers_where_pairs_of_a_set_are_alike():
    """Ten videos of one to four sets of 20 pairs: Clopper and Pearson's covers half of them."""
    random, share = np.random.default_rng(0), 0.8
    sets = np.repeat(np.arange(10), random.integers(1, 5, 10))
    videos = {f"{i}": f"{v}" for i, v in enumerate(sets)}
    covered = np.zeros(2)
    for _ in range(300):
        shared = random.normal(size=10)[sets] + random.normal(size=len(sets))
        chance = norm.cdf((norm.ppf(share) + np.sqrt(0.15) * shared) / np.sqrt(0.7))
        right = random.binomial(20, chance)
        low, high = bound_share(
            "pairs", [(f"{i}", int(k), 20) for i, k in enumerate(right)], videos
        ).ends
        n, k = 20 * len(sets), right.sum()
        plain = beta.ppf(0.025, k, n - k + 1), beta.ppf(0.975, k + 1, n - k)
        covered += low <= share <= high, plain[0] <= share <= plain[1]
    assert covered[0] >= 0.95 * 300
    assert covered[1] < 0.7 * 300


@pytest.mark.slow
def test_table_one_counts_videos_not_pairs(tmp_path):
    """All four pairs of one of four videos are rejected: as three of four, not twelve of 16."""
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    review = Review(review_set.read(tmp_path / "set"), 1, stages={"anchors": 1, "pairs": 1})
    review.everything("anchors", lambda payload: GOOD)
    for stage in ("pairs", "joint"):
        review.everything(stage, lambda payload: NO if payload["video"] == "v0" else YES)
    with review.db.reading() as connection:
        anchors, _, pairs = status.summarise(connection, review.folder, review.plan)["table_one"]
    assert (pairs["reviewed"], pairs["accepted"]) == (16, 12)
    ends = beta.ppf(0.025, 3, 2), beta.ppf(0.975, 4, 1)
    assert (pairs["low"], pairs["high"]) == pytest.approx(ends)
    assert pairs["method"] == "Gaffke's bounds over 4 videos"
    assert anchors["method"] == "Clopper–Pearson over 4 videos"
