"""Runs without labels on the command line: comparing two, and reusing the labels of one."""

import re
import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest
from forked import refused, steadyeye
from label_steps import next_sets

import steadyeye as se
from steadyeye.core.types import Classes, Sample
from steadyeye.metrics.label_studies.difference_study import plan_difference
from steadyeye.metrics.label_studies.files import write_labels, write_study
from steadyeye.metrics.label_studies.judge_difference import judge_difference
from steadyeye.metrics.label_studies.model_difference import say_difference
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise, StopRule, plan_study

SETS, K = 120, 1
NAMES = ("bird", "cat", "dog")
REQUIRED = "pm_k(k=1) >= 50%"


@dataclass(frozen=True)
class Clips:
    """Sets of three frames without labels; of each image red is its set, and green its frame."""

    name: str = "clips"
    classes: Classes = field(default_factory=lambda: Classes(NAMES, closed=True))
    columns: tuple[str, ...] = ("group", "offset", "frame", "video")
    notes: tuple[str, ...] = ()
    fingerprint: str = "clips 1"

    @property
    def ids(self):
        return [self[index].id for index in range(len(self))]

    @property
    def truths(self):
        return [()] * len(self)

    def missing(self):
        return ()

    def __len__(self):
        return SETS * (2 * K + 1)

    def __getitem__(self, index):
        number, frame = divmod(index, 2 * K + 1)
        image = np.full((8, 8, 3), (number, frame, 0), np.uint8)
        tags = {"offset": frame - K, "frame": 9 * number + frame, "video": f"v{number // 2}"}
        return Sample(f"{number:03d}/{frame}", lambda: image, (), f"c{number:03d}", tags)


def make_model(name, wrong, unsteady, seed=0):
    """A model that names a wrong class on some sets, and several classes on others."""
    rng = np.random.default_rng(seed)
    is_wrong = rng.random(SETS) < wrong
    is_unsteady = rng.random(SETS) < unsteady

    def model(images):
        number, frame = images[:, 0, 0, 0].astype(int), images[:, 0, 0, 1]
        answer = number + is_wrong[number] + (is_unsteady[number] & (frame == 2 * K))
        return np.eye(3)[answer % 3]

    model.__name__ = name
    return model


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs on the same clips, of the first of which people labelled a few until it holds."""
    root = tmp_path_factory.mktemp("few")
    good, poor = make_model("good", 0.1, 0.1), make_model("poor", 0.35, 0.3, seed=1)
    for model in (good, poor):
        se.evaluate(model, Clips(), out=root / model.__name__, cache="off")
    other = Clips(fingerprint="clips 2")
    se.evaluate(make_model("else", 0, 0), other, out=root / "else", cache="off")
    collect(root / "good", REQUIRED, root / "labels")
    return root


def collect(run, text, folder, stop=None):
    """The labels of a study, as they are exported."""
    table = se.open_run(run).predictions
    study = plan_study(table, parse_question(text), Premise("constant-class"), stop=stop)
    labels = {}
    while names := next_sets(study, labels):
        labels |= {name: (NAMES[int(name[1:]) % 3],) for name in names}
    folder.mkdir()
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))
    return study


def join_lines(text):
    return " ".join(text.split())


@pytest.mark.slow
def test_the_labels_of_a_model_serve_another(runs):
    good = steadyeye("gate", "good", "--labels", "labels", cwd=runs)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "shown after" in good.stdout
    poor = steadyeye("gate", "poor", "--labels", "labels", cwd=runs)
    assert poor.returncode == 1
    text = join_lines(poor.stdout)
    assert "pm_k(k=1) >= 50% is not certain with this much data for poor on clips" in text
    assert "labels collected for good are used; 8 sets outside that study are a" in text
    assert "a new stratum, none labelled" in text
    assert "prior-posterior ratio, at every look, of these sets only" in text
    assert re.search(r"Videos like these \d+: .*% interval", text)


def test_the_difference_of_two_runs(runs, tmp_path):
    few = steadyeye("compare", "good", "poor", "--labels", "labels", cwd=runs)
    assert few.returncode == 0, few.stderr
    text = join_lines(few.stdout)
    assert "on these 120 sets: good less poor is " in text
    assert "of the sets can differ" in text
    # all that can differ is labelled: exact
    shutil.copytree(runs / "labels", tmp_path / "all")
    every = {f"c{n:03d}": (NAMES[n % 3],) for n in range(SETS)}
    (tmp_path / "all" / "labels.csv").write_bytes(write_labels(every))
    words = ("compare", "good", "poor", "--labels", tmp_path / "all", "--metrics", "pm_k(k=1)")
    done = join_lines(steadyeye(*words, cwd=runs, check=True).stdout)
    assert "good has a better pm_k(k=1) than poor on these 120 sets" in done
    assert "good less poor is exactly +" in done
    assert "0 of them have no label that counts" in done
    assert "to label next" not in done
    assert not (runs / "compare.html").exists()


def test_a_number_of_labels_that_was_fixed_is_worth_more(runs, tmp_path):
    collect(runs / "poor", "pm_k(k=1)", tmp_path / "fixed", StopRule(budget=40))
    done = steadyeye(
        "compare", "good", "poor", "--labels", tmp_path / "fixed", cwd=runs, check=True
    )
    assert "hypergeometric, of these sets only; premise constant-class, stated" in join_lines(
        done.stdout
    )


def test_a_study_of_two_runs_says_the_same_words_again(runs, tmp_path):
    tables = [se.open_run(runs / name).predictions for name in ("good", "poor")]
    study = plan_difference(*tables, parse_question("pm_k(k=1)"), Premise("constant-class"))
    labels = {}
    for name in study.candidates:
        if (result := judge_difference(study, labels)).enough:
            break
        labels[name] = (NAMES[int(name[1:]) % 3],)
    assert result.better == "good"
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "labels.csv").write_bytes(write_labels(labels))
    (folder / "study.json").write_bytes(write_study(study))
    done = steadyeye("compare", "good", "poor", "--labels", folder, cwd=runs, check=True)
    assert say_difference(result.difference) in join_lines(done.stdout)
    assert "betting, at every look, of these sets only" in join_lines(done.stdout)
    assert "to label next" not in done.stdout
    assert "measures pm_k(k=1) without a required value" in refused(
        "gate", "good", "--labels", folder, cwd=runs
    )


def test_two_models_of_one_name_are_distinguished_by_their_runs(runs):
    se.evaluate(make_model("good", 0.1, 0.1), Clips(), out=runs / "again", cache="off")
    words = ("label", "good", "again", "--premise", "constant-class")
    text = join_lines(steadyeye(*words, cwd=runs, check=True).stdout)
    assert "good (good) less good (again) in pm_k(k=1) of these 120 sets" in text
    assert "the two can differ on 0 of them" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("label", "good", "poor", "else"), "a study compares one or two runs, not 3"),
        (("label", "good", "poor", "--strata", "class"), "does not go with two runs"),
        (
            ("label", "good", "poor", "--decide", REQUIRED),
            "is for one run; leave it out to compare two runs by pm-k",
        ),
        (("label", "good", "poor"), "state it with --premise constant-class"),
        (
            ("label", "good", "else", "--premise", "constant-class"),
            "give two runs on the same data",
        ),
        (("compare", "good", "--labels", "labels"), "or from one of each, not 1 run from 1"),
        (("compare", "good", "else", "--labels", "labels"), "are not those of else on clips"),
        (("gate", "else", "--labels", "labels"), "give the run that it was planned for"),
        (
            ("compare", "good", "poor", "--labels", "labels", "--metrics", "pm_k(k=0)"),
            "collected for pm_k(k=1), not for pm_k(k=0)",
        ),
        (
            ("compare", "good", "poor", "--labels", "labels", "--metrics", "drop(k=1)"),
            "the difference in drop(k=1) cannot be estimated from few labels",
        ),
        (
            ("compare", "good", "poor", "--labels", "labels", "--metrics", "pm_k, accuracy"),
            "a second metric does not go with --labels",
        ),
        (
            ("compare", "good", "poor", "--labels", "labels", "--original", "good"),
            "--original does not go with --labels",
        ),
        (("compare", "good", "poor", "--labels", "good"), "study.json"),
    ],
)
def test_comparisons_that_few_labels_cannot_make_are_refused(runs, words, why):
    assert why in refused(*words, cwd=runs)
