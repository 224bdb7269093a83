"""`steadyeye plan` on a run: a table without labels, a few sentences with those of a pilot."""

import cv2
import numpy as np
import pytest
from forked import refusal, steadyeye
from tiny_files import FUNCTION

from steadyeye.core.storage.files import place
from steadyeye.metrics.label_studies.files import LABELS, STUDY, write_labels, write_study
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, plan_study
from steadyeye.review.studies.run_cell import find_cell

ASKED = ("--decide", "pm_k(k=2) >= 60%")
STATED = ("--premise", "constant-class")
FRAMES = 160


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with `a`, a run on 160 light frames with a dark part, and `labels`."""
    root = tmp_path_factory.mktemp("plan")
    (root / "mine.py").write_text(FUNCTION)
    (root / "classes.txt").write_text("dark\nlight\n")
    (root / "clips" / "clip").mkdir(parents=True)
    for number in range(FRAMES):
        grey = 20 if number % 10 == 9 and number > 100 else 230
        image = np.full((16, 16, 3), grey, dtype=np.uint8)
        cv2.imwrite(str(root / "clips" / "clip" / f"{number:05}.png"), image)
    model = "callable(path='mine:predict', classes='classes.txt')"
    data = "every_frame(path='clips', fps=25, cuts='none')"
    done = steadyeye(
        *("run", "--model", model, "--data", data, "--out", "a", "--allow-code", "mine:predict"),
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    table = find_cell(place(str(root / "a"))).predictions
    study = plan_study(table, parse_question(ASKED[1]), Premise("constant-class"))
    labels = dict.fromkeys(study.candidates[:30], ("light",))
    labels |= dict.fromkeys(study.candidates[2:29:3], ("dark",))
    (root / "labels").mkdir()
    (root / "labels" / STUDY).write_bytes(write_study(study))
    (root / "labels" / LABELS).write_bytes(write_labels(labels))
    return root


def plan(root, *words):
    done = steadyeye("plan", "a", *words, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_decision_has_a_row_for_each_distance(root):
    text = plan(root, *ASKED, *STATED)
    lines = text.splitlines()
    assert lines[0].startswith("pm_k(k=2) of these 160 sets is at most")
    rows = [line for line in lines if line.startswith(("  ", "+", "−")) and "×" in line]
    assert "distance (pp)" in text
    assert len(rows) >= 5
    assert "A pilot of 25 labels" in text
    assert text == plan(root, *ASKED, *STATED)


def test_too_few_consistent_sets_cost_nothing(root):
    text = plan(root, "--decide", "pm_k(k=2) >= 99%", *STATED)
    assert text.startswith("0 labels: pm_k(k=2) >= 99% does not hold")
    assert len(text.splitlines()) == 1


def test_a_pilot_is_read(root):
    text = plan(root, *ASKED, "--labels", "labels")
    assert "After 30 labels 70.0 % of the" in text.replace("\u202f", " ")
    assert "At the estimate half of the studies of pm_k(k=2) >= 60% end after" in text
    assert [word in text for word in ("lower end", "estimate", "upper end")] == [True] * 3
    assert "A pilot of 25" not in text
    text = plan(root, "--target", "±5", "--labels", "labels")
    assert "±5 percentage points take about" in text
    text = plan(root, "--decide", "pm_k(k=2) >= 5%", "--labels", "labels")
    assert text.splitlines()[-1] == "The labels decide pm_k(k=2) >= 5%: it takes 0 more labels."


def test_checks_of_the_premise_are_counted(root):
    text = plan(root, *ASKED, "--check-premise", "10")
    assert "10 checks of the premise come on top" in text
    assert "takes more labels than is said here" in text
    assert "distance (pp)" in text
    text = plan(root, "--decide", "pm_k(k=2) >= 88%", "--check-premise", "10")
    assert "too few to decide pm_k(k=2) >= 88%; " in text
    enough = text.rstrip().removesuffix(" do.").rpartition(" ")[2]
    text = plan(root, "--decide", "pm_k(k=2) >= 88%", "--check-premise", enough)
    assert text.rstrip().endswith(f"At most {enough} of them decide pm_k(k=2) >= 88% then.")


def test_a_width_and_scenes(root):
    text = plan(root, "--target", "±5", *STATED)
    assert "Labels until pm_k(k=10) has an interval of ±5 percentage points" in text
    text = plan(root, *ASKED, "--premise", "scene-class")
    assert "takes at least 1 label and at most 1." in text


MISTAKES = [
    ((), "no question; give --decide"),
    (("--metric", "accuracy"), "no question; give --decide"),
    (ASKED, "state it with --premise"),
    (("--decide", "pm_k(k=2)"), "has no number"),
    ((*ASKED, "--target", "5"), "leave --metric and --target out"),
    (("--target", "wide"), "is no half-width"),
    (("--target", "5", "--metric", "map"), "cannot be estimated from few labels"),
    ((*ASKED, "--labels", "absent"), "no study at"),
    (("--decide", "drop(k=2) <= 5%", "--labels", "labels"), "not for drop(k=2)"),
    ((*ASKED, "--premise", "scene-class", "--labels", "labels"), "--premise constant-class, not"),
    ((*ASKED, *STATED, "--model", "other"), "no such predictions"),
    ((*ASKED, "--premise", "scene-class", "--check-premise", "9"), "not scene-class; leave one"),
    (("--target", "1", "--metric", "pm_k(k=2)", "--check-premise", "2"), "give --check-premise "),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "cure"), MISTAKES)
def test_a_mistake_is_one_line(root, words, cure):
    assert cure in refusal(steadyeye("plan", "a", *words, cwd=root))
