"""Agreement of reviewers, against scikit-learn and krippendorff on the votes themselves."""

from itertools import combinations, permutations

import krippendorff
import numpy as np
import pytest
from review_toys import CLASSES, NO, YES, Review, draw, source
from sklearn.metrics import cohen_kappa_score

from steadyeye.data.annotations import review_set
from steadyeye.review.results import agreement
from steadyeye.review.results.agreement import (
    BackgroundMeasurement,
    find_clusters,
    list_videos,
    measure_agreement,
)
from steadyeye.review.sampling.sampling import Sampling


def cluster(names):
    """Clusters of items whose anchors are their videos."""
    return find_clusters("pairs", list(names), {name: name for name in names})


@pytest.mark.parametrize(("people", "words"), [(2, 2), (5, 3), (4, 9)])
def test_kappa_is_that_of_scikit_learn(people, words):
    random = np.random.default_rng(people)
    verdicts = random.integers(-1, words, (people, 60))
    verdicts[1] = np.where(random.random(60) < 0.7, verdicts[0], verdicts[1])
    clusters = cluster(random.choice(["a", "b", "c"], 60))
    for i, j in combinations(range(people), 2):
        both = (verdicts[i] >= 0) & (verdicts[j] >= 0)
        own = agreement.measure_kappa(verdicts[[i, j]], clusters)
        assert own.n == both.sum()
        assert own.value == pytest.approx(cohen_kappa_score(verdicts[i, both], verdicts[j, both]))
        assert own.low < own.value < own.high
    verdicts[0, clusters.number > 0] = -1
    shared = agreement.measure_kappa(verdicts[:2], clusters)
    assert shared.method == "Bayesian bootstrap over 1 video"


def ends_by_coincidences(verdicts, videos):
    """The 95 % interval of alpha from the coincidences of every item, weighted one by one."""
    words = verdicts.max() + 1
    tables = {}
    for item, video in enumerate(videos):
        answers = [v for v in verdicts[:, item] if v >= 0]
        table = tables.setdefault(video, np.zeros((words, words)))
        for first, second in permutations(answers, 2):
            table[first, second] += 1 / (len(answers) - 1)
    names = sorted(tables)
    whole = sum(tables.values())
    sizes = np.array([tables[name].sum() for name in names])
    share = whole.sum(axis=0) / whole.sum()
    scale = whole.sum() / (whole.sum() - 1)
    size = (sizes**2).sum() / sizes.sum()
    ends = []
    by_chance = size * np.outer(share, share) * scale
    np.fill_diagonal(by_chance, 0)
    np.fill_diagonal(by_chance, size * share - by_chance.sum(axis=1))
    for further in (by_chance, size * np.diag(share)):
        values = []
        for weights in np.random.default_rng(0).standard_exponential((2000, len(names) + 1)):
            table = sum(w * tables[n] for w, n in zip(weights, names, strict=False))
            table = table + weights[-1] * further
            chance = table.sum() ** 2 - (table.sum(axis=0) ** 2).sum()
            differing = table.sum() - np.trace(table)
            values.append(1 - table.sum() * differing / chance / scale)
        ends.append(sorted(values))
    return ends[0][49], ends[1][1949]


@pytest.mark.parametrize("seed", range(4))
def test_alpha_and_its_interval_are_those_of_the_coincidences(seed):
    random = np.random.default_rng(seed)
    people, words = (2, 2) if seed == 0 else (4, 5)
    videos = random.choice(list("abcde"), 40)
    truth = random.integers(0, words, 40)
    other = random.integers(0, words, (people, 40))
    verdicts = np.where(random.random((people, 40)) < 0.7, truth, other)
    if people > 2:
        verdicts[2:] = np.where(random.random((2, 40)) < 0.5, -1, verdicts[2:])
    own = agreement.measure_alpha(verdicts, cluster(videos))
    table = np.where(verdicts < 0, np.nan, verdicts)
    assert own.value == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    )
    assert own.ends == pytest.approx(ends_by_coincidences(verdicts, videos), abs=0.002)
    assert own.method == "Bayesian bootstrap over 5 videos"


def test_few_videos_of_perfect_agreement_leave_the_lower_end_open():
    """Of five videos alike, the further one weighs at most 1 - 0.025^(1/5) in 97.5 % of cases."""
    verdicts = np.tile([0, 1], (2, 20))
    own = agreement.measure_alpha(verdicts, cluster(np.repeat(list("abcde"), 8)))
    assert (own.value, own.high) == (1, 1)
    assert own.low == pytest.approx(0.025**0.2, abs=0.03)
    sets = np.repeat(list("abcde"), 8).tolist()
    single = agreement.measure_alpha(
        verdicts, find_clusters("pairs", sets, dict.fromkeys(sets, "v"))
    )
    assert single.ends == own.ends
    assert single.method == "Bayesian bootstrap over 5 sets, within this one video only"


@pytest.mark.slow
@pytest.mark.parametrize(("videos", "errors"), [(5, 0.1), (10, 0.05), (30, 0.25)])
def test_the_interval_of_agreement_covers(videos, errors):
    """Two reviewers whose errors come in videos; the truth is that of a large sample."""
    random = np.random.default_rng(videos)

    def draw_verdicts(count):
        video = np.repeat(np.arange(count), random.integers(20, 80, count))
        hard = random.beta(2 * errors, 2 - 2 * errors, count)[video]
        truth = random.random(len(video)) < random.beta(1, 2, count)[video]
        return truth ^ (random.random((2, len(video))) < hard), video

    many, _ = draw_verdicts(20_000)
    differing, p, q = (many[0] != many[1]).mean(), *many.mean(axis=1)
    kappa = 1 - differing / (p * (1 - q) + q * (1 - p))
    mean = many.mean()
    alpha = 1 - differing / (2 * mean * (1 - mean))
    covered = np.zeros(2)
    for _ in range(300):
        verdicts, video = draw_verdicts(videos)
        clusters = cluster(video.astype(str))
        for at, (measure, value) in enumerate(
            [(agreement.measure_alpha, alpha), (agreement.measure_kappa, kappa)]
        ):
            low, high = measure(verdicts.astype(np.int32), clusters).ends
            covered[at] += low <= value <= high
    assert covered.min() >= 0.93 * 300


@pytest.mark.slow
def test_agreement_on_one_verdict_for_everything_is_undefined(tmp_path):
    """Two who accept all without looking would else have the best kappa."""
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    toy_review = Review(review_set.read(tmp_path / "set"), 2, stages={"pairs": 2})
    for number in (0, 1):
        toy_review.everything("pairs", lambda p: YES, number)
    with toy_review.db.reading() as c:
        (measured,) = measure_agreement(c, ["pairs"], {})
    assert (measured.alpha.n, measured.alpha.value, measured.kappa) == (16, None, {})


@pytest.fixture
def review(tmp_path):
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    toy_review = Review(review_set.read(tmp_path / "set"), 3, stages={"pairs": 3})
    for number, doubts in enumerate([{-2}, {-2, 1}, {1}]):
        toy_review.everything(
            "pairs", lambda p, doubts=doubts: NO if p["offset"] in doubts else YES, number
        )
    return toy_review


@pytest.mark.slow
def test_agreement_is_that_of_the_votes(review):
    with review.db.reading() as c:
        measured = measure_agreement(c, ["pairs"], list_videos(review.folder, review.plan))[0]
    # of the four offsets of each of four anchors
    verdicts = [[0, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1]]
    table = np.tile(np.array(verdicts, float), 4)
    alpha = measured.alpha
    assert (alpha.n, alpha.method) == (16, "Bayesian bootstrap over 4 videos")
    assert alpha.value == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    )
    assert {pair: (own.value, own.n) for pair, own in measured.kappa.items()} == {
        (f"r{i}", f"r{j}"): (pytest.approx(cohen_kappa_score(table[i], table[j])), 16)
        for i, j in combinations(range(3), 2)
    }


@pytest.mark.slow
def test_the_agreement_of_a_large_review_is_measured_in_the_background(review, monkeypatch):
    monkeypatch.setattr(agreement, "SMALL", 0)
    measurement = BackgroundMeasurement(review.db, review.folder, review.plan)
    with review.db.reading() as c:
        assert measurement.read(c).made_at is None
        with measurement.running:  # until it is made
            pass
        latest = measurement.read(c)
    assert latest.agreement[0].alpha.n == 16
    assert latest.made_at is not None
