"""Labels collected for one model, for another and for the difference of the two."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import next_sets
from labelled_models import make_models, make_models_of_scenes

from steadyeye.core.errors import UsageError
from steadyeye.metrics.label_studies.files import (
    LabelledStudy,
    find_study,
    read_labels,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.label_reuse import judge_other_model, say_reuse
from steadyeye.metrics.label_studies.model_difference import (
    compare_models as compare_studies,
)
from steadyeye.metrics.label_studies.model_difference import (
    say_difference,
    say_next_sets,
)
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, StopRule, plan_study

ONE_CLASS = Premise("constant-class")
ORDERS = 100


def store(folder, study, labels):
    """The record and the labels as they are read from an exported folder."""
    folder.mkdir(exist_ok=True)
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))
    return read_study(folder / "study.json"), read_labels(folder / "labels.csv")


def compare_models(record, labels, first, second, metric=""):
    return compare_studies([LabelledStudy(record, labels)], first, second, metric)


def record_of(tmp_path_factory, study):
    return store(tmp_path_factory.mktemp("study"), study, {})[0]


@pytest.fixture(scope="module")
def to_record(tmp_path_factory):
    return lambda study: record_of(tmp_path_factory, study)


def plan(model, text="pm_k(k=2)", premise=ONE_CLASS, **how):
    return plan_study(model, parse_question(text), premise, **how)


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(0, 40))
@settings(max_examples=10)
def test_all_labels_give_both_models_an_exact_result(to_record, seed, fortieths):
    a, b, truth, (right_a, right_b) = make_models(seed=seed)
    record = to_record(plan(a, f"pm_k(k=2) >= {fortieths / 40}", seed=seed))
    other = judge_other_model(record, b, truth)
    assert (other.interval.low, other.interval.value, other.interval.high) == (right_b / 40,) * 3
    assert other.holds == (right_b >= fortieths)
    difference = compare_models(record, truth, a, b)
    ends = difference.interval
    exact = (right_a - right_b) / 40
    assert (ends.low, ends.value, ends.high) == (exact,) * 3
    assert difference.next_sets == ()
    swapped = compare_models(record, truth, b, a).interval
    assert (swapped.low, swapped.value, swapped.high) == (-exact,) * 3
    # what no label changes needs none: the sets that can differ alone give the same
    few = {n: c for n, c in truth.items() if n in difference_sets(record, a, b)}
    assert len(few) == difference.differing
    again = compare_models(record, few, a, b).interval
    assert again.low <= exact <= again.high


def difference_sets(record, a, b):
    return set(compare_models(record, {}, a, b).next_sets)


def test_without_labels_it_says_what_is_possible(to_record):
    a, b, _, _ = make_models()
    record = to_record(plan(a))
    difference = compare_models(record, {}, a, b)
    sets_a, sets_b = (plan(model).answers for model in (a, b))
    alike = {n for n in sets_a if sets_b.get(n) == sets_a[n]}
    assert alike
    assert difference.interval.low == -len(set(sets_b) - alike) / 40
    assert difference.interval.high == len(set(sets_a) - alike) / 40
    assert set(difference.next_sets) == (set(sets_a) | set(sets_b)) - alike
    assert difference.interval.value is None
    assert "from 0 labels" in say_difference(difference)
    assert say_next_sets(difference).startswith(
        f"to label next, in this order: {difference.next_sets[0]}; "
    )
    same = compare_models(record, {}, a, replace(a, model="C"))
    assert (same.interval.low, same.interval.high, same.differing) == (0, 0, 0)
    assert "A and C have the same pm_k(k=2) on these 40 sets" in say_difference(same)
    assert say_next_sets(same) == ""


@given(st.integers(0, 1000), st.integers(0, 40))
@settings(max_examples=8)
def test_neither_the_order_nor_labels_after_a_gap_matter(to_record, seed, number):
    a, b, truth, _ = make_models(seed=seed)
    study = plan(a, "pm_k(k=2) >= 50%", seed=seed)
    record = to_record(study)
    names = list(study.candidates[:number])
    labels = {name: truth[name] for name in names}
    random.Random(seed).shuffle(names)
    later = {name: truth[name] for name in study.candidates[number + 1 :]}
    for some in ({name: truth[name] for name in names}, labels | later):
        assert compare_models(record, some, a, b).interval == (
            compare_models(record, labels, a, b).interval
        )
        first, second = (judge_other_model(record, b, known) for known in (some, labels))
        assert (first.interval, first.holds, first.labels) == (
            second.interval,
            second.holds,
            second.labels,
        )


@pytest.mark.slow
def test_a_study_of_each_model_leaves_no_set_apart(to_record):
    """Each order of one pool has a study of its own for either model."""
    a, b, truth, (right_a, right_b) = make_models(sets=60, seed=3)
    planned = [to_record(plan(model, stop=StopRule(12))) for model in (a, b)]
    widths, hits = [], 0
    for seed in range(ORDERS):
        studies = []
        for record, model in zip(planned, (a, b), strict=True):
            order = plan(model, seed=seed).candidates
            labels = {name: truth[name] for name in order[:12]}
            studies.append(LabelledStudy(replace(record, seed=seed, order=order), labels))
        both, single = (compare_studies(s, a, b) for s in (studies, studies[:1]))
        ends = both.interval
        hits += ends.low * 60 - 1e-9 <= right_a - right_b <= ends.high * 60 + 1e-9
        assert ends.method == "hypergeometric, of these sets only"
        widths.append((ends.high - ends.low, single.interval.high - single.interval.low))
    assert hits >= 0.95 * ORDERS
    assert np.mean(widths, axis=0)[0] < np.mean(widths, axis=0)[1]
    other = replace(planned[1], premise=Premise("scene-class"))
    with pytest.raises(UsageError, match="collected for different questions or premises: pm_k"):
        compare_studies([studies[0], LabelledStudy(other, {})], a, b)
    name = next(iter(studies[0].labels))
    with pytest.raises(UsageError, match=f"'{name}' has different classes in the two studies"):
        compare_studies([studies[0], LabelledStudy(planned[1], {name: ("none",)})], a, b)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["decided", "fixed", "merged"])
def test_the_intervals_hold_the_truth_in_95_percent(to_record, stop):
    """Labels end where A is decided, after 12, or where some of B are added."""
    a, b, truth, (right_a, right_b) = make_models(sets=60, seed=3)
    text, rule = ("pm_k(k=2)", StopRule(12)) if stop == "fixed" else ("pm_k(k=2) >= 35%", None)
    planned = to_record(plan(a, text, stop=rule))
    other = difference = 0
    for seed in range(ORDERS):
        study = plan(a, text, seed=seed, stop=rule)
        labels = {}
        while names := next_sets(study, labels):
            labels |= {name: truth[name] for name in names}
        if stop == "merged":
            more = plan(b, seed=seed).candidates[: 5 + len(labels) % 9]
            labels |= {name: truth[name] for name in more}
        record = replace(planned, seed=seed, order=study.candidates)
        result = judge_other_model(record, b, labels)
        assert ("hypergeometric" in result.interval.method) == (stop == "fixed")
        other += result.interval.low * 60 <= right_b <= result.interval.high * 60 + 1e-9
        ends = compare_models(record, labels, a, b).interval
        difference += ends.low * 60 - 1e-9 <= right_a - right_b <= ends.high * 60 + 1e-9
        assert result.labels > 0
    assert other >= 0.95 * ORDERS
    assert difference >= 0.95 * ORDERS


def test_sets_that_only_another_model_may_get_right_are_a_stratum(to_record):
    a, b, truth, (_, right_b) = make_models(sets=60, seed=1)
    study = plan(a, "pm_k(k=2) >= 30%")
    record = to_record(study)
    labels = {name: truth[name] for name in study.candidates}
    other = plan(b).candidates
    shared, own = set(other) & set(labels), set(other) - set(labels)
    result = judge_other_model(record, b, labels)
    assert (result.labels, result.sets_outside, result.labels_outside) == (len(shared), len(own), 0)
    assert result.interval.value is None
    right = sum(truth[n] == plan(b).answers[n] for n in shared)
    assert (result.interval.low, result.interval.high) == (right / 60, (right + len(own)) / 60)
    assert say_reuse(result) == (
        f"{len(shared)} of {len(labels)} labels collected for A are used; {len(own)} sets outside "
        "that study are a new stratum, none labelled"
    )
    whole = judge_other_model(record, b, truth)
    assert whole.interval.value == right_b / 60
    assert say_reuse(whole).endswith("are a new stratum, all labelled")
    # the model that they were collected for is served as ever
    assert judge(find_study(record, a), labels).holds is not None
    assert find_study(record, b) is None
    mine = judge_other_model(record, a, labels)
    assert (mine.sets_outside, mine.labels) == (0, len(labels))
    assert say_reuse(mine) == f"{len(labels)} of {len(labels)} labels collected for A are used"


def test_sets_that_nobody_could_label_count_for_both_ends(to_record):
    a, b, truth, _ = make_models(sets=60, seed=1)
    study = plan(a)
    record = to_record(study)
    labels = {name: truth[name] for name in study.candidates}
    blank = next(n for n in plan(b).candidates if n in labels and truth[n] == study.answers[n])
    sure, unsure = (
        judge_other_model(record, b, known).interval for known in (labels, {**labels, blank: ()})
    )
    assert round((unsure.high - unsure.low - sure.high + sure.low) * 60) == 1


def test_one_label_a_scene_serves_another_model(to_record):
    a, b, truth, scene = make_models_of_scenes()
    record = to_record(plan(a, premise=Premise("scene-class")))
    first = {scene[name]: name for name in reversed(scene)}
    labels = {name: truth[name] for name in first.values()}
    assert len(labels) == 10
    by_scene, by_set = (
        (judge_other_model(some, b, known), compare_models(some, known, a, b))
        for some, known in ((record, labels), (to_record(plan(a)), truth))
    )
    for scene_result, set_result in zip(by_scene, by_set, strict=True):
        assert (
            scene_result.interval.low
            == scene_result.interval.high
            == set_result.interval.low
            == set_result.interval.high
        )
        assert scene_result.interval.method == "counted, by scene"
        assert scene_result.interval.n <= len(labels) < set_result.interval.n
    half = dict(list(labels.items())[:3])
    part = compare_models(record, half, a, b)
    assert part.interval.low < by_set[1].interval.low < part.interval.high
    assert 0 < part.interval.n <= 3
    note = say_reuse(judge_other_model(record, b, half))
    assert note.endswith("3 labels collected for A are used")
    broken = {name: (name,) for name in list(scene)[:2]}
    with pytest.raises(UsageError, match="are from one scene and have different labels"):
        compare_models(record, broken, a, b)


@pytest.mark.parametrize(
    ("text", "metric", "message"),
    [
        ("drop(k=2)", "", "a difference needs labels of pm_k"),
        ("accuracy", "", "collected for accuracy"),
        ("pm_k(k=2)", "pm_k(k=1)", r"collected for pm_k\(k=2\), not for pm_k\(k=1\)"),
        ("pm_k(k=2)", "accuracy", "the difference in accuracy cannot be estimated from few labels"),
        ("pm_k(k=2)", "pm_k(k=2) >= 50%", r"has a number; give 'pm_k\(k=2\)' alone"),
        ("pm_k(k=2)", "map", "it ranks all detections"),
    ],
)
def test_differences_that_few_labels_cannot_estimate_are_refused(to_record, text, metric, message):
    a, b, _, _ = make_models()
    with pytest.raises(UsageError, match=message):
        compare_models(to_record(plan(a, text)), {}, a, b, metric)


def test_labels_of_other_data_or_in_the_order_of_a_model_are_refused(to_record):
    a, b, _, _ = make_models()
    record = to_record(plan(a))
    other = replace(b, fingerprint="another")
    for compared in ((other, a), (a, other)):
        with pytest.raises(UsageError, match=r"whose samples are not those of [AB] on"):
            compare_models(record, {}, *compared)
    changed = replace(record, samples=(record.samples[0], "bytes 1"))
    with pytest.raises(UsageError, match="or one of another model on the same data"):
        judge_other_model(changed, replace(b, content="bytes 2"), {})
    # of saved predictions nobody looked at the images
    assert judge_other_model(changed, b, {}).labels == 0
    with pytest.raises(UsageError, match="collect them without --strata"):
        judge_other_model(to_record(plan(a, strata="confidence")), b, {})
    with pytest.raises(UsageError, match="its order is not that of its seed"):
        judge_other_model(replace(record, order=record.order[::-1]), b, {})


def test_a_set_that_shows_several_classes_may_be_no_drop(to_record):
    a, b, truth, _ = make_models()
    # every set shows all classes, so that predictions that differ may all be right
    labels = dict.fromkeys(truth, tuple(b.classes))
    study = plan(b, "drop(k=2)")
    result = judge_other_model(to_record(plan(a, "drop(k=2)")), b, labels)
    assert study.countable > 0
    assert (result.interval.low, result.interval.high) == (0, study.countable / len(study.sets))
    by_scene = plan(b, "drop(k=2)", Premise("scene-class"))
    ends = judge(by_scene, labels).interval
    assert (ends.low, ends.high) == (0, by_scene.countable / len(by_scene.sets))
