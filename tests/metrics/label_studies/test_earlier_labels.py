"""Labels of earlier studies in a new one: a fresh study whose first labels are known."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from label_steps import next_sets
from labelled_models import make_models, make_models_of_scenes

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.label_budget import count_ends
from steadyeye.metrics.label_studies.earlier_labels import (
    find_seed,
    leave_out,
    say_left,
    serve_study,
)
from steadyeye.metrics.label_studies.files import (
    LabelledStudy,
    find_study,
    read_labelled_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import judge_other_model
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import say_earlier, say_result
from steadyeye.metrics.label_studies.study import Premise, StopRule, parse_premise, plan_study

ONE_CLASS = Premise("constant-class")
STUDIES = 120


def plan(model, text, premise=ONE_CLASS, **how):
    return plan_study(model, parse_question(text), premise, **how)


def ask(study, truth, labels=()):
    """The labels with which a study ends, from some that are there already; who was asked."""
    labels = dict(labels)
    requested = []
    while names := next_sets(study, labels):
        labels |= {name: truth[name] for name in names}
        requested += names
    return labels, requested


@pytest.fixture(scope="module")
def collect(tmp_path_factory):
    """A study with its labels, as they are read from an exported folder."""
    folder = tmp_path_factory.mktemp("labels")

    def write(study, labels):
        (folder / "labels.csv").write_bytes(write_labels(labels))
        (folder / "study.json").write_bytes(write_study(study))
        return read_labelled_study(folder)

    return write


RULES = [
    ("pm_k(k=2) >= 35%", None),
    ("pm_k(k=2) >= 35%", StopRule(budget=9)),
    ("pm_k(k=2)", StopRule(budget=14)),
    ("pm_k(k=2)", StopRule(target=0.13)),
    ("drop(k=2) <= 40%", None),
]


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from(RULES), st.sampled_from(RULES))
@settings(max_examples=15)
def test_the_study_is_a_fresh_one_whose_first_labels_are_known(collect, seed, first, second):
    a, b, truth, _ = make_models(sets=50, seed=seed % 20)
    before, _ = ask(plan(a, first[0], seed=seed, stop=first[1]), truth)
    earlier = collect(plan(a, first[0], seed=seed, stop=first[1]), before)
    fresh = plan(b, second[0], seed=seed, stop=second[1])
    served = serve_study(fresh, b, [earlier])
    assert set(served.labels) == set(fresh.candidates) & set(before)
    assert served.study.earlier == dict.fromkeys(served.labels, "A")
    labels, requested = ask(served.study, truth, served.labels)
    of_fresh, asked_fresh = ask(fresh, truth)
    assert requested == [name for name in asked_fresh if name not in before]
    result, of_new = judge(served.study, labels), judge(fresh, of_fresh)
    counts = replace(result.counts, later=of_new.counts.later)
    assert replace(result, counts=counts) == of_new
    # the labels that are exported, and what was fixed before, give it again
    again = collect(served.study, labels)
    study = find_study(again.record, b)
    assert judge(study, again.labels) == result
    assert say_result(study, judge(study, again.labels)) == say_result(served.study, result)
    # a third model is told for which one each label was collected
    third = serve_study(plan(b, second[0], seed=seed), b, [again])
    assert {third.study.earlier[name] for name in served.labels} <= {"A"}
    assert {third.study.earlier[name] for name in requested} <= {"B"}


def is_same(result, fresh):
    """Whether two results differ at most in the labels that are not used."""
    return replace(result, counts=replace(result.counts, later=fresh.counts.later)) == fresh


CHECKED = [
    ("pm_k(k=2) >= 35%", StopRule(), 5),
    ("pm_k(k=2) >= 70%", StopRule(), 30),
    ("pm_k(k=2)", StopRule(budget=14), 6),
    ("pm_k(k=2)", StopRule(target=0.3), 20),
    ("drop(k=2) <= 40%", StopRule(budget=20), 9),
    ("pm_k(k=2) >= 35%", StopRule(), 0),
]


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from(CHECKED), st.sampled_from(CHECKED))
@example(1, CHECKED[0], CHECKED[0])
@settings(max_examples=8)
def test_labels_of_a_checked_study_make_a_fresh_one_wherever_it_was_stopped(
    collect, seed, first, second
):
    """Every number of answers of the first study, of sets whose class changes too: small pools."""
    a, b, truth, _ = make_models(sets=24, seed=seed % 20)
    unclear = np.random.default_rng(seed).random(24) < 0.2
    answers = {n: () if u else c for (n, c), u in zip(truth.items(), unclear, strict=True)}

    def plan_checked(model, how):
        premise = parse_premise("constant-class", how[2])
        return plan_study(model, parse_question(how[0]), premise, seed=seed, stop=how[1])

    old, fresh = plan_checked(a, first), plan_checked(b, second)
    of_fresh, asked_fresh = ask(fresh, answers)
    expected = judge(fresh, of_fresh)
    record = collect(old, {}).record
    for number in range(len(old.order) + 1):
        known = {name: answers[name] for name in old.order[:number]}
        served = serve_study(fresh, b, [LabelledStudy(record, known)])
        assert set(served.labels) == set(fresh.order) & set(known)
        labels, requested = ask(served.study, answers, served.labels)
        assert requested == [name for name in asked_fresh if name not in known]
        if set(fresh.order) <= set(labels):
            # nothing is left to ask, and all that is known counts
            assert is_same(judge(served.study, labels), judge(fresh, labels))
        else:
            assert is_same(judge(served.study, labels), expected)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [StopRule(budget=30), StopRule(target=0.2)])
def test_after_a_checked_study_that_stopped_the_truth_is_held(collect, stop):
    """All sets that break the premise are right for the second model."""
    a, b, truth, (_, right) = make_models(sets=60, seed=3)
    steady = set(plan(b, "pm_k(k=2)").candidates)
    broken = [name for name in truth if name not in steady][:6]
    answers = truth | dict.fromkeys(broken, ())
    premise = parse_premise("constant-class", 20)
    covered = interim = 0
    for seed in range(STUDIES // 2):
        old = plan(a, "pm_k(k=2) >= 35%", premise, seed=seed)
        labels, _ = ask(old, answers)
        record = replace(collect(old, {}).record, seed=seed)
        fresh = plan(b, "pm_k(k=2)", premise, seed=seed, stop=stop)
        served = serve_study(fresh, b, [LabelledStudy(record, labels)])
        share = judge(served.study, served.labels).interval
        interim += holds_truth(share, right + len(broken))
        labels, _ = ask(served.study, answers, served.labels)
        share = judge(served.study, labels).interval
        covered += holds_truth(share, right + len(broken))
    assert covered >= 0.95 * STUDIES // 2
    assert interim >= 0.95 * STUDIES // 2


def test_checks_of_the_premise_from_another_study_are_reported(collect):
    a, b, truth, _ = make_models(sets=60, seed=1)
    premise = parse_premise("constant-class", 8)
    old = plan(a, "pm_k(k=2)", premise)
    fresh = plan(b, "pm_k(k=2)", premise, stop=StopRule(budget=30))
    served = serve_study(fresh, b, [collect(old, {name: truth[name] for name in old.order})])
    labels, _ = ask(served.study, truth, served.labels)
    result = judge(served.study, labels)
    shared = [name for name in fresh.checks if name in old.order]
    assert shared
    text = say_result(served.study, result)
    assert f"and 8 checks, {len(shared)} of them collected for A" in text
    assert say_left(served).endswith("cannot count and are not among the checks")
    with pytest.raises(UsageError, match="give them to `steadyeye label --labels`"):
        judge_other_model(collect(old, {}).record, b, {})


def holds_truth(share, right):
    return share.low * 60 - 1e-9 <= right <= share.high * 60 + 1e-9


def stop_first(collect, model, truth, orders):
    """Of each order of the first model's sets, the study that stops as it is decided."""
    planned = collect(plan(model, "pm_k(k=2) >= 35%"), {}).record
    for seed in range(orders):
        study = plan(model, "pm_k(k=2) >= 35%", seed=seed)
        labels, _ = ask(study, truth)
        yield LabelledStudy(replace(planned, seed=seed, order=study.candidates), labels)


@pytest.mark.slow
def test_few_decisions_are_wrong_after_a_study_that_stopped(collect):
    """As many sets are required as are right, and one more."""
    a, b, truth, (_, right) = make_models(sets=60, seed=3)
    wrong, covered, orders = {right: 0, right + 1: 0}, 0, 2 * STUDIES
    for earlier in stop_first(collect, a, truth, orders):
        study = plan(b, "pm_k(k=2) >= 50%", seed=earlier.record.seed)
        for needed in wrong:
            question = replace(study.question, share=Fraction(needed, 60))
            served = serve_study(replace(study, question=question), b, [earlier])
            labels, _ = ask(served.study, truth, served.labels)
            result = judge(served.study, labels)
            wrong[needed] += result.holds != (right >= needed)
            covered += holds_truth(result.interval, right)
    assert max(wrong.values()) <= 0.025 * orders
    assert covered >= 0.95 * 2 * orders


@pytest.mark.slow
@pytest.mark.parametrize("stop", [StopRule(budget=15), StopRule(target=0.12)])
def test_the_interval_holds_the_truth_after_a_study_that_stopped(collect, stop):
    a, b, truth, (_, right) = make_models(sets=60, seed=3)
    covered = interim = 0
    for earlier in stop_first(collect, a, truth, STUDIES):
        study = plan(b, "pm_k(k=2)", seed=earlier.record.seed, stop=stop)
        served = serve_study(study, b, [earlier])
        interim += holds_truth(judge(served.study, served.labels).interval, right)
        labels, _ = ask(served.study, truth, served.labels)
        covered += holds_truth(judge(served.study, labels).interval, right)
    assert covered >= 0.95 * STUDIES
    assert interim >= 0.95 * STUDIES


@pytest.mark.slow
def test_the_interval_of_an_open_study_holds_wherever_the_first_one_stopped(collect):
    """It stops where the interval of a fixed number of labels is wrong: that one would not do."""
    model, _, truth, (right, _) = make_models(sets=60, seed=3)
    record, copy = collect(plan(model, "pm_k(k=2)"), {}).record, replace(model, model="C")
    find_ends = cache(count_ends)
    covered = fixed = 0
    for seed in range(STUDIES):
        study = plan(model, "pm_k(k=2)", seed=seed)
        correct = np.cumsum([truth[n] == study.answers[n] for n in study.candidates]).tolist()
        sizes = range(1, len(correct) + 1)
        ends = [find_ends(correct[n - 1], n, len(correct)) for n in sizes]
        misses = [n for n, (low, high) in zip(sizes, ends, strict=True) if not low <= right <= high]
        labels = {name: truth[name] for name in study.candidates[: (*misses, 12)[0]]}
        earlier = LabelledStudy(replace(record, seed=seed, order=study.candidates), labels)
        served = serve_study(plan(copy, "pm_k(k=2)", seed=seed), copy, [earlier])
        covered += holds_truth(judge(served.study, labels).interval, right)
        fixed += not misses
    assert covered >= 0.95 * STUDIES
    assert fixed < 0.9 * STUDIES


def test_the_labels_of_several_studies_serve(collect):
    a, b, truth, _ = make_models(sets=60, seed=1)
    studies = []
    for model, number in ((a, 9), (b, 4)):
        study = plan(model, "pm_k(k=2)")
        labels = {name: truth[name] for name in study.candidates[:number]}
        studies.append(collect(study, labels))
    first, second = (set(study.labels) for study in studies)
    served = serve_study(plan(b, "pm_k(k=2) >= 99%"), b, studies)
    of_b = set(served.study.candidates)
    assert set(served.labels) == (first | second) & of_b
    assert set(served.study.earlier.values()) == {"A", "B"}
    assert {n for n, model in served.study.earlier.items() if model == "A"} == first & of_b
    left = len(first - of_b)
    assert left
    assert say_left(served).startswith(f"{left} labels of {len(first | second)} are not needed")
    count = len(first & of_b)
    assert say_earlier(served.study).startswith(
        f"{count} labels collected for A and {len(served.labels) - count} label"
    )
    name = next(iter(served.labels))
    rest = leave_out(served, {name: ("gold",)})
    assert set(rest.labels) == set(rest.study.earlier) == set(served.labels) - {name}
    other = replace(studies[1], labels={**studies[1].labels, name: ("nothing",)})
    with pytest.raises(UsageError, match=f"'{name}' has different classes in the two studies"):
        serve_study(plan(b, "pm_k(k=2)"), b, [studies[0], other])


def test_the_labels_of_pm_k_serve_drop(collect):
    a, b, truth, _ = make_models(sets=60, seed=1)
    study = plan(a, "pm_k(k=2)")
    earlier = collect(study, truth)
    served = serve_study(plan(b, "drop(k=2)"), b, [earlier])
    assert set(served.labels) == set(served.study.candidates)
    result = judge(served.study, served.labels)
    steady = set(plan(b, "pm_k(k=2)").candidates)
    right = sum(truth[n] == served.study.answers[n] for n in truth if n not in steady)
    assert result.interval.low == result.interval.value == result.interval.high == right / 60


def test_one_label_a_scene_serves_another_model(collect):
    a, b, truth, scene = make_models_of_scenes()
    by_scene = Premise("scene-class")
    study = plan(a, "pm_k(k=2)", by_scene)
    earlier = collect(study, {name: truth[name] for name in study.candidates})
    fresh = plan(b, "pm_k(k=2)", by_scene)
    served = serve_study(fresh, b, [earlier])
    alike = [n for n in fresh.candidates if scene[n] in {scene[m] for m in study.candidates}]
    assert list(served.labels) == alike
    assert set(served.labels) - set(earlier.labels)
    result = judge(served.study, served.labels)
    assert result.interval == judge(fresh, {name: truth[name] for name in alike}).interval
    assert f"{len(alike)} of them collected for A" in say_result(served.study, result)


def test_labels_that_do_not_say_what_is_needed_are_refused(collect):
    a, b, truth, _ = make_models()
    earlier = collect(plan(a, "pm_k(k=2)"), truth)
    fresh = plan(b, "pm_k(k=2)")
    scenes = plan(b, "pm_k(k=2)", Premise("scene-class"))
    record = earlier.record
    refused = [
        (plan(b, "pm_k(k=1)"), record, r"for pm_k\(k=2\), not for pm_k\(k=1\); ask for pm_k\(k=2"),
        (plan(b, "accuracy", None), record, r"not for accuracy; ask for pm_k\(k=2\) or drop"),
        (scenes, record, "collected with --premise constant-class, not scene-class"),
        (plan(b, "pm_k(k=2)", strata="class"), record, "do not go with --strata class"),
        (fresh, replace(record, strata="class"), "in an order by class of A"),
        (fresh, replace(record, samples=("another", "")), "whose samples are not those of B"),
    ]
    for study, other, message in refused:
        with pytest.raises(UsageError, match=message):
            serve_study(study, b, [replace(earlier, record=other)])
    again = replace(earlier, record=replace(record, seed=3))
    assert find_seed([again]) == find_seed([again], 3) == 3
    with pytest.raises(UsageError, match="with --seed 3, not 0; leave --seed out"):
        find_seed([again], 0)
    with pytest.raises(UsageError, match="of --seed 0 and 3; give labels of one order"):
        find_seed([earlier, again])


def test_a_study_with_earlier_labels_serves_a_third_model_at_every_look(collect):
    """Its budget is reached, and which labels are there depends on what others showed."""
    a, b, truth, _ = make_models(sets=60, seed=1)
    stop = StopRule(budget=12)
    fresh = plan(b, "pm_k(k=2)", stop=stop)
    earlier = collect(plan(a, "pm_k(k=2)"), {n: truth[n] for n in fresh.candidates[:12]})
    served = serve_study(fresh, b, [earlier])
    again = collect(served.study, served.labels)
    assert len(again.labels) == 12
    assert "at every look" in judge_other_model(again.record, a, again.labels).interval.method
