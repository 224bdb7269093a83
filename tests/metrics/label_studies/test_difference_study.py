"""A study of the difference of two models: its questions, its end, and its result."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_label_reuse import ONE_CLASS, make_models, plan, store

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.label_differences import DrawnSets, bound_sum
from steadyeye.metrics.label_studies.difference_study import plan_difference
from steadyeye.metrics.label_studies.files import LabelledStudy, plan_again, write_study
from steadyeye.metrics.label_studies.judge_difference import compare_as_planned, judge_difference
from steadyeye.metrics.label_studies.model_difference import compare_models, say_difference
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, StopRule, rank_sets


def plan_two(a, b, text="pm_k(k=2)", premise=ONE_CLASS, **how):
    return plan_difference(a, b, parse_question(text), premise, **how)


def ask(study, truth):
    """The labels that people are asked for, one set after the other."""
    labels = {}
    for name in study.candidates:
        if judge_difference(study, labels).enough:
            break
        labels[name] = truth[name]
    return labels


def count_worth(study, a, b, labels):
    """What each labelled set is worth and its kind, from the answers of the two models."""
    answers = [plan(model).answers for model in (a, b)]
    kinds = [2 if all(n in own for own in answers) else int(n in answers[1]) for n in labels]
    values = [
        sum(sign * (own.get(n) == labels[n]) for sign, own in zip((1, -1), answers, strict=True))
        for n in labels
    ]
    every = [2 if all(n in own for own in answers) else int(n in answers[1]) for n in study.sets]
    differing = [n in study.candidates for n in study.sets]
    sizes = tuple(
        sum(d and k == kind for k, d in zip(every, differing, strict=True)) for kind in (0, 1, 2)
    )
    return DrawnSets(tuple(values), tuple(kinds), sizes)


@given(st.integers(0, 10_000), st.integers(0, 60))
@settings(max_examples=20, deadline=None)
def test_a_difference_study_asks_only_about_sets_in_which_models_can_differ(seed, number):
    a, b, truth, (right_a, right_b) = make_models(seed=seed)
    study = plan_two(a, b, seed=seed, stop=StopRule(target=0.01))
    answers = [plan(model).answers for model in (a, b)]
    differing = {n for n in study.sets if answers[0].get(n) != answers[1].get(n)}
    assert list(study.candidates) == rank_sets(differing, seed)
    labels = {name: truth[name] for name in study.candidates[:number]}
    result = judge_difference(study, labels)
    if result.counts.labelled == len(labels):
        draws = count_worth(study, a, b, labels)
        low, high = bound_sum(draws, draws)
        assert (result.interval.low * 40, result.interval.high * 40) == pytest.approx((low, high))
        assert result.counts.better == draws.values.count(1)
        assert result.counts.worse == draws.values.count(-1)
    every = judge_difference(study, {n: truth[n] for n in study.candidates})
    exact = (right_a - right_b) / 40
    assert (every.interval.low, every.interval.value, every.interval.high) == (exact,) * 3
    assert every.enough


def test_a_difference_study_stops_at_a_clear_difference():
    a, b, truth, _ = make_models(sets=200, seed=2, margins=(0.9, 0.45))
    study = plan_two(a, b)
    labels = ask(study, truth)
    result = judge_difference(study, labels)
    assert result.better == "A"
    assert result.interval.low > 0
    assert 5 < result.labels == len(labels) < len(study.candidates)
    before = dict(list(labels.items())[:-1])
    assert not judge_difference(study, before).enough
    # in whichever order they came, and whatever is labelled later
    names = list(labels)
    random.Random(0).shuffle(names)
    assert judge_difference(study, {name: truth[name] for name in names}) == result
    later = labels | {name: truth[name] for name in study.candidates[len(labels) + 1 :]}
    more = judge_difference(study, later)
    assert (more.difference, more.counts.later) == (result.difference, len(later) - len(labels))
    turned = judge_difference(plan_two(b, a), labels)
    assert turned.better == "A"
    assert turned.interval.high == -result.interval.low


def test_a_target_and_a_budget():
    a, b, truth, _ = make_models(sets=200, seed=2, margins=(0.9, 0.45))
    wide = plan_two(a, b, stop=StopRule(target=0.12))
    labels = ask(wide, truth)
    ends = judge_difference(wide, labels).interval
    assert (ends.high - ends.low) / 2 <= 0.12
    ends = judge_difference(wide, dict(list(labels.items())[:-1])).interval
    assert (ends.high - ends.low) / 2 > 0.12
    few = plan_two(a, b, stop=StopRule(budget=4))
    assert len(ask(few, truth)) == 4
    assert judge_difference(few, {n: truth[n] for n in few.candidates[:9]}).labels == 4


def test_sets_that_nobody_can_label_widen_both_ends():
    a, b, truth, _ = make_models(sets=60, seed=1)
    study = plan_two(a, b, stop=StopRule(target=0.001))
    labels = {name: truth[name] for name in study.candidates}
    sure = judge_difference(study, labels).interval
    either = next(n for n in study.candidates if all(n in pool for pool in study.shared.pools))
    first = next(n for n in study.shared.pools[0] if n not in study.shared.pools[1])
    for name, width in ((either, 2), (first, 1)):
        result = judge_difference(study, labels | {name: ()})
        assert round((result.interval.high - result.interval.low) * 60) == width
        assert result.interval.low <= sure.low <= result.interval.high
        assert result.counts.unknown == 1
    answers = [own[either] for own in study.shared.answers]
    both = judge_difference(study, labels | {either: (*answers[0], *answers[1])})
    assert both.interval.low == both.interval.high
    with pytest.raises(UsageError, match="does not have the sets of 1 of 1 label,"):
        judge_difference(study, {"stranger": ("dog",)})


def test_the_export_gives_the_same_words_for_either_order_of_runs(tmp_path):
    a, b, truth, _ = make_models(sets=120, seed=2, margins=(0.9, 0.45))
    study = plan_two(a, b)
    labels = ask(study, truth)
    record, read = store(tmp_path / "labels", study, labels)
    assert (record.model, record.against) == ("A", "B")
    exported = LabelledStudy(record, read)
    difference = judge_difference(study, labels).difference
    assert compare_as_planned(exported, a, b) == difference
    turned = compare_as_planned(exported, b, a)
    assert turned == judge_difference(plan_two(b, a), labels).difference
    assert say_difference(turned).startswith("A has a better pm_k(k=2) than B on these 120 sets")
    other = replace(b, scores=b.scores[:, ::-1].copy(), model="C")
    assert compare_as_planned(exported, a, other) is None
    # the labels serve other models as well, with a number that may depend on what they show
    reused = compare_models([exported], a, other)
    assert "at every look" in reused.method
    budget, _ = store(tmp_path / "few", plan_two(a, b, stop=StopRule(3)), {})
    some = {n: truth[n] for n in budget.order[:3]}
    assert "at every look" in compare_models([LabelledStudy(budget, some)], a, other).method
    with pytest.raises(UsageError, match="the study compares A and B; give both runs"):
        plan_again(record, a)
    with pytest.raises(UsageError, match=r"not for pm_k\(k=1\)"):
        compare_as_planned(exported, a, b, "pm_k(k=1)")
    assert write_study(study) == write_study(plan_two(a, b))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"text": "drop(k=2)"}, "the difference in drop"),
        ({"text": "pm_k(k=2) >= 50%"}, r"has a number.*give 'pm_k\(k=2\)' alone"),
        ({"premise": None}, "state it with --premise constant-class"),
        ({"premise": Premise("scene-class")}, "does not go with two runs"),
    ],
)
def test_questions_for_one_run_are_refused_for_two(how, message):
    a, b, _, _ = make_models()
    with pytest.raises(UsageError, match=message):
        plan_two(a, b, **how)


def test_runs_on_other_data_are_refused():
    a, b, _, _ = make_models()
    with pytest.raises(UsageError, match="give two runs on the same data"):
        plan_two(a, replace(b, fingerprint="another"))


def test_models_of_one_name_are_refused():
    a, b, _, _ = make_models()
    with pytest.raises(UsageError, match="both runs have a model named A"):
        plan_two(a, replace(b, model="A"))


def test_models_with_equal_predictions_need_no_label():
    a, _, _, _ = make_models()
    result = judge_difference(plan_two(a, replace(a, model="C")), {})
    assert result.enough
    assert "A and C have the same pm_k(k=2) on these 40 sets" in say_difference(result.difference)
