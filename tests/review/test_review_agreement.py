"""Agreement of reviewers, against scikit-learn and krippendorff on the votes themselves."""

from itertools import combinations

import krippendorff
import numpy as np
import pytest
from review_toys import CLASSES, NO, YES, Review, draw, source
from sklearn.metrics import cohen_kappa_score

from steadyeye.data.annotations import review_set
from steadyeye.review.results import agreement
from steadyeye.review.results.agreement import BackgroundMeasurement, measure_agreement
from steadyeye.review.sampling.sampling import Sampling


@pytest.mark.parametrize(("people", "words"), [(2, 2), (5, 3), (4, 9)])
def test_kappa_of_all_pairs_is_that_of_scikit_learn(people, words):
    random = np.random.default_rng(people)
    verdicts = random.integers(-1, words, (people, 60))
    verdicts[1] = np.where(random.random(60) < 0.7, verdicts[0], verdicts[1])
    kappa, n = agreement.measure_kappa(verdicts, words)
    for i, j in combinations(range(people), 2):
        both = (verdicts[i] >= 0) & (verdicts[j] >= 0)
        assert n[i, j] == both.sum()
        assert kappa[i, j] == pytest.approx(cohen_kappa_score(verdicts[i, both], verdicts[j, both]))


@pytest.mark.slow
def test_agreement_on_one_verdict_for_everything_is_undefined(tmp_path):
    """Two who accept all without looking would else have the best kappa."""
    draw([source(4)], tmp_path / "set", Sampling("set", {}, CLASSES))
    toy_review = Review(review_set.read(tmp_path / "set"), 2, stages={"pairs": 2})
    for number in (0, 1):
        toy_review.everything("pairs", lambda p: YES, number)
    with toy_review.db.reading() as c:
        (measured,) = measure_agreement(c, ["pairs"])
    assert (measured.n, measured.alpha, measured.kappa) == (16, None, {})


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
        measured = measure_agreement(c, ["pairs"])[0]
    # of the four offsets of each of four anchors
    verdicts = [[0, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1]]
    table = np.tile(np.array(verdicts, float), 4)
    assert measured.n == 16
    assert measured.alpha == pytest.approx(
        krippendorff.alpha(reliability_data=table, level_of_measurement="nominal")
    )
    assert measured.kappa == {
        (f"r{i}", f"r{j}"): (pytest.approx(cohen_kappa_score(table[i], table[j])), 16)
        for i, j in combinations(range(3), 2)
    }


@pytest.mark.slow
def test_the_agreement_of_a_large_review_is_measured_in_the_background(review, monkeypatch):
    monkeypatch.setattr(agreement, "SMALL", 0)
    measurement = BackgroundMeasurement(review.db, review.plan)
    with review.db.reading() as c:
        assert measurement.read(c).made_at is None
        with measurement.running:  # until it is made
            pass
        latest = measurement.read(c)
    assert latest.agreement[0].n == 16
    assert latest.made_at is not None
