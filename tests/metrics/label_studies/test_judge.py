"""A study from its question to its verdict, against the metric with all frames labelled."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import next_sets

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.metrics.accuracy import accuracy
from steadyeye.metrics.drop import drop
from steadyeye.metrics.label_studies.files import (
    plan_again,
    read_labels,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import say_bound, say_result
from steadyeye.metrics.label_studies.study import Premise, StopRule, plan_study
from steadyeye.metrics.pm_k import pm_k

ONE_CLASS = Premise("constant-class")
ALL = {"pm_k": pm_k, "drop": drop}


def without_truth(predictions):
    columns = tuple(name for name in predictions.columns if name != "truth")
    return replace(predictions, truth=np.zeros_like(predictions.truth), columns=columns)


def example(sets=40, seed=0, margin=0.7):
    """Predictions without labels, and the label of each set."""
    labelled = testing.example_predictions(sets, seed, margin)
    names = [labelled.classes[label] for label in labelled.truth.argmax(axis=1)]
    truth = {group: (name,) for group, name in zip(labelled.groups, names, strict=True)}
    return labelled, without_truth(labelled), truth


@given(
    st.integers(0, 10_000),
    st.sampled_from(["pm_k(k=2)", "pm_k(k=1)", "drop(k=2)", "drop(k=1)", "accuracy"]),
    st.sampled_from([">=", ">", "<=", "<"]),
    st.integers(0, 40),
)
@settings(deadline=None, max_examples=40)
def test_the_result_with_all_labels_is_the_metric(seed, metric, relation, fortieths):
    """Whatever the labels, the order and the number: as the metric on every frame."""
    labelled, plain, truth = example(seed=seed)
    question = parse_question(f"{metric} {relation} {fortieths / 40}")
    study = plan_study(plain, question, ONE_CLASS, seed=seed)
    k = question.k
    value = accuracy(labelled).value if k is None else ALL[question.metric](labelled, k).value
    exact = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}[relation]
    labels = {name: truth[name] for name in study.candidates}
    result = judge(study, labels)
    assert result.holds == exact(round(value * 40), fortieths)
    assert result.interval.low * 40 <= round(value * 40) <= result.interval.high * 40 + 1e-9
    everything = judge(plan_study(plain, parse_question(metric), ONE_CLASS), labels)
    ends = (everything.interval.low, everything.interval.value, everything.interval.high)
    assert ends == pytest.approx((value, value, value))
    # asked one by one it ends, with the same verdict or an earlier one that may err rarely
    answers = {}
    while names := next_sets(study, answers, 3):
        answers |= {name: truth[name] for name in names}
    assert judge(study, answers).holds is not None
    assert set(answers) <= set(study.candidates)


@given(st.integers(0, 1000), st.randoms())
@settings(deadline=None, max_examples=20)
def test_neither_the_order_of_labels_nor_what_nobody_was_asked_for_matters(seed, random):
    _, plain, truth = example(seed=seed)
    study = plan_study(plain, parse_question("pm_k(k=2) >= 50%"), ONE_CLASS, seed=seed)
    names = list(study.candidates[: random.randint(0, len(study.candidates))])
    first = judge(study, {name: truth[name] for name in names})
    random.shuffle(names)
    # an inconsistent set and one far down the order change nothing but how many are not used
    others = [name for name in study.sets if name not in study.candidates][:2]
    later = [name for name in study.candidates if name not in names][1:2]
    again = judge(study, {name: truth[name] for name in (*later, *names, *others)})
    assert replace(again.counts, later=0) == replace(first.counts, later=0)
    assert again.counts.later == first.counts.later + len(later)
    assert (again.interval, again.holds, again.more) == (first.interval, first.holds, first.more)
    # one more right label never moves it towards failing
    place = len(names)
    if place < len(study.candidates):
        name = study.candidates[place]
        grown = {known: truth[known] for known in names}
        better = judge(study, {**grown, name: study.answers[name]})
        worse = judge(study, {**grown, name: ("neither",)})
        nobody = judge(study, {**grown, name: ()})
        order = (False, None, True)
        assert order.index(better.holds) >= order.index(first.holds) >= order.index(worse.holds)
        assert better.interval.low >= first.interval.low
        assert worse.interval.high <= first.interval.high
        # what nobody could tell is wrong for the one end and right for the other
        assert nobody.interval.low == worse.interval.low
        assert nobody.interval.high == better.interval.high


@given(st.integers(0, 10_000), st.integers(1, 39), st.booleans())
@settings(deadline=None, max_examples=30)
def test_a_decision_stays_until_all_are_labelled(seed, fortieths, unsure):
    """Labels that were on their way as it was decided change nothing, and are said."""
    labelled, plain, truth = example(seed=seed)
    study = plan_study(plain, parse_question(f"pm_k(k=2) >= {fortieths / 40}"), ONE_CLASS)
    labels, decided = {}, None
    for number, name in enumerate(study.candidates):
        labels[name] = () if unsure and number % 7 == 3 else truth[name]
        result = judge(study, labels)
        assert result.labels + result.counts.later == len(labels)
        if len(labels) == len(study.candidates):
            break
        if decided is not None:
            assert replace(result.counts, later=0) == replace(decided.counts, later=0)
            assert (result.holds, result.interval) == (decided.holds, decided.interval)
        elif result.holds is not None:
            decided = result
    if study.candidates and not unsure:
        assert result.counts.later == 0
        assert result.holds == (round(pm_k(labelled, 2).value * 40) >= fortieths)


def test_strata_have_an_interval_of_their_own():
    labelled, plain, truth = example(sets=200, margin=0.5)
    study = plan_study(plain, parse_question("pm_k(k=2)"), ONE_CLASS, strata="confidence")
    value = pm_k(labelled, 2).value
    widths = []
    for number in (0, 4, 20, 40, len(study.candidates)):
        result = judge(study, {name: truth[name] for name in study.candidates[:number]})
        assert result.interval.low <= value <= result.interval.high + 1e-12
        assert sum(stratum.labelled for stratum in result.counts.strata) == number
        widths.append(result.interval.high - result.interval.low)
    assert widths == sorted(widths, reverse=True)
    assert "strata" in result.interval.method
    assert widths[-1] == pytest.approx(0)
    assert result.interval.value == pytest.approx(value)


def test_two_models_share_the_order_of_the_sets_that_both_have():
    _, first, _ = example(seed=1)
    _, second, _ = example(seed=2)
    question = parse_question("pm_k(k=2) >= 50%")
    orders = [plan_study(p, question, ONE_CLASS, seed=5).candidates for p in (first, second)]
    shared = set(orders[0]) & set(orders[1])
    assert len(shared) > 5
    assert [n for n in orders[0] if n in shared] == [n for n in orders[1] if n in shared]
    other_seed = plan_study(first, question, ONE_CLASS, seed=6).candidates
    assert other_seed != orders[0]
    assert set(other_seed) == set(orders[0])


def test_a_scene_needs_one_label_the_largest_first():
    _, plain, truth = example(sets=40)
    scenes = np.asarray([name.partition(":")[0][:2] for name in plain.groups])
    plain = replace(plain, tags={**plain.tags, "video": scenes})
    scene = dict(zip(plain.groups.tolist(), scenes.tolist(), strict=True))
    first = {s: truth[next(g for g in truth if scene[g] == s)] for s in set(scenes.tolist())}
    truth = {name: first[scene[name]] for name in truth}
    question = parse_question("pm_k(k=2) >= 10%")
    study = plan_study(plain, question, Premise("scene-class"))
    sizes = [len(study.scenes[name]) for name in study.candidates]
    assert sizes == sorted(sizes, reverse=True)
    assert len(study.candidates) <= len(set(scenes.tolist()))
    every = {name: truth[name] for name in study.candidates}
    by_set = plan_study(plain, question, ONE_CLASS)
    share = judge(by_set, {name: truth[name] for name in by_set.candidates}).interval.value
    whole = judge(study, every)
    assert (whole.interval.low, whole.interval.high) == (share, share)
    # after one label: what is right, and that with all that is open
    label = study.candidates[0]
    after = judge(study, {label: truth[label]})
    assert after.interval.high - after.interval.low == pytest.approx(sum(sizes[1:]) / 40)
    other = next(s for s in study.scenes[label] if s != label)
    with pytest.raises(UsageError, match="are from one scene and have different labels"):
        judge(study, {label: ("a",), other: ("b",)})


def test_files_give_the_same_verdict(tmp_path):
    _, plain, truth = example()
    question = parse_question("pm_k >= 7%")
    study = plan_study(plain, question, ONE_CLASS, seed=3, stop=StopRule(30, 0.05))
    labels = {name: truth[name] for name in study.candidates[:10]}
    labels[study.candidates[3]] = ()
    (tmp_path / "labels.csv").write_bytes(write_labels(labels))
    (tmp_path / "study.json").write_bytes(write_study(study))
    again = plan_again(read_study(tmp_path / "study.json"), plain)
    assert judge(again, read_labels(tmp_path / "labels.csv")) == judge(study, labels)
    assert write_study(again) == write_study(study)
    _, other, _ = example(seed=9)
    with pytest.raises(UsageError, match="give the run that it was planned for"):
        plan_again(read_study(tmp_path / "study.json"), other)
    (tmp_path / "labels.csv").write_text("set,labels\nv0:00,a\nv0:00,b\n")
    with pytest.raises(UsageError, match=r"line 3: the set 'v0:00' comes twice; keep one line"):
        read_labels(tmp_path / "labels.csv")
    (tmp_path / "study.json").write_text('{"version": 1}')
    with pytest.raises(UsageError, match="is damaged"):
        read_study(tmp_path / "study.json")


def test_sentences_are_of_these_sets():
    _, plain, truth = example(200, 1)
    fails = plan_study(plain, parse_question("pm_k(k=2) >= 70%"), ONE_CLASS)
    text = say_result(fails, judge(fails, {}))
    assert text.startswith(
        "pm_k(k=2) >= 70% does not hold for these 200 sets: shown without a label"
    )
    assert "at most 63.0\u202f%, whatever their labels" in say_bound(fails)
    study = plan_study(plain, parse_question("pm_k(k=2) >= 50%"), ONE_CLASS)
    answers = {}
    while names := next_sets(study, answers):
        answers[names[0]] = truth[names[0]]
    text = say_result(study, judge(study, answers))
    assert f"shown after {len(answers)} labels; a fixed sample would have asked for " in text
    early = say_result(study, judge(study, dict(list(answers.items())[:3])))
    assert "is open for these 200 sets after 3 labels" in early


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map >= 0.5", "it ranks all detections of all images"),
        ("flip_rate <= 5%", "it needs no labels"),
        ("pm_kk >= 50%", "did you mean 'pm_k'"),
        ("pm_k(k=10) >= 70", "shares are in 0…1; write 0.7 or 70%"),
        ("pm_k(k=10) >= 110%", "shares are in 0…1; write 0% to 100%"),
        ("pm_k(score=1)", "pm_k takes k, not score"),
        ("accuracy(k=1) >= 50%", "accuracy takes nothing, not k"),
        ("false_positive_rate(score=2) <= 5%", "score is a threshold in 0…1"),
        ("pm_k(k=-1) >= 50%", "k is a number of frames, 0 or more"),
    ],
)
def test_metrics_that_few_labels_cannot_estimate_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_question(text)


@pytest.mark.parametrize(
    ("share", "sets", "needed"), [("0.07", 100, 7), ("0.7", 10, 7), ("0.701", 1000, 701)]
)
def test_a_share_is_read_as_it_is_written(share, sets, needed):
    """0.07 × 100 is more than 7 in binary numbers."""
    assert parse_question(f"pm_k(k=10) >= {share}").count_needed(sets) == needed


def test_the_premise_is_stated_or_checked():
    labelled, plain, _ = example()
    question = parse_question("pm_k >= 50%")
    with pytest.raises(UsageError, match="state it with --premise constant-class"):
        plan_study(plain, question)
    assert plan_study(plain, parse_question("accuracy >= 50%")).premise is None
    assert plan_study(plain, parse_question("pm_k(k=0) >= 50%")).premise is None
    checked = plan_study(labelled, question).premise
    assert checked.reason == "checked: 40 labelled sets, each of one class"
    truth = labelled.truth.copy()
    truth[3] = np.roll(truth[3], 1)
    with pytest.raises(UsageError, match=r"1 of 40 labelled sets of .* show several classes"):
        plan_study(replace(labelled, truth=truth), question)
