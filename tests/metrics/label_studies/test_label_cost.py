"""Labels until decided and until narrow, against enumeration and simulation from the definition."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb, perm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import boundaries as list_boundaries
from label_steps import next_sets
from scipy.stats import hypergeom
from test_judge import ONE_CLASS, example

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.label_budget import RequiredShare
from steadyeye.metrics.label_studies.cost import (
    PILOT,
    count_for_width,
    count_scenes,
    estimate_decisions,
    estimate_widths,
    find_boundaries,
    is_answered,
    list_right,
    read_pilot,
    spread_labels,
)
from steadyeye.metrics.label_studies.cost_sentences import (
    ENDS,
    build_decision_table,
    build_width_table,
    say_pilot,
    say_pilot_decision,
    say_pilot_width,
    say_ratio,
    say_scenes,
)
from steadyeye.metrics.label_studies.files import LabelledStudy, StudyRecord
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import say_bound
from steadyeye.metrics.label_studies.study import Premise, StopRule, plan_study


def evidence(needed, consistent, right, labelled):
    """The ratios for and against, exact, from the definition: mean chance of a side ÷ the null's.

    None where a side is certain.
    """
    wrong = labelled - right

    def chance(s):
        return perm(s, right) * perm(consistent - s, wrong)

    above = [chance(s) for s in range(needed, consistent + 1)]
    below = [chance(s) for s in range(needed)]
    if not any(below) or not any(above):
        return None
    to_pass = Fraction(sum(above), len(above) * below[-1]) if below[-1] else None
    to_fail = Fraction(sum(below), len(below) * above[0]) if above[0] else None
    return to_pass, to_fail


def is_decided(needed, consistent, right, labelled):
    ratios = evidence(needed, consistent, right, labelled)
    return ratios is None or any(ratio is None or ratio >= 40 for ratio in ratios)


def enumerate_orders(needed, consistent, right):
    """(consistent + 1,) of all orders of the sets, the share that is decided after 0, 1, … labels,
    and whether any was decided before it was certain."""
    counts, early = np.zeros(consistent + 1), False
    for places in combinations(range(consistent), right):
        right_labels = 0
        for labelled in range(consistent + 1):
            right_labels += labelled - 1 in places
            if is_decided(needed, consistent, right_labels, labelled):
                early |= evidence(needed, consistent, right_labels, labelled) is not None
                counts[labelled] += 1
                break
    return counts / comb(consistent, right), early


@pytest.mark.parametrize(
    ("needed", "consistent", "early"), [(3, 6, False), (6, 13, True), (1, 12, False)]
)
def test_labels_are_spread_as_over_all_orders(needed, consistent, early):
    required = RequiredShare(needed, consistent, consistent + 4)
    spreads = spread_labels(required, range(consistent + 1))
    some = False
    for right, spread in enumerate(spreads):
        expected, before = enumerate_orders(needed, consistent, right)
        assert spread == pytest.approx(expected, abs=1e-12), right
        some |= before
    # of few sets most verdicts are certain; some pools show that the evidence counts too
    assert some == early


@given(st.integers(0, 60), st.integers(0, 20), st.data())
@settings(deadline=None, max_examples=60)
def test_boundaries_are_those_of_the_verdicts(consistent, others, data):
    needed = data.draw(st.integers(0, consistent + others + 1))
    required = RequiredShare(needed, consistent, consistent + others)
    passing, failing = find_boundaries(required)
    for labelled in range(consistent + 1):
        boundaries, expected = (
            (passing[labelled], failing[labelled]),
            list_boundaries(required, labelled),
        )
        for mine, own in zip(boundaries, expected, strict=True):
            if mine != own:  # a ratio of exactly 40 is rounded to either side
                ratios = evidence(needed, consistent, min(max(mine, own), labelled), labelled)
                ratios += evidence(needed, consistent, max(min(mine, own), 0), labelled)
                assert 40 in ratios


def test_large_pools_have_the_boundaries_of_the_verdicts():
    required = RequiredShare(7_000, 8_500, 10_000)
    passing, failing = find_boundaries(required)
    for labelled in (1, 10, 60, 333, 2_000, 6_999, 8_499, 8_500):
        assert (passing[labelled], failing[labelled]) == list_boundaries(required, labelled)


def test_quantiles_are_those_of_simulated_studies():
    needed, consistent, right, tries = 120, 200, 140, 2_000
    required = RequiredShare(needed, consistent, 250)
    done = np.cumsum(spread_labels(required, [right])[0])
    ends = [list_boundaries(required, n) for n in range(consistent + 1)]
    passing, failing = np.array(ends).T
    rng = np.random.default_rng(0)
    answers = rng.permuted(np.tile(np.arange(consistent) < right, (tries, 1)), axis=1)
    right_labels = np.cumsum(np.pad(answers, ((0, 0), (1, 0))), axis=1)
    labels = ((right_labels >= passing) | (right_labels <= failing)).argmax(axis=1)
    for part in (0.1, 0.5, 0.9):
        at = int(np.argmax(done >= part))
        assert abs(np.mean(labels <= at) - done[at]) < 4 * np.sqrt(0.25 / tries)


# as in the measured law of label budgets: 10,000 sets, of those that do not count the anchors of
# 70 % are wrong, and half of these sets are consistently wrong
@pytest.mark.parametrize(
    ("distance", "median"), [(20, 28), (10, 73), (5, 258), (3, 660), (-5, 238), (-10, 40), (-20, 0)]
)
def test_medians_are_those_of_the_budget(distance, median):
    right = 7_000 + distance * 100
    consistent = right + round(0.5 * 0.7 * (10_000 - right))
    done = np.cumsum(spread_labels(RequiredShare(7_000, consistent, 10_000), [right])[0])
    labels = int(np.argmax(done >= 0.5))
    assert labels == pytest.approx(median, rel=0.05, abs=1)
    assert done[-1] == pytest.approx(1)


def test_chances_of_ten_thousand_sets_sum_to_one():
    required = RequiredShare(7_000, 8_500, 10_000)
    done = np.cumsum(spread_labels(required, [5_000, 6_000, 6_500, 6_999, 7_000, 8_000]), axis=1)
    assert done[:, -1] == pytest.approx(1)


def test_a_study_continues_from_the_labels_so_far():
    required = RequiredShare(70, 85, 100)
    from_start = spread_labels(required, [75])
    later = spread_labels(required, [75], (20, 18))
    assert later.sum() == pytest.approx(1)
    assert not later[0, :20].any()
    assert not np.allclose(from_start, later)
    # what is decided needs no label more
    passing, _ = find_boundaries(required)
    assert passing[60] <= 58
    assert spread_labels(required, [75], (60, 58))[0, 60] == 1
    with pytest.raises(UsageError, match="cannot be after 18 of 20 labels"):
        spread_labels(required, [17], (20, 18))


def ends_by_scan(right, labelled, sets):
    """The fewest and most right sets under which neither tail is 2.5 % or less."""
    every = np.arange(sets + 1)
    above = hypergeom.sf(right - 1, sets, every, labelled)
    below = hypergeom.cdf(right, sets, every, labelled)
    inside = np.flatnonzero((above > 0.025) & (below > 0.025))
    return inside[0], inside[-1]


@pytest.mark.parametrize(
    ("right", "sets", "half_width"), [(60, 120, 10), (12, 120, 8), (150, 200, 16), (0, 90, 3)]
)
def test_widths_are_those_of_the_interval(right, sets, half_width):
    labels = count_for_width(right, sets, half_width)
    low, high = ends_by_scan(round(right * labels / sets), labels, sets)
    assert (high - low) / 2 <= half_width
    before = labels - 1
    low, high = ends_by_scan(round(right * before / sets), before, sets)
    assert (high - low) / 2 > half_width


@pytest.mark.slow
def test_a_width_takes_as_many_labels_as_a_study_does():
    sets, right, half_width = 400, 280, 40
    needed, rng, labels = count_for_width(right, sets, half_width), np.random.default_rng(1), []
    for _ in range(11):
        right_labels = np.cumsum(rng.permuted(np.arange(sets) < right))
        n = 40
        while np.ptp(ends_by_scan(right_labels[n - 1], n, sets)) / 2 > half_width:
            n += 1
        labels.append(n)
    assert needed == pytest.approx(np.median(labels), rel=0.1)


def test_no_study_of_a_width_ends_before_ten_labels():
    assert count_for_width(10, 20, 20) == 10
    assert count_for_width(3, 6, 6) == 6
    assert count_for_width(0, 0, 1) == 0


def make_study(question, sets=400, margin=0.8, premise=ONE_CLASS, **how):
    _, plain, truth = example(sets=sets, margin=margin)
    return plain, plan_study(plain, parse_question(question), premise, **how), truth


@pytest.mark.parametrize("question", ["pm_k(k=2) >= 60%", "pm_k(k=2) <= 60%", "drop(k=1) < 5%"])
def test_a_nearer_requirement_costs_more_labels(question):
    _, study, _ = make_study(question)
    right = list_right(study)
    costs = estimate_decisions(study, right)
    assert all(0 <= cost.right <= study.countable for cost in costs)
    for side in (-1, 1):
        near = [cost for cost in costs if cost.distance * side > 0]
        near.sort(key=lambda cost: abs(cost.distance))
        for name in ("median", "late", "fixed"):
            numbers = [getattr(cost, name) for cost in near]
            assert numbers == sorted(numbers, reverse=True), name
    assert all(cost.median <= cost.late <= study.countable for cost in costs)
    table = build_decision_table(study, costs)
    assert len(table.rows) == len(right) > 2
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_distances_that_cannot_be_are_left_out():
    _, study, _ = make_study("pm_k(k=2) >= 95%", margin=0.5)
    assert study.countable < 0.75 * 400
    assert list_right(study) == (0, study.countable)
    assert judge(study, {}).holds is False
    # nothing is to be labelled where too few sets can count
    assert [cost.median for cost in estimate_decisions(study, (0, 99))] == [0, 0]
    _, study, _ = make_study("pm_k(k=2) >= 5%")
    assert list_right(study) == (0, 8, 32, 40, 60, 100)


def test_a_number_that_several_distances_round_to_stands_once():
    _, study, _ = make_study("pm_k(k=2) >= 70%", sets=12, margin=1.0)
    assert study.countable == 12
    # 12 × (0.50, 0.60, 0.65, 0.67, 0.73, 0.75, 0.80, 0.90)
    assert list_right(study) == (6, 7, 8, 9, 10, 11)
    bound = say_bound(study).replace("\u202f", " ")
    assert bound.endswith("is between 0.0 % and 100.0 % before any label is collected")


def test_a_width_costs_no_more_than_of_a_uniform_sample():
    _, study, _ = make_study("pm_k(k=2)", stop=StopRule(target=0.05))
    right = [round(share * study.countable) for share in (0.1, 0.5, 0.9)]
    costs = estimate_widths(study, right)
    assert all(cost.labels <= cost.uniform for cost in costs)
    assert costs[1].labels > costs[2].labels
    table = build_width_table(study, costs)
    assert "±5 percentage points" in table.heading
    assert table.columns[-1] == "fewer"


def record_of(study):
    return StudyRecord(
        study.question,
        study.premise,
        study.seed,
        study.strata_by,
        study.stop,
        study.candidates,
        study.fingerprint,
        study.model,
        study.data,
    )


@pytest.mark.parametrize("labels", [PILOT, 12])
@pytest.mark.parametrize("strata", ["", "confidence"])
def test_a_pilot_says_what_its_interval_says(labels, strata):
    plain, own, truth = make_study("pm_k(k=2)", strata=strata)
    given_labels = {name: truth[name] for name in own.candidates[:labels]}
    _, study, _ = make_study("pm_k(k=2) >= 60%")
    pilot = read_pilot(study, LabelledStudy(record_of(own), given_labels), plain)
    interval = judge(own, given_labels).interval
    assert pilot.labels == labels
    ends = (interval.low, interval.value, interval.high)
    assert pilot.interval == interval
    assert pilot.right == tuple(round(end * 400) for end in ends)
    right = sum(truth[name] == own.answers[name] for name in given_labels)
    assert pilot.start == ((0, 0) if strata else (labels, right))
    costs = estimate_decisions(study, pilot.right, pilot.start)
    assert all(cost.median >= pilot.start[0] for cost in costs)
    text = say_pilot_decision(study, pilot, costs)
    assert ("The pilot has 12 labels; 25 or more" in text) == (labels < PILOT)
    assert ("includes what is required" in text) == (pilot.right[0] < 240 <= pilot.right[2])
    table = build_decision_table(study, costs, ENDS)
    assert [row[-1] for row in table.rows] == list(ENDS)
    narrow = replace(study, stop=StopRule(target=0.05))
    widths = estimate_widths(narrow, pilot.right)
    assert "±5 percentage points take about" in say_pilot_width(narrow, pilot, widths)


def test_a_pilot_may_decide_at_once():
    plain, study, truth = make_study("pm_k(k=2) >= 20%")
    labels = {name: truth[name] for name in study.candidates[:PILOT]}
    assert judge(study, labels).holds
    pilot = read_pilot(study, LabelledStudy(record_of(study), labels), plain)
    assert pilot.labels < PILOT
    costs = estimate_decisions(study, pilot.right, pilot.start)
    assert is_answered(pilot, costs)
    text = say_pilot_decision(study, pilot, costs)
    assert text == "The labels decide pm_k(k=2) >= 20%: it takes 0 more labels."
    _, harder, _ = make_study("pm_k(k=2) >= 60%")
    assert not is_answered(pilot, estimate_decisions(harder, pilot.right, pilot.start))


def test_a_pilot_of_another_kind_is_refused():
    plain, own, truth = make_study("pm_k(k=1)")
    labels = {name: truth[name] for name in own.candidates[:PILOT]}
    _, study, _ = make_study("pm_k(k=2) >= 60%")
    with pytest.raises(UsageError, match="given for pm_k"):
        read_pilot(study, LabelledStudy(record_of(own), labels), plain)
    with pytest.raises(UsageError, match="--premise scene-class, not constant-class"):
        read_pilot(
            study,
            LabelledStudy(replace(record_of(study), premise=Premise("scene-class")), labels),
            plain,
        )
    with pytest.raises(UsageError, match="estimate nothing; label 25"):
        read_pilot(study, LabelledStudy(record_of(study), {}), plain)
    unknown = dict.fromkeys(study.candidates[:5], ())
    with pytest.raises(UsageError, match="5 of them without a class, estimate nothing"):
        read_pilot(study, LabelledStudy(record_of(study), unknown), plain)
    some = {**labels, **unknown}
    pilot = read_pilot(study, LabelledStudy(record_of(study), some), plain)
    assert pilot.unknown == 5
    assert "nobody could label 5" in say_pilot(study, pilot)


def test_the_cost_of_scenes_is_the_number_of_scenes_to_label():
    """Two sets a scene: as many labels as it takes at least, and for a width exactly."""
    scene_class = Premise("scene-class")
    _, study, truth = make_study("pm_k(k=2) >= 60%", premise=scene_class)
    cost = count_scenes(study, {})
    sizes = sorted(map(len, study.scenes.values()), reverse=True)
    to_fail = study.countable - 240 + 1
    least = next(n for n in range(len(sizes) + 1) if sum(sizes[:n]) >= min(240, to_fail))
    assert (cost.least, cost.most) == (least, len(sizes))
    assert f"at least {least} labels and at most {len(sizes)}" in say_scenes(study, cost)
    _, narrow, truth = make_study("pm_k(k=2)", premise=scene_class, stop=StopRule(target=0.05))
    cost, labels = count_scenes(narrow, {}), {}
    while names := next_sets(narrow, labels):
        # whatever the labels are, they take as many
        labels[names[0]] = truth[names[0]]
    assert len(labels) == cost.least
    assert f"take {cost.least} labels" in say_scenes(narrow, cost)


def test_ratios_promise_nothing_near_to_one():
    assert say_ratio(28, 40) == "1×"
    assert say_ratio(73, 200) == "2.7×"
    assert say_ratio(50, 40) == "0.8×"
