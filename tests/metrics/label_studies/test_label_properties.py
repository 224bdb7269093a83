"""A property of every verdict: a right label instead of a wrong one never lowers it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_judge import ONE_CLASS, example
from test_label_reuse import make_models, store

from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import judge_other_model
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import StopRule, plan_study

ORDER = (False, None, True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@given(
    st.integers(0, 1000),
    st.integers(1, 39),
    st.integers(0, 40),
    st.sampled_from([None, StopRule(budget=12)]),
    st.data(),
)
@settings(max_examples=40)
def test_a_right_label_in_place_of_a_wrong_one(seed, fortieths, number, stop, data):
    """Towards holding where many are required, towards failing where few are; also at the end."""
    _, plain, truth = example(seed=seed)
    for relation, wants in ((">=", 1), ("<=", -1)):
        question = parse_question(f"pm_k(k=2) {relation} {fortieths / 40}")
        study = plan_study(plain, question, ONE_CLASS, seed=seed, stop=stop)
        labels = {name: truth[name] for name in study.candidates[:number]}
        if not labels:
            continue
        name = data.draw(st.sampled_from(sorted(labels)))
        better, worse = (
            judge(study, labels | {name: own}) for own in (study.answers[name], ("neither",))
        )
        places = [ORDER.index(result.holds) for result in (worse, better)]
        assert wants * places[0] <= wants * places[1]


@given(st.integers(0, 1000), st.integers(1, 39), st.integers(0, 40), st.data())
@settings(max_examples=30)
def test_a_right_label_never_speaks_against_another_model(folder, seed, fortieths, number, data):
    """One more right label, and one in place of a wrong one, of the labels of another model."""
    a, b, truth, _ = make_models(seed=seed)
    study = plan_study(a, parse_question(f"pm_k(k=2) >= {fortieths / 40}"), ONE_CLASS, seed=seed)
    answers = plan_study(b, study.question, ONE_CLASS).answers
    labels = {name: truth[name] for name in study.candidates[:number]}
    record, _ = store(folder, study, labels)
    before = judge_other_model(record, b, labels)
    shared = [name for name in study.candidates if name in answers]
    rest = [name for name in study.candidates[number : number + 1] if name in answers]
    if rest:
        more = judge_other_model(record, b, labels | {rest[0]: answers[rest[0]]})
        assert ORDER.index(more.holds) >= ORDER.index(before.holds)
        assert more.interval.low >= before.interval.low
    known = [name for name in shared if name in labels]
    if known:
        name = data.draw(st.sampled_from(known))
        better, worse = (
            judge_other_model(record, b, labels | {name: own})
            for own in (answers[name], ("neither",))
        )
        assert ORDER.index(better.holds) >= ORDER.index(worse.holds)
        assert better.interval.low >= worse.interval.low
        assert better.interval.high >= worse.interval.high


def test_only_the_last_label_may_take_a_decision_back():
    """The first labels decide it, which may err rarely; all of them count exactly.

    So the last one, be it right, can bring a wrong decision to an end.
    """
    _, plain, _ = example(sets=60, margin=1.0)
    study = plan_study(plain, parse_question("pm_k(k=2) >= 80%"), ONE_CLASS)
    n, needed = len(study.candidates), study.question.count_needed(60)
    assert needed < n == 60
    first = 35
    labels = {
        name: study.answers[name] if place < first else ("neither",)
        for place, name in enumerate(study.candidates[:-1])
    }
    decided = judge(study, labels)
    assert decided.holds is True
    assert decided.labels <= first
    last = study.candidates[-1]
    whole = judge(study, labels | {last: study.answers[last]})
    assert whole.holds is False
    assert whole.counts.right == first + 1 < needed
    # a study that ends there has asked for none of these labels
    assert judge(replace(study, stop=StopRule(budget=n)), labels).counts.labelled <= first
