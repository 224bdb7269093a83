"""Shares of a detector's images from a few labels, against counts written from the definition."""

import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import next_sets
from test_label_cost import evidence, is_decided

from steadyeye.core.boxes import Detections, detection_table
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.label_studies.answered_sets import count_at_least_and_most
from steadyeye.metrics.label_studies.cost import (
    estimate_decisions,
    estimate_widths,
    list_right,
)
from steadyeye.metrics.label_studies.files import (
    LabelledStudy,
    plan_again,
    read_labels,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import judge_other_model
from steadyeye.metrics.label_studies.model_difference import compare_models
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import say_bound, say_result
from steadyeye.metrics.label_studies.study import StopRule, plan_study

NAMES = ("bicycle", "car", "traffic light")
RATES = ("false_positive_rate", "image_error_rate")
EXACT = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}


def draw_images(images=40, seed=0, recall=0.8, spurious=0.15):
    """For each image the classes that it shows, and the (class, score) of what is detected."""
    rng = np.random.default_rng(seed)
    shows, detects = [], []
    for _ in range(images):
        true = [name for name in NAMES if rng.random() < 0.4]
        boxes = [name for name in true for _ in range(2) if rng.random() < recall]
        boxes += [name for name in NAMES if rng.random() < spurious]
        # a box with a score of exactly the threshold is not above it
        scores = rng.choice([0.2, 0.5, 0.6, 0.9], len(boxes), p=[0.1, 0.1, 0.4, 0.4])
        shows.append(set(true))
        detects.append(list(zip(boxes, scores.tolist(), strict=True)))
    return shows, detects


def make_table(detects, model="A", lost=()):
    """The predictions of a detector without labels; `lost`: images that it could not be run on."""
    n, classes = len(detects), len(NAMES)
    ids = np.array([f"{number:03d}.jpg" for number in range(n)])
    boxes = [
        Detections(
            np.tile([[0.0, 0.0, 9.0, 9.0]], (len(own), 1)),
            np.array([NAMES.index(name) for name, _ in own], np.int32),
            np.array([score for _, score in own]),
        )
        for own in detects
    ]
    return Predictions(
        model=model,
        data="street",
        classes=NAMES,
        model_classes=NAMES,
        columns=("detections",),
        ids=ids,
        groups=ids,
        truth=np.zeros((n, classes), dtype=np.bool_),
        scores=np.zeros((n, classes), np.float32),
        top=np.zeros((n, 1), np.int32),
        top_scores=np.zeros((n, 1), np.float32),
        errors=np.array(["cannot be read" if row in lost else "" for row in range(n)]),
        fingerprint="street 1",
        detections=detection_table(boxes),
    )


def list_wrong(metric, shows, detects, score):
    """Of each image whether it counts, from the definition of the share."""
    wrong = []
    for true, boxes in zip(shows, detects, strict=True):
        above = {name for name, own in boxes if own > score}
        surplus, missing = above - true, true - above
        wrong.append(bool(surplus) if metric == "false_positive_rate" else bool(surplus | missing))
    return wrong


def write_truth(table, shows):
    return {name: tuple(sorted(own)) for name, own in zip(table.ids.tolist(), shows, strict=True)}


def store(folder, study, labels):
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))
    return read_study(folder / "study.json"), read_labels(folder / "labels.csv")


@given(
    st.integers(0, 10_000),
    st.sampled_from(RATES),
    st.sampled_from(sorted(EXACT)),
    st.integers(0, 40),
    st.sampled_from([0.1, 0.5, 0.7]),
)
@settings(max_examples=60)
def test_the_result_with_all_labels_is_the_share(seed, metric, relation, fortieths, score):
    shows, detects = draw_images(seed=seed)
    table = make_table(detects)
    wrong = sum(list_wrong(metric, shows, detects, score))
    question = parse_question(f"{metric}(score={score}) {relation} {fortieths / 40}")
    study = plan_study(table, question, seed=seed)
    truth = write_truth(table, shows)
    result = judge(study, {name: truth[name] for name in study.candidates})
    assert result.holds == EXACT[relation](wrong, fortieths)
    measured = plan_study(table, parse_question(question.name))
    ends = judge(measured, {name: truth[name] for name in measured.candidates}).interval
    assert (ends.low, ends.value, ends.high) == pytest.approx((wrong / 40,) * 3)
    # no label of any other image changes anything
    assert judge(measured, truth).interval == ends


@pytest.mark.parametrize("metric", RATES)
@pytest.mark.parametrize(
    ("text", "holds"), [("<= 5%", (True, True, False)), ("< 5%", (True, False, False))]
)
def test_a_share_of_five_percent_at_most_allows_two_of_forty_images(metric, text, holds):
    """1, 2 and 3 of 40 images are wrong; one with two boxes of a class counts once."""
    for wrong, expected in enumerate(holds, start=1):
        shows = [{"car"}] * 40
        detects = [[("car", 0.9), ("car", 0.8)]] * (40 - wrong)
        detects += [[("car", 0.9), ("bicycle", 0.9), ("bicycle", 0.6)]] * wrong
        table = make_table(detects)
        study = plan_study(table, parse_question(f"{metric}(score=0.5) {text}"))
        assert judge(study, write_truth(table, shows)).holds is expected


def test_images_without_an_object_and_of_several_classes():
    """Which of six images count: nothing there; a part, all or more of what is there detected."""
    shows = [set(), set(), {"car"}, {"car", "bicycle"}, {"car", "bicycle"}, {"car"}]
    detects = [
        [],
        [("car", 0.9)],
        [],
        [("car", 0.9)],
        [("bicycle", 0.9), ("car", 0.8)],
        [("car", 0.9), ("traffic light", 0.51)],
    ]
    table = make_table(detects)
    truth = write_truth(table, shows)
    assert truth["000.jpg"] == ()
    expected = {
        "false_positive_rate": [False, True, False, False, False, True],
        "image_error_rate": [False, True, True, True, False, True],
    }
    for metric, counts in expected.items():
        assert list_wrong(metric, shows, detects, 0.5) == counts
        for row, name in enumerate(truth):
            study = plan_study(table, parse_question(metric))
            first = replace(study, candidates=(name,))
            if name not in study.candidates:
                assert not counts[row]
                continue
            assert judge(first, {name: truth[name]}).counts.right == counts[row], (metric, row)
            # no class is what an image shows, rather than that nobody could tell
            assert judge(first, {name: ()}).counts.unknown == 0
    every = plan_study(table, parse_question("false_positive_rate"))
    assert sorted(every.candidates) == ["001.jpg", "003.jpg", "004.jpg", "005.jpg"]
    assert "only 66.7\u202f% have a detection above the score" in say_bound(every)
    assert len(plan_study(table, parse_question("image_error_rate")).candidates) == 6
    # above 0.51 the traffic light is no detection any more
    higher = plan_study(table, parse_question("image_error_rate(score=0.51)"))
    assert judge(higher, truth).interval.value == 3 / 6


@pytest.mark.parametrize(
    "spelling", ["traffic light", "Traffic  LIGHT ", "traffic_light", "Traffic-Light"]
)
@pytest.mark.parametrize("metric", RATES)
def test_another_spelling_of_a_class_is_that_class(metric, spelling, tmp_path):
    table = make_table([[("traffic light", 0.9), ("car", 0.9)]])
    study = plan_study(table, parse_question(f"{metric} <= 0%"))
    _, labels = store(tmp_path, study, {"000.jpg": (spelling, "CAR")})
    assert judge(study, labels).holds
    assert judge(study, {"000.jpg": (spelling,)}).holds is False
    assert judge(study, {"000.jpg": ("trafficlights at night", "car")}).holds is False


def list_possible(counting, labelled, images):
    """The numbers of counting images that a sample does not rule out, from the definition.

    Each under which as many, and as few, would be in the sample with more than 2.5 %.
    """

    def chance(size, counts):
        ways = [comb(size, c) * comb(images - size, labelled - c) for c in counts]
        return Fraction(sum(ways), comb(images, labelled))

    return [
        size
        for size in range(counting, counting + images - labelled + 1)
        if chance(size, range(counting, labelled + 1)) > Fraction(1, 40)
        and chance(size, range(counting + 1)) > Fraction(1, 40)
    ]


@pytest.mark.parametrize("metric", RATES)
def test_the_interval_is_that_of_the_definition_and_covers(metric):
    """In every sample of 4 of ten images."""
    shows, detects = draw_images(images=10, seed=3)
    table = make_table(detects)
    study = plan_study(table, parse_question(metric))
    truth, n = write_truth(table, shows), len(study.candidates)
    wrong = sum(list_wrong(metric, shows, detects, 0.5))
    assert 0 < wrong < n
    covered = total = 0
    for sample in combinations(study.candidates, 4):
        others = [name for name in study.candidates if name not in sample]
        ordered = replace(study, candidates=(*sample, *others))
        result = judge(ordered, {name: truth[name] for name in sample})
        possible = list_possible(result.counts.right, 4, n)
        ends = result.interval
        assert (ends.low * 10, ends.high * 10) == pytest.approx((possible[0], possible[-1]))
        covered += possible[0] <= wrong <= possible[-1]
        total += 1
    assert covered >= 0.95 * total


@pytest.mark.parametrize("metric", RATES)
@pytest.mark.parametrize("relation", ["<=", ">"])
def test_a_verdict_comes_when_the_evidence_says_so(metric, relation):
    """Every verdict of a study of 200 images, label by label, as by the ratio of the definition."""
    shows, detects = draw_images(images=200, seed=5, recall=0.97, spurious=0.02)
    table = make_table(detects)
    truth = write_truth(table, shows)
    share = 0.3 if metric == "false_positive_rate" else 0.4
    study = plan_study(table, parse_question(f"{metric} {relation} {share}"), seed=3)
    needed, n = int(share * 200) + 1, len(study.candidates)
    counts = dict(zip(truth, list_wrong(metric, shows, detects, 0.5), strict=True))
    labels, wrong = {}, 0
    for name in study.candidates:
        before = judge(study, labels)
        assert (before.holds is None) == (not is_decided(needed, n, wrong, len(labels)))
        if before.holds is not None:
            break
        labels[name] = truth[name]
        wrong += counts[name]
    assert 0 < len(labels) < n
    # few are wrong, so that "at most" holds and "more than" does not
    assert sum(counts.values()) < needed
    assert before.holds == (relation == "<=")
    assert evidence(needed, n, wrong, len(labels))[1] >= 40
    assert f"shown after {len(labels)} labels" in say_result(study, before)
    assert "of these 200 images" in say_bound(study)


@given(st.integers(0, 1000), st.sampled_from(RATES), st.integers(0, 40), st.randoms())
@settings(max_examples=25)
def test_order_gaps_and_one_more_label(seed, metric, number, shuffler):
    """The order of labels and those after a gap change nothing; one more right one moves one way.

    A label that is as detected is right: it never moves a share of errors up.
    """
    shows, detects = draw_images(seed=seed)
    table = make_table(detects)
    truth = write_truth(table, shows)
    study = plan_study(table, parse_question(f"{metric} <= 30%"), seed=seed)
    names = list(study.candidates[:number])
    rest = study.candidates[number:]
    first = judge(study, {name: truth[name] for name in names})
    shuffler.shuffle(names)
    labels = {name: truth[name] for name in names}
    later = judge(study, labels | {name: truth[name] for name in rest[1:]})
    assert (later.interval, later.holds) == (first.interval, first.holds)
    assert judge(study, labels) == first
    if not rest or first.holds is not None:
        return
    right = judge(study, labels | {rest[0]: study.answers[rest[0]]})
    wrong = judge(study, labels | {rest[0]: ("neither",)})
    order = (False, None, True)
    assert order.index(right.holds) >= order.index(first.holds) >= order.index(wrong.holds)
    assert right.interval.high <= first.interval.high <= 1
    assert wrong.interval.low >= first.interval.low >= 0


def test_images_without_a_prediction_are_left_out_and_reported():
    shows, detects = draw_images(images=10)
    table = make_table(detects, lost=(3, 4))
    study = plan_study(table, parse_question("image_error_rate"))
    assert study.notes == ("2 images left out: no prediction",)
    assert len(study.sets) == len(study.candidates) == 8
    truth = write_truth(table, shows)
    with pytest.raises(UsageError, match=r"street does not have the sets of 2 of 10 labels"):
        judge(study, truth)
    rows = [row for row in range(10) if row not in (3, 4)]
    wrong = np.array(list_wrong("image_error_rate", shows, detects, 0.5))[rows].sum()
    own = {name: own for name, own in truth.items() if name in study.sets}
    assert judge(study, own).interval.value == wrong / 8


@pytest.mark.slow
@pytest.mark.parametrize("metric", RATES)
def test_labels_serve_another_detector(metric, tmp_path):
    """In 120 orders of one pool labels end where A is decided; B's interval holds its share."""
    shows, detects = draw_images(images=60, seed=1)
    _, others = draw_images(images=60, seed=1, recall=0.6, spurious=0.3)
    a, b = make_table(detects), make_table(others, "B")
    truth = write_truth(a, shows)
    wrong = sum(list_wrong(metric, shows, others, 0.5))
    assert wrong != sum(list_wrong(metric, shows, detects, 0.5))
    question = parse_question(f"{metric} <= 50%")
    record, _ = store(tmp_path, plan_study(a, question), {})
    hits, widths = 0, []
    for seed in range(120):
        study = plan_study(a, question, seed=seed)
        labels = {}
        while names := next_sets(study, labels, 10):
            labels |= {name: truth[name] for name in names}
        ordered = replace(record, seed=seed, order=study.candidates)
        result = judge_other_model(ordered, b, labels)
        low, high = result.interval.low * 60, result.interval.high * 60
        hits += low - 1e-9 <= wrong <= high + 1e-9
        widths.append(high - low)
    assert hits >= 0.95 * 120
    assert 0 < np.mean(widths) < 60
    every = judge_other_model(record, b, truth)
    assert (every.interval.low, every.interval.high) == pytest.approx((wrong / 60,) * 2)
    assert every.holds == (wrong <= 30)
    nothing = judge_other_model(record, b, {})
    most = sum(any(score > 0.5 for _, score in own) for own in others)
    assert nothing.interval.low == 0
    assert nothing.interval.high == (most if metric == "false_positive_rate" else 60) / 60
    assert nothing.holds is None


def test_images_where_another_detector_alone_has_a_box_are_a_stratum_of_their_own(tmp_path):
    shows = [{"car"}] * 10
    a = make_table([[("car", 0.9)]] * 6 + [[]] * 4)
    b = make_table([[("car", 0.9)]] * 3 + [[("bicycle", 0.9)]] * 5 + [[]] * 2, "B")
    record, labels = store(
        tmp_path, plan_study(a, parse_question("false_positive_rate <= 60%")), write_truth(a, shows)
    )
    whole = judge_other_model(record, b, labels)
    assert (whole.sets_outside, whole.labels_outside, whole.interval.value) == (2, 2, 0.5)
    assert whole.holds is True
    part = {name: own for name, own in labels.items() if name in record.order}
    some = judge_other_model(record, b, part)
    # of B's eight images with a box six are labelled, three of them wrong; two are open
    assert (some.sets_outside, some.labels_outside) == (2, 0)
    assert (some.interval.low, some.interval.high, some.interval.value) == (0.3, 0.5, None)
    assert some.holds is True


@pytest.mark.parametrize("metric", RATES)
def test_a_difference_of_detectors_is_refused(metric, tmp_path):
    shows, detects = draw_images()
    a, b = make_table(detects), make_table(detects[::-1], "B")
    record, labels = store(
        tmp_path, plan_study(a, parse_question(f"{metric} <= 9%")), write_truth(a, shows)
    )
    with pytest.raises(
        UsageError, match=f"collected for {metric}.*a difference needs labels of pm_k"
    ) as refusal:
        compare_models([LabelledStudy(record, labels)], a, b)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("metric", RATES)
def test_the_planned_cost_is_that_of_all_orders(metric):
    """Labels until decided, of studies in every order of nine images."""
    shows, detects = draw_images(images=9, seed=4)
    table = make_table(detects)
    truth = write_truth(table, shows)
    counts = dict(zip(truth, list_wrong(metric, shows, detects, 0.5), strict=True))
    study = plan_study(table, parse_question(f"{metric} <= 30%"))
    wrong = [name for name in study.candidates if counts[name]]
    right = [name for name in study.candidates if not counts[name]]
    assert wrong
    assert right
    labels = []
    for places in combinations(range(len(study.candidates)), len(wrong)):
        of_kind = {True: iter(wrong), False: iter(right)}
        order = tuple(next(of_kind[at in places]) for at in range(len(study.candidates)))
        ordered, known = replace(study, candidates=order), {}
        while names := next_sets(ordered, known):
            known |= {name: truth[name] for name in names}
        labels.append(len(known))
    (cost,) = estimate_decisions(study, [len(wrong)])
    assert cost.value == len(wrong) / 9
    for number, share in ((cost.median, 0.5), (cost.late, 0.9)):
        assert np.mean(np.array(labels) <= number) >= share
        assert np.mean(np.array(labels) < number) < share
    assert all(0 <= number <= study.countable for number in list_right(study))


def test_a_width_of_a_detector_takes_the_labels_that_are_planned():
    shows = [{"car"}] * 300
    detects = ([[("car", 0.9)]] * 4 + [[("bicycle", 0.9)]]) * 60
    table = make_table(detects)
    study = plan_study(table, parse_question("image_error_rate"), stop=StopRule(target=0.08))
    (cost,) = estimate_widths(study, [60])
    truth = write_truth(table, shows)
    wrong = [name for name in study.candidates if detects[int(name[:3])][0][0] == "bicycle"]
    right = [name for name in study.candidates if name not in set(wrong)]
    # the sample has the share of the pool all along
    order = [name for at in range(60) for name in (*right[4 * at : 4 * at + 4], wrong[at])]
    ordered = replace(study, candidates=tuple(order))
    for number, enough in ((cost.labels - 5, False), (cost.labels + 5, True)):
        assert judge(ordered, {name: truth[name] for name in order[:number]}).enough is enough
    assert cost.labels == cost.uniform


@pytest.mark.parametrize("name", ["map", "map_drop", "mar", "pm_k_map"])
def test_metrics_that_rank_all_detections_are_refused_with_the_reason(name):
    with pytest.raises(UsageError, match=r"it ranks all detections of all images, so no image"):
        parse_question(f"{name} >= 50%")


def test_files_of_a_detector_give_the_same_verdict(tmp_path):
    shows, detects = draw_images(seed=7)
    table = make_table(detects)
    study = plan_study(table, parse_question("image_error_rate(score=0.6) <= 20%"), seed=2)
    truth = write_truth(table, shows)
    labels = {name: truth[name] for name in study.candidates[:20]}
    assert () in labels.values()
    record, again = store(tmp_path, study, labels)
    assert again == labels
    assert judge(plan_again(record, table), again) == judge(study, labels)
    # a detector whose boxes have other scores is another one, and says so
    moved = [[(name, score - 0.5) for name, score in own] for own in detects]
    with pytest.raises(UsageError, match="give the run that it was planned for"):
        plan_again(record, make_table(moved))
    random.Random(0).shuffle(detects)
    with pytest.raises(UsageError, match="give the run that it was planned for"):
        plan_again(record, make_table(detects))


def test_an_image_that_nobody_can_tell_may_count_or_not():
    for metric in ("false_positive_rate", "image_error_rate"):
        assert count_at_least_and_most(metric, ("dog",), ("?",)) == (False, True)
        assert count_at_least_and_most(metric, ("dog",), ()) == (True, True)
        assert count_at_least_and_most(metric, (), ()) == (False, False)
