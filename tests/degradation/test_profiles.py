"""Profiles, failure points and searches on tables worked by hand."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hand_tables import BLUR, FOG, sweep
from hypothesis import given
from hypothesis import strategies as st

from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import true_rank, true_score
from steadyeye.core.spec import Spec
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.core.types import Evaluated
from steadyeye.degradation.curves import MEAN
from steadyeye.degradation.failure_search import THRESHOLDS, Search, affordable, exhaustive
from steadyeye.metrics.degraded_accuracy import degraded_accuracy
from steadyeye.metrics.degraded_probability import degraded_probability
from steadyeye.metrics.degraded_rank import degraded_rank
from steadyeye.metrics.failure_points import failure_points
from steadyeye.predictions.sample_rows import build_table
from steadyeye.report.analyses.degradation_ranking import degradation_ranking
from steadyeye.report.analyses.failure_levels import failure_levels
from steadyeye.report.analyses.failure_strips import failure_strips
from steadyeye.report.analyses.wrong_predictions import wrong_predictions
from steadyeye.report.gate import OPEN, gate, tolerance
from steadyeye.runner.collect import ask
from steadyeye.testing import example_sweep


def take_logits(table):
    """The same predictions with scores whose softmax is other probabilities: 8 times as large."""
    return replace(table, scores=table.scores * 8, top_scores=table.top_scores * 8)


def test_profiles_by_hand():
    accuracy = degraded_accuracy(sweep({"blur": BLUR, "fog": FOG}))
    blur, fog, mean = accuracy.cells
    assert [cell.name for cell in fog.cells] == ["level 0", "level 1", "level 2", "level 3"]
    assert [cell.value for cell in fog.cells] == [1, 2 / 3, 1 / 3, 1 / 3]
    assert fog.value == pytest.approx((2 + 1 + 1) / 9)
    assert blur.value == pytest.approx((3 + 3 + 2) / 9)
    assert accuracy.value == pytest.approx((fog.value + blur.value) / 2)
    assert mean.name == MEAN
    assert [cell.value for cell in mean.cells] == pytest.approx([1, 5 / 6, 2 / 3, 1 / 2])
    assert accuracy.n == 3
    assert accuracy.notes == ("1 image left out: wrong at level 0",)
    assert (fog.cells[1].low, fog.cells[1].high) == clopper_pearson(2, 3)
    assert (fog.cells[0].low, fog.cells[0].high) == (1, 1)


def test_all_images_count_when_asked():
    accuracy = degraded_accuracy(sweep({"fog": FOG}), images="all")
    assert [cell.value for cell in accuracy.cells[0].cells] == [3 / 4, 2 / 4, 2 / 4, 1 / 4]
    assert accuracy.notes == ()


def test_ranks_among_other_classes_have_an_interval_around_them():
    """Three classes of the data and 27 others: the true class can stand behind 29."""
    ranks = np.vstack([np.zeros(6), [2, 20, 9, 29, 0, 14], [5, 20, 29, 29, 3, 8]]).astype(int)
    table = sweep({"fog": ranks, "rain": ranks}, videos=list("aabbcc"))
    table = replace(table, others=np.arange(3, 30))
    for images in ("all", "right"):
        rank = degraded_rank(table, images)
        for cell in (
            rank,
            *rank.cells,
            *(level_cell for profile in rank.cells for level_cell in profile.cells[1:]),
        ):
            assert 0 <= cell.low < cell.value < cell.high <= 29


def test_rank_and_probability_by_hand():
    rank = degraded_rank(sweep({"fog": FOG})).cells[0]
    assert [cell.value for cell in rank.cells] == pytest.approx([0, 1 / 3, 1, 1])
    assert rank.unit == "rank"
    probability = degraded_probability(sweep({"fog": FOG})).cells[0]
    assert probability.cells[2].value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert probability.low <= probability.value <= probability.high


def test_scores_that_are_no_probabilities_have_no_probability_profile():
    table = sweep({"fog": FOG})
    table.stored["probability"][3] = 7.5
    probability = degraded_probability(table)
    assert probability.value is None
    assert "no probabilities" in probability.interval


def test_logits_are_neither_compared_nor_shown_as_probabilities():
    logits = take_logits(example_sweep())
    assert np.isnan(ask(Spec("degraded_probability")).outcomes(logits).value)
    (verdict,) = gate(
        [logits], (), [logits], tolerance((), "degraded_probability", "5%", against=True)
    )
    assert verdict.outcome == OPEN
    assert {row["probability"] for row in build_table(logits).to_pylist()} == {None}
    model = Evaluated(logits, {"failure_points": failure_points(logits)})
    texts = [
        line
        for section in (failure_strips([model]), wrong_predictions([model]))
        if section is not None
        for exhibit in section.exhibits
        for picture in exhibit.pictures
        for line in (picture.title, *picture.lines)
        if "changed" not in line
    ]
    assert any(", score " in text for text in texts)
    assert not re.search(r"(predicts|class)[^;]*%", "; ".join(texts))


def test_logits_are_told_by_any_score_and_not_by_those_of_the_true_classes():
    sweep = example_sweep()
    scores = sweep.scores.copy()
    wrong = ~sweep.truth & (np.arange(len(sweep)) == 3)[:, None]
    scores[wrong] = -4
    assert degraded_probability(replace(sweep, scores=scores)).value is None
    assert degraded_probability(sweep).value is not None


def test_rounding_takes_no_probability_for_a_logit():
    sweep = example_sweep()
    scores = sweep.scores.copy()
    scores[5] = np.where(sweep.truth[5], np.float32(1.0000002), np.float32(-1e-9))
    assert replace(sweep, scores=scores).has_probabilities


def test_images_are_no_videos():
    accuracy = degraded_accuracy(example_sweep())
    assert accuracy.interval == "Gaffke's bounds over 20 images"
    assert accuracy.cells[0].interval == "Gaffke's bounds over 20 images"


def test_an_image_that_failed_at_any_level_is_left_out_and_counted():
    accuracy = degraded_accuracy(sweep({"fog": FOG}, errors={("fog", 2, 0)}))
    assert accuracy.n == 2
    assert "1 image left out: no prediction at some level" in accuracy.notes


def test_an_empty_baseline_is_an_error():
    never = [[1, 2], [0, 0]]
    with pytest.raises(UsageError, match="right on none of 2 images at level 0"):
        degraded_accuracy(sweep({"fog": never}))
    with pytest.raises(UsageError, match="value of images"):
        degraded_accuracy(sweep({"fog": FOG}), images="some")


def test_failure_points_by_hand():
    points = failure_points(sweep({"blur": BLUR, "fog": FOG}), thresholds=(0.9, 0.5, 0.3))
    blur, fog = points.cells
    assert [point.value for point in fog.cells] == [1, 2, None]
    assert [point.value for point in blur.cells] == [3, None, None]
    measured = {cell.name: cell.value for cell in fog.cells[1].cells}
    assert measured == {"pixels changed": pytest.approx(0.02), "mean value": 102}
    assert fog.cells[2].notes == ("not reached",)
    # equal is not below
    assert failure_points(sweep({"fog": FOG}), thresholds=[2 / 3]).cells[0].cells[0].value == 2


@pytest.mark.parametrize("thresholds", [(), (0,), (1.5,)])
def test_thresholds_must_be_shares(thresholds):
    with pytest.raises(UsageError, match="give shares above 0"):
        failure_points(sweep({"fog": FOG}), thresholds=thresholds)


def falling(rng, images=60, last=30, wobble=0.0):
    """(levels + 1, images) who is right: every image has its own level, and some wobble."""
    own = rng.uniform(0, last * 1.1, images)
    right = np.arange(last + 1)[:, None] < own
    right ^= rng.uniform(size=right.shape) < wobble
    right[0] = True
    return right


def test_the_interval_of_a_failure_point_is_where_that_of_accuracy_crosses():
    right = falling(np.random.default_rng(1))
    point = failure_points(sweep({"fog": np.where(right, 0, 1)})).cells[0].cells[1]
    # one 0 or 1 an image: Clopper and Pearson's ends
    ends = [clopper_pearson(int(row.sum()), 60) for row in right[1:]]
    low, high = (1 + int(np.argmax(np.array(side) < 0.5)) for side in zip(*ends, strict=True))
    assert point.low == pytest.approx(low, abs=1)
    assert point.high == pytest.approx(high, abs=1)
    assert point.low < point.value < point.high


def test_means_over_levels_and_operators_keep_open_ends():
    always = np.zeros((4, 12), dtype=int)
    accuracy = degraded_accuracy(sweep({"blur": always, "fog": always}))
    assert (accuracy.value, accuracy.high) == (1, 1)
    # all of 12 images, at every level: no surer than 12 of 12
    assert accuracy.low == pytest.approx(clopper_pearson(12, 12)[0], abs=0.01)
    assert all(cell.low < 0.8 for cell in accuracy.cells)
    never = always.copy()
    never[1:] = 1
    lost = degraded_accuracy(sweep({"blur": never, "fog": never}))
    assert (lost.value, lost.low) == (0, 0)
    assert lost.high == pytest.approx(clopper_pearson(0, 12)[1], abs=0.01)
    ranks = degraded_rank(sweep({"fog": always}))
    assert ranks.value == 0
    assert ranks.high > 0
    assert ranks.cells[0].cells[0].interval == "none: right at level 0 by selection"


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=9),
    st.data(),
)
def test_one_more_right_answer_never_lowers_an_end(answers, data):
    """Right or wrong at three levels of one operator; videos of one to three images."""
    right = np.array(answers).T
    images = right.shape[1]
    videos = [f"v{min(i // 2, 3)}" for i in range(images)]
    level, image = data.draw(st.integers(0, 2)), data.draw(st.integers(0, images - 1))
    better = right.copy()
    better[level, image] = True
    before, after = (
        degraded_accuracy(
            sweep(
                {"fog": np.vstack([np.zeros(images, int), np.where(outcome, 0, 1)])}, videos=videos
            )
        )
        for outcome in (right, better)
    )
    # but for the rounding of float32 sums
    assert after.low >= before.low - 1e-6
    assert after.high >= before.high - 1e-6


def test_images_of_one_video_are_resampled_together():
    videos = ["one"] * 30 + ["other"] * 30
    rng = np.random.default_rng(0)
    right = falling(rng)
    right[1:, 30:] = False
    table = sweep({"fog": np.where(right, 0, 1)}, videos=videos)
    free = degraded_accuracy(sweep({"fog": np.where(right, 0, 1)}))
    by_video = degraded_accuracy(table)
    assert by_video.high - by_video.low > 1.5 * (free.high - free.low)
    assert by_video.interval == "Gaffke's bounds over 2 videos"
    weight = bootstrap.draws(np.array(videos)).of_samples
    assert (weight[:, :30] == weight[:, :1]).all()


def test_the_ranking_shares_ranks_that_the_data_cannot_tell_apart():
    rng = np.random.default_rng(0)
    right = falling(rng, images=80)
    much_worse = right & (np.arange(31) < 4)[:, None]
    twin = falling(np.random.default_rng(2), images=80)
    tables = {"good": right, "twin": twin, "bad": much_worse}
    evaluated = [
        Evaluated(sweep({"fog": np.where(block, 0, 1)}, model=model), {})
        for model, block in tables.items()
    ]
    rows = degradation_ranking(evaluated).tables[0].rows
    assert {row[1]: row[0] for row in rows} == {"good": "1=", "twin": "1=", "bad": "3"}
    assert degradation_ranking(evaluated[:1]) is None


def test_the_published_points_are_shown_with_the_user_s():
    table = sweep({"fog": FOG})
    evaluation = Evaluated(table, {"failure_points": failure_points(table)})
    *_, published = failure_levels([evaluation]).tables
    published_rows = {row[0]: row[1:] for row in published.rows}
    assert published.header[1:] == ("ResNet50", "EfficientNetB0", "InceptionV3")
    assert published_rows["jpeg"][1] == "25 colors (100\u202f%)"


# ---------------------------------------------------------------- rank of the true class


def test_ranks_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (500, 9)).astype(np.float32)
    scores[rng.uniform(size=scores.shape) < 0.1] = -np.inf
    truth = rng.uniform(size=scores.shape) < 0.2
    expected = [
        min(np.flatnonzero(np.isin(np.argsort(-row, kind="stable"), np.flatnonzero(own))))
        if own.any()
        else -1
        for row, own in zip(scores, truth, strict=True)
    ]
    assert np.array_equal(true_rank(scores, truth), expected)
    right = truth[np.arange(500), scores.argmax(axis=1)]
    assert np.array_equal(true_rank(scores, truth) == 0, right)
    best = [row[own].max() if own.any() else np.nan for row, own in zip(scores, truth, strict=True)]
    assert np.array_equal(true_score(scores, truth), np.array(best, np.float32), equal_nan=True)


# ---------------------------------------------------------------- search


def run_search(right, seed):
    order = np.random.default_rng(seed).permutation(right.shape[1])
    state = Search(len(order), [list(range(len(right)))], THRESHOLDS)
    budget, used = exhaustive(len(order), state) // 10, len(order)
    while queries := affordable(state.queries(), budget - used):
        for query in queries:
            answers = right[query.level, order[query.start : query.stop]]
            state.learn(query, int(answers.sum()))
            used += len(query)
    assert used <= budget
    return state


@pytest.mark.slow
@pytest.mark.parametrize("wobble", [0.0, 0.05])
def test_a_search_holds_the_exhaustive_level_and_costs_a_tenth(wobble):
    right = falling(np.random.default_rng(5), images=300, wobble=wobble)
    accuracy = right.mean(axis=1)
    inside = []
    for seed in range(50):
        state = run_search(right, seed)
        for threshold in THRESHOLDS:
            below = np.flatnonzero(accuracy < threshold)
            level = below[0] if len(below) else 31
            bracket = state.bracket(0, threshold)
            inside.append(bracket.low < level <= bracket.high)
    assert np.mean(inside) >= 0.95


def test_a_search_without_a_budget_finds_every_level():
    right = falling(np.random.default_rng(5), images=100)
    right[20:] = False
    state = Search(100, [list(range(31))], (0.95, 0.5))
    while queries := state.queries():
        for query in queries:
            state.learn(query, int(right[query.level, query.start : query.stop].sum()))
    for threshold in (0.95, 0.5):
        level = int((right.mean(axis=1) < threshold).argmax())
        bracket = state.bracket(0, threshold)
        assert bracket.low < level <= bracket.high
        assert state.level(0, threshold) == level


def test_a_threshold_that_accuracy_never_falls_below_has_no_failure_point():
    state = Search(100, [[0, 10, 20, 30]], (0.5,))
    while queries := state.queries():
        for query in queries:
            state.learn(query, len(query))
    assert state.bracket(0, 0.5).high == 4
    assert state.level(0, 0.5) == np.inf


def test_a_single_wrong_image_is_counted_and_has_no_strip():
    never_right = sweep({"fog": [[1], [2], [2]]})
    with pytest.raises(UsageError, match="use --images all"):
        failure_points(never_right)
    points = failure_points(never_right, images="all")
    assert failure_strips([Evaluated(never_right, {"failure_points": points})]) is None
    lost = sweep({"fog": [[0], [0], [0]]}, errors={("fog", 1, 0)})
    with pytest.raises(UsageError, match=r"every level for none of 1 image.* first error: broken"):
        degraded_accuracy(lost, images="all")
