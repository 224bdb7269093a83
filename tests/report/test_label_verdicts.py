"""The gate on runs without labels: decisions without labels, and from a few labels."""

from dataclasses import replace

import numpy as np
import pytest
from forked import steadyeye
from label_steps import next_sets

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.metrics.label_studies.files import read_study, write_labels, write_study
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, parse_premise, plan_study
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.self_consistency import self_consistency
from steadyeye.report.gate import gate, requirements
from steadyeye.report.gate_verdict import FAILS, HOLDS, OPEN
from steadyeye.report.label_verdicts import judge_labels


@pytest.fixture
def labelled():
    """Sets that are wrong on all their frames in one of three cases, so that labels are needed."""
    table = testing.example_predictions(sets=60, margin=0.7)
    wrong = np.unique(table.groups, return_inverse=True)[1] % 3 == 0
    truth = np.where(wrong[:, None], np.roll(table.truth, 1, axis=1), table.truth)
    return replace(table, truth=truth)


@pytest.fixture
def plain(labelled):
    columns = tuple(name for name in labelled.columns if name != "truth")
    return replace(labelled, truth=np.zeros_like(labelled.truth), columns=columns)


def collect(labelled, plain, text, folder, checks=0):
    """A folder of the labels that a study asks for, as people export it."""
    study = plan_study(plain, parse_question(text), parse_premise("constant-class", checks))
    names = [labelled.classes[label] for label in labelled.truth.argmax(axis=1)]
    truth = dict(zip(labelled.groups, names, strict=True))
    labels = {}
    while next_names := next_sets(study, labels):
        labels |= {name: (truth[name],) for name in next_names}
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))
    return labels


def test_a_share_above_the_bound_fails_at_once(plain):
    most = self_consistency(plain).value
    above = f"pm_k(k=2) >= {most + 0.01:.3f}"
    (verdict,) = gate([plain], requirements([above]), premise="constant-class")
    assert verdict.outcome == FAILS
    assert "shown without a label" in verdict.sentence
    assert "have one prediction on all frames" in verdict.sentence
    assert verdict.n == 60
    assert "premise constant-class, stated; nobody looks at the " in verdict.method
    assert "`steadyeye label --check-premise " in verdict.method
    below = requirements([f"pm_k(k=2) >= {most - 0.01:.3f}"])
    with pytest.raises(UsageError, match=r"needs labels.*at most .*--labels"):
        gate([plain], below, premise="constant-class")
    with pytest.raises(UsageError, match="state it with --premise"):
        gate([plain], below)
    # what needs no label is judged as ever
    (verdict,) = gate([plain], requirements(["self_consistency >= 1%"]))
    assert verdict.outcome == HOLDS


@pytest.mark.parametrize(("below_the_bound", "outcome"), [(0.5, HOLDS), (0.05, FAILS)])
def test_a_few_labels_show_what_all_would(labelled, plain, tmp_path, below_the_bound, outcome):
    share = round(self_consistency(plain).value - below_the_bound, 3)
    labels = collect(labelled, plain, f"pm_k(k=2) >= {share}", tmp_path)
    assert 0 < len(labels) < 60 * self_consistency(plain).value
    assert (pm_k(labelled, 2).value >= share) == (outcome == HOLDS)
    verdict = judge_labels([plain], tmp_path)
    assert verdict.outcome == outcome
    assert verdict.n == len(labels)
    assert f"shown after {len(labels)} labels" in verdict.sentence
    assert "premise constant-class" in verdict.method
    few = judge_labels([plain], tmp_path, least=len(labels) + 1)
    assert few.outcome == (OPEN if outcome == HOLDS else FAILS)


def test_a_premise_that_was_checked_is_judged_by_its_checks(labelled, plain, tmp_path):
    share = round(self_consistency(plain).value + 0.2, 3)
    labels = collect(labelled, plain, f"pm_k(k=2) >= {share}", tmp_path, checks=20)
    verdict = judge_labels([plain], tmp_path)
    assert verdict == judge_labels([plain], tmp_path)
    assert verdict.outcome == FAILS
    assert pm_k(labelled, 2).value <= verdict.high < share
    assert "checked on a sample: each of " in verdict.method
    # sets that nobody was sure of, so that they may be right
    doubtful = read_study(tmp_path / "study.json").checks
    unsure = {**labels, **dict.fromkeys(doubtful, ())}
    (tmp_path / "labels.csv").write_bytes(write_labels(unsure))
    verdict = judge_labels([plain], tmp_path)
    assert verdict.outcome == OPEN
    assert f"may show several classes, first '{doubtful[0]}'" in verdict.method
    other = replace(plain, model="another", scores=plain.scores[:, ::-1])
    with pytest.raises(UsageError, match="was checked for example alone"):
        judge_labels([other], tmp_path)


@pytest.mark.parametrize("option", ["--max-drop", "--metrics"])
def test_options_of_a_base_are_refused_next_to_labels(tmp_path, option):
    done = steadyeye("gate", str(tmp_path), "--labels", str(tmp_path), option, "0.02")
    assert f"{option} needs a base; give --against too" in done.stderr


def test_labels_of_another_run_or_question_are_refused(labelled, plain, tmp_path):
    collect(labelled, plain, "pm_k(k=2) >= 10%", tmp_path)
    other = replace(plain, scores=plain.scores[:, ::-1])
    with pytest.raises(UsageError, match="give the run that it was planned for"):
        judge_labels([replace(other, fingerprint="another")], tmp_path)
    study = plan_study(plain, parse_question("pm_k(k=2)"), Premise("constant-class"))
    (tmp_path / "study.json").write_bytes(write_study(study))
    with pytest.raises(UsageError, match="without a required value"):
        judge_labels([plain], tmp_path)
