"""The premise checked on a sample: exact on small pools, and against labels of every frame."""

import json
from dataclasses import replace
from itertools import product
from math import perm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_steps import next_sets
from scipy.stats import hypergeom

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.core.stats.label_budget import RequiredShare
from steadyeye.metrics.drop import drop
from steadyeye.metrics.label_studies.files import (
    plan_again,
    read_labels,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.premise_checks import (
    CHECK_ERROR,
    Allowance,
    CheckCounts,
    bound_clean_checks,
    count_checks_needed,
)
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import (
    say_advice,
    say_bound,
    say_plan,
    say_premise,
    say_result,
)
from steadyeye.metrics.label_studies.study import StopRule, parse_premise, plan_study
from steadyeye.metrics.pm_k import pm_k

STATED = parse_premise("constant-class")


def check(number):
    return parse_premise("constant-class", number)


def without_truth(table):
    columns = tuple(name for name in table.columns if name != "truth")
    return replace(table, truth=np.zeros_like(table.truth), columns=columns)


def break_sets(table, seed, share=0.3):
    """Some sets with labels that change within them, or several: some as the predictions do."""
    random = np.random.default_rng(seed)
    truth = table.truth.copy()
    for group in np.unique(table.groups):
        rows = np.flatnonzero(table.groups == group)
        kind = random.choice(
            ["as is", "follows", "other", "several"], p=[1 - share, *[share / 3] * 3]
        )
        if kind == "follows":
            truth[rows] = False
            truth[rows, table.predicted_class[rows]] = True
        if kind == "other":
            row = random.choice(rows)
            truth[row] = np.roll(truth[row], 1)
        if kind == "several":
            truth[rows] |= truth[rows][:, ::-1]
    return replace(table, truth=truth)


def ask_people(table, k):
    """Set → what people say who see every frame: its classes, none where they change."""
    near = np.abs(table.tags["offset"]) <= k
    labels = {}
    for group in np.unique(table.groups).tolist():
        rows = table.truth[(table.groups == group) & near]
        same = (rows == rows[0]).all()
        labels[group] = tuple(np.array(table.classes)[rows[0]].tolist()) if same else ()
    return labels


def count_paths(needed, pool, order, allow):
    """(labelled, right, checked, doubtful, verdict) → how many ways of answers end a study there.

    `order`: of every question whether it is a check. `allow`: of checks, what they allow.
    """
    candidates, exempt = pool
    ways, ends, labelled, checked = {(0, 0): 1}, {}, 0, 0
    for is_check in (None, *order):
        if is_check is not None:
            labelled, checked = labelled + (not is_check), checked + is_check
            grown = {}
            for (right, doubtful), number in ways.items():
                for yes in (0, 1):
                    key = (right, doubtful + yes) if is_check else (right + yes, doubtful)
                    grown[key] = grown.get(key, 0) + number
            ways = grown
        for (right, doubtful), number in list(ways.items()):
            allowance = allow(checked, doubtful)
            required = RequiredShare(
                needed, candidates, candidates + exempt, allowance.sets, allowance.error
            )
            if (passes := required.decide(right, labelled).passes) is not None:
                ends[labelled, right, checked, doubtful, passes] = number
                del ways[right, doubtful]
    return ends


def sum_chances(ends, pool, truth, verdict):
    """How often studies end with a verdict: by the definition of drawing without replacement."""
    (candidates, exempt), (right, broken) = pool, truth
    total = 0.0
    for (n, s, m, d, passes), ways in ends.items():
        if passes is verdict:
            of_labels = perm(right, s) * perm(candidates - right, n - s) / perm(candidates, n)
            of_checks = perm(broken, d) * perm(exempt - broken, m - d) / perm(exempt, m)
            total += ways * of_labels * of_checks
    return total


POOL = (20, 12)


@pytest.mark.parametrize("needed", [5, 12, 24])
@pytest.mark.parametrize("planned", [6, 12])
def test_few_studies_err_if_they_are_judged_after_every_answer(needed, planned):
    """Every number of right sets and of broken ones, all orders of answers, the worst of truths."""
    order = [True, False] * planned + [False] * (POOL[0] - planned)

    def allow(checked, doubtful):
        counts = CheckCounts(POOL[1], planned, checked, ("a set",) * doubtful)
        return counts.allow(any_time=True)

    checked = count_paths(needed, POOL, order, allow)
    stated = count_paths(needed, POOL, order, lambda checked, doubtful: Allowance())
    false_fail = false_pass = fails = of_stated = 0.0
    for right, broken in product(range(POOL[0] + 1), range(POOL[1] + 1)):
        truth = right, broken
        fails = max(fails, sum_chances(checked, POOL, truth, False))
        if right + broken >= needed:  # all that break the premise are right
            false_fail = max(false_fail, sum_chances(checked, POOL, truth, False))
            of_stated = max(of_stated, sum_chances(stated, POOL, truth, False))
        if right < needed:  # none of them is
            false_pass = max(false_pass, sum_chances(checked, POOL, truth, True))
    assert false_fail <= 0.025 + 1e-12
    assert false_pass <= 0.025 + 1e-12
    assert of_stated > 0.9  # what the checks are for
    if planned == POOL[1] or needed > POOL[0]:
        assert fails > 0.9  # and it is no study that never fails


@pytest.mark.parametrize("checks", [3, 8, 12])
def test_after_a_budget_the_interval_holds_every_truth_with_95_percent(checks):
    """Every number of right sets, of broken ones, and of right ones among these."""
    table = without_truth(testing.example_predictions(40, 0, 0.7))
    budget = checks + 12
    study = plan_study(
        table, parse_question("pm_k(k=2)"), check(checks), stop=StopRule(budget=budget)
    )
    candidates, exempt = study.countable, study.exempt
    assert (candidates, exempt, len(study.checks)) == (28, 12, checks)
    order = study.order[:budget]
    labelled = [name for name in order if name not in study.checks]
    assert len(labelled) == 12
    ends = {}
    for right, doubtful in product(range(13), range(checks + 1)):
        labels = {n: study.answers[n] if i < right else ("x",) for i, n in enumerate(labelled)}
        labels |= {n: () if i < doubtful else ("x",) for i, n in enumerate(study.checks)}
        result = judge(study, labels)
        assert result.enough
        ends[right, doubtful] = result.interval.low * 40, result.interval.high * 40
    for right, broken in product(range(candidates + 1), range(exempt + 1)):
        of_right = hypergeom.pmf(range(13), candidates, right, 12)
        of_broken = hypergeom.pmf(range(checks + 1), exempt, broken, checks)
        for also_right in (0, broken // 2, broken):
            truth = right + also_right
            missed = sum(
                of_right[s] * of_broken[d]
                for (s, d), (low, high) in ends.items()
                if not low - 1e-9 <= truth <= high + 1e-9
            )
            assert missed <= 0.05 + 1e-12


@given(st.integers(0, 10_000), st.sampled_from(["pm_k", "drop"]), st.integers(1, 2))
@settings(deadline=None, max_examples=25)
def test_all_checked_it_holds_the_metric_of_every_frame(seed, metric, k):
    """Whatever the labels are on each frame: what is not doubtful contributes nothing."""
    table = break_sets(testing.example_predictions(40, seed % 7, 0.7), seed)
    value = {"pm_k": pm_k, "drop": drop}[metric](table, k).value
    study = plan_study(without_truth(table), parse_question(f"{metric}(k={k})"), check(40))
    answers = ask_people(table, k)
    result = judge(study, {name: answers[name] for name in study.order})
    assert result.enough
    assert result.interval.low - 1e-9 <= value <= result.interval.high + 1e-9


def test_checks_are_mixed_at_random_and_each_keeps_its_order():
    table = without_truth(testing.example_predictions(200, 1, 0.5))
    question = parse_question("pm_k(k=2) >= 30%")
    plain = plan_study(table, question, STATED)
    places = []
    for seed in range(60):
        study = plan_study(table, question, check(30), seed=seed)
        order = list(study.order)
        assert [n for n in order if n in study.candidates] == list(study.candidates)
        assert [n for n in order if n in study.checks] == list(study.checks)
        assert set(study.candidates) == set(plain.candidates)
        assert not set(study.checks) & set(study.candidates)
        assert set(order[:60]) == {*study.candidates[:30], *study.checks}
        places.append([name in study.checks for name in order[:60]])
    # about half of every ten questions, and no question is always one
    shares = np.mean(places, axis=0)
    assert 0.15 < shares.min() <= shares.max() < 0.85
    by_budget = plan_study(table, parse_question("pm_k(k=2)"), check(30), stop=StopRule(budget=90))
    assert set(by_budget.order[:90]) == {*by_budget.candidates[:60], *by_budget.checks}
    assert plan_study(table, question, STATED).order == plain.candidates


def test_a_verdict_that_needs_the_upper_end_waits_for_the_checks():
    """An inconsistent set whose class changes as the predictions do is right, and nobody saw it."""
    table = testing.example_predictions(200, 1, 0.5)
    broken = replace(table, truth=np.eye(3, dtype=bool)[table.predicted_class])
    assert pm_k(broken, 2).value == 1
    answers, plain = ask_people(broken, 2), without_truth(broken)
    question = parse_question("pm_k(k=2) >= 70%")
    stated = plan_study(plain, question, STATED)
    assert judge(stated, {}).holds is False  # without a label, and wrong
    study = plan_study(plain, question, check(50))
    labels = {}
    while names := next_sets(study, labels):
        labels |= {name: answers[name] for name in names}
    result = judge(study, labels)
    assert result.holds is not False
    assert result.interval.high == 1
    # where the class is constant it fails, later than under the stated premise
    answers = ask_people(table, 2)
    labels = {}
    while names := next_sets(study, labels):
        labels |= {name: answers[name] for name in names}
    result = judge(study, labels)
    assert result.holds is False
    assert result.counts.checks.checked > 0
    assert result.evidence[1] >= 40


def test_a_verdict_of_the_low_end_needs_no_check():
    table = testing.example_predictions(200, 1, 0.5)
    plain, answers = without_truth(table), ask_people(table, 2)
    question = parse_question("pm_k(k=2) >= 30%")
    study = plan_study(plain, question, check(20))
    labels = {name: answers[name] for name in study.order}
    for name in study.checks:
        labels[name] = ()
    result = judge(study, labels)
    assert result.holds is True
    assert result.counts.checks.doubtful == study.checks
    few = parse_question("drop(k=2) <= 70%")
    assert judge(plan_study(plain, few, STATED), {}).holds is True
    assert judge(plan_study(plain, few, check(20)), {}).holds is None


def test_the_bound_is_that_of_its_definition():
    for exempt, checks in ((20, 5), (50, 30), (400, 100)):
        most = bound_clean_checks(checks, exempt)
        # every look at once costs more than one look does
        chance = hypergeom.pmf(0, exempt, most, checks)
        assert chance <= 0.2
        assert hypergeom.pmf(0, exempt, most + 1, checks) <= CHECK_ERROR
        assert bound_clean_checks(checks + 1, exempt) <= most
        enough = count_checks_needed(most, exempt)
        assert bound_clean_checks(enough, exempt) <= most < bound_clean_checks(enough - 1, exempt)
    assert bound_clean_checks(9, 9) == 0
    assert bound_clean_checks(0, 9) == 9
    assert count_checks_needed(0, 9) == 9


def test_files_give_the_same_verdict_and_old_ones_are_read(tmp_path):
    table = testing.example_predictions(40, 0, 0.7)
    plain, answers = without_truth(table), ask_people(table, 2)
    study = plan_study(plain, parse_question("pm_k(k=2) >= 40%"), check(10), seed=3)
    labels = {name: answers[name] for name in study.order[:17]}
    labels[study.checks[1]] = ()
    (tmp_path / "labels.csv").write_bytes(write_labels(labels))
    (tmp_path / "study.json").write_bytes(write_study(study))
    again = plan_again(read_study(tmp_path / "study.json"), plain)
    assert judge(again, read_labels(tmp_path / "labels.csv")) == judge(study, labels)
    assert (again.order, write_study(again)) == (study.order, write_study(study))
    content = json.loads((tmp_path / "study.json").read_text())
    content["checks"] = content["checks"][::-1]
    (tmp_path / "study.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="give the run that it was planned for"):
        plan_again(read_study(tmp_path / "study.json"), plain)
    # as it was written before there were checks
    stated = plan_study(plain, parse_question("pm_k(k=2) >= 40%"), STATED, seed=3)
    content = json.loads(write_study(stated))
    del content["checks"], content["premise"]["checks"]
    (tmp_path / "study.json").write_text(json.dumps({**content, "version": 1}))
    assert plan_again(read_study(tmp_path / "study.json"), plain).order == stated.order


def test_sentences_say_what_is_known_of_the_premise():
    table = testing.example_predictions(200, 1, 0.5)
    plain, answers = without_truth(table), ask_people(table, 2)
    question = parse_question("pm_k(k=2) >= 60%")
    stated = plan_study(plain, question, STATED)
    assert "`steadyeye label --check-premise 100` asks about 100 of them" in say_advice(stated)
    assert "nobody looks at the 139 sets" in say_premise(stated, judge(stated, {}))
    study = plan_study(plain, question, check(50))
    before = judge(study, {})
    assert before.bound.high == 1
    assert "checks cover 50 of the other 139 sets" in say_bound(study)
    assert "50 checks to come" in say_premise(study, before)
    assert "50 checks of the premise come on top" in say_plan(study)
    labels = {name: answers[name] for name in study.order[:16]}
    result = judge(study, labels)
    checked = [name for name in study.order[:16] if name in study.checks]
    text = say_premise(study, result)
    assert f"each of {len(checked)} checked sets, 50 checks in all, shows one class" in text
    assert f"{len(checked)} checks" in say_result(study, result)
    text = say_premise(study, judge(study, {**labels, checked[2]: ()}))
    assert f"1 of {len(checked)} checked sets" in text
    assert f"may show several classes, first '{checked[2]}'" in text
    everything = dict.fromkeys(study.order, ())
    assert "no set is left to ask" in say_result(study, judge(study, everything))


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        ("accuracy", {}, "--check-premise does not go with accuracy"),
        ("pm_k(k=2)", {"strata": "confidence"}, "--check-premise does not go with --strata"),
        ("pm_k(k=2)", {"stop": StopRule(budget=10)}, "leave no label of a budget of 10"),
        ("pm_k(k=2)", {"stop": StopRule(target=0.02)}, r"give --check-premise \d+, or a larger"),
    ],
)
def test_impossible_numbers_of_checks_are_refused(question, options, message):
    plain = without_truth(testing.example_predictions(200, 1, 0.5))
    with pytest.raises(UsageError, match=message):
        plan_study(plain, parse_question(question), check(10), **options)
    with pytest.raises(UsageError, match="checks constant-class, not scene-class"):
        parse_premise("scene-class", 10)
