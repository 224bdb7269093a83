"""`steadyeye label --labels`: labels of another model's study, up to the verdict of the gate."""

import csv
from itertools import takewhile

import cv2
import numpy as np
import pytest
from forked import refusal, steadyeye
from tiny_files import FUNCTION

from steadyeye.core.storage.files import place
from steadyeye.metrics.label_studies.files import (
    LABELS,
    STUDY,
    read_study,
    write_labels,
    write_study,
)
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, parse_premise, plan_study
from steadyeye.review.studies.run_cell import find_cell

SECOND = """
def second(images):
    scores = predict(images)
    scores[:, 1] += 0.3
    return scores
"""
FRAMES, CLIPS = 40, 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Runs `a` and `b` of two models on three clips that turn dark, and the labels of a study of a.

    The labels are of all sets whose frames `a` gives one class; `few` has those of the first five.
    """
    root = tmp_path_factory.mktemp("reuse")
    (root / "mine.py").write_text(FUNCTION + SECOND)
    (root / "classes.txt").write_text("dark\nlight\n")
    for clip in range(CLIPS):
        (root / "clips" / f"clip{clip}").mkdir(parents=True)
        for number in range(FRAMES):
            grey = 20 if number > 30 else 110 if number > 25 - 5 * clip else 230
            image = np.full((16, 16, 3), grey, dtype=np.uint8)
            cv2.imwrite(str(root / "clips" / f"clip{clip}" / f"{number:05}.png"), image)
    data = "every_frame(path='clips', fps=25, cuts='none')"
    for name, function in (("a", "predict"), ("b", "second")):
        model = f"callable(path='mine:{function}', classes='classes.txt')"
        words = ("run", "--model", model, "--data", data, "--out", name)
        done = steadyeye(*words, "--allow-code", f"mine:{function}", cwd=root)
        assert done.returncode == 0, done.stderr
    table = find_cell(place(str(root / "a"))).predictions
    study = plan_study(table, parse_question("pm_k(k=2) >= 20%"), Premise("constant-class"))
    for folder, number in (("labels", None), ("few", 5)):
        labels = dict.fromkeys(study.candidates[:number], ("light",))
        (root / folder).mkdir()
        (root / folder / STUDY).write_bytes(write_study(study))
        (root / folder / LABELS).write_bytes(write_labels(labels))
    return root


def run(root, *words):
    done = steadyeye(*words, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("\u202f", " ")


@pytest.mark.slow
def test_earlier_labels_alone_decide_it_and_the_gate_says_the_same(root):
    words = ("label", "b", "--labels", "labels", "--decide", "pm_k(k=2) >= 20%")
    text = run(root, *words)
    assert "labels collected for predict are used, and nobody is asked about these sets" in text
    assert "pm_k(k=2) >= 20% holds for these 120 sets: shown after" in text
    assert "Videos like these 3: " in text
    # nobody was asked: the same command and the folder alone say it again
    assert run(root, *words) == text
    run(root, "review-export", "b-labels", "--out", "exported")
    verdict = run(root, "gate", "b", "--labels", "exported")
    headline = next(line for line in text.splitlines() if " holds for " in line)
    cost = headline.partition("shown after ")[2].partition(";")[0]
    assert cost.endswith("of them collected for predict")
    assert f"shown after {cost}" in verdict
    about = next(line for line in text.splitlines() if line.startswith("Videos like"))
    assert about in verdict
    assert (root / "exported" / STUDY).read_bytes() == (root / "b-labels" / STUDY).read_bytes()
    with open(root / "exported" / LABELS) as file:
        exported = {row["set"] for row in csv.DictReader(file)}
    with open(root / "labels" / LABELS) as file:
        earlier = {row["set"] for row in csv.DictReader(file)}
    second = find_cell(place(str(root / "b"))).predictions
    study = plan_study(second, parse_question("pm_k(k=2)"), Premise("constant-class"))
    assert exported == earlier & set(study.candidates)
    # the exporter writes the same bytes again
    first = (root / "exported" / LABELS).read_bytes()
    run(root, "review-export", "b-labels", "--out", "exported")
    assert (root / "exported" / LABELS).read_bytes() == first


@pytest.mark.slow
def test_labels_of_a_checked_study_begin_one_with_as_many_checks(root):
    tables = [find_cell(place(str(root / name))).predictions for name in ("a", "b")]
    question, premise = parse_question("pm_k(k=2) >= 20%"), parse_premise("constant-class", 3)
    first, second = (plan_study(table, question, premise) for table in tables)
    (root / "checked").mkdir()
    (root / "checked" / STUDY).write_bytes(write_study(first))
    labels = dict.fromkeys(first.order, ("light",)) | dict.fromkeys(first.checks, ())
    (root / "checked" / LABELS).write_bytes(write_labels(labels))
    words = ("label", "b", "--labels", "checked", "--decide", "pm_k(k=2) >= 20%", "--out", "d")
    text = run(root, *words)
    assert "premise constant-class, checked on a sample: " in text
    run(root, "review-export", "d", "--out", "of-d")
    record = read_study(root / "of-d" / STUDY)
    assert (record.checks, record.premise) == (second.checks, premise)
    assert set(record.earlier) == set(second.order) & set(labels)
    assert set(second.checks) & set(record.earlier)
    # who states the premise has no checks
    stated = run(root, *words[:-1], "e", "--premise", "constant-class")
    assert "premise constant-class, stated" in stated
    done = steadyeye("gate", "b", "--labels", "checked", cwd=root)
    assert "checked for predict alone; give them to `steadyeye label --labels`" in refusal(done)


def test_the_metrics_of_the_gate_have_the_videos_too(root):
    run(root, "gate", "a", "--labels", "labels", "--openmetrics", "gate.prom")
    text = (root / "gate.prom").read_text()
    assert "steadyeye_gate_videos_low{" in text
    assert "steadyeye_gate_videos_high{" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--decide", "pm_k(k=2) >= 20%", "--seed", "3"), "with --seed 0, not 3; leave --seed out"),
        (("--decide", "pm_k(k=3) >= 20%"), "for pm_k(k=2), not for pm_k(k=3)"),
        (("--decide", "pm_k(k=2) >= 20%", "--premise", "scene-class"), "not scene-class"),
        (("--target", "±5", "--metric", "pm_k(k=2)", "--strata", "class"), "--strata class"),
        ((), "no question"),
    ],
)
def test_labels_of_an_unsuitable_study_are_refused_in_one_line(root, words, message):
    done = steadyeye("label", "b", "--labels", "few", "--out", "other", *words, cwd=root)
    assert message in refusal(done)
    assert not (root / "other").exists()


def test_an_existing_study_is_continued_without_labels(root):
    run(root, "label", "b", "--labels", "labels", "--decide", "pm_k(k=2) >= 20%", "--out", "c")
    done = steadyeye("label", "b", "--labels", "few", "--out", "c", cwd=root)
    assert "leave --labels out" in refusal(done)
    assert "holds for these 120 sets" in run(root, "label", "b", "--out", "c")


def test_a_gold_question_has_the_last_word(root):
    second = find_cell(place(str(root / "b"))).predictions
    study = plan_study(second, parse_question("pm_k(k=2)"), Premise("constant-class"))
    with open(root / "labels" / LABELS) as file:
        earlier = {row["set"] for row in csv.DictReader(file)}
    last = [name for name in study.candidates if name in earlier][-1]
    (root / "gold.csv").write_bytes(write_labels({last: ("dark",)}))
    words = ("--labels", "labels", "--gold", "gold.csv", "--decide", "pm_k(k=2) >= 20%")
    text = run(root, "label", "b", *words, "--out", "with-gold")
    assert "1 label left out: their sets are gold questions, whose labels come from --gold" in text
    run(root, "review-export", "with-gold", "--out", "with-gold-labels")
    with open(root / "with-gold-labels" / LABELS) as file:
        exported = {row["set"] for row in csv.DictReader(file)}
    assert last not in exported
    assert exported == earlier & set(study.candidates) - {last}


def test_a_plan_counts_the_labels_of_another_model(root):
    text = run(root, "plan", "b", "--labels", "labels", "--decide", "pm_k(k=2) >= 50%")
    study = plan_study(
        find_cell(place(str(root / "b"))).predictions,
        parse_question("pm_k(k=2)"),
        Premise("constant-class"),
    )
    with open(root / "labels" / LABELS) as file:
        earlier = {row["set"] for row in csv.DictReader(file)}
    first = list(takewhile(lambda name: name in earlier, study.candidates))
    assert first
    assert f"After {len(first)} label" in text
