"""Labelling a detector's images in the browser, also without objects, up to the verdict."""

import shutil
import signal

import pytest
from forked import steadyeye
from page_checks import find_page_faults
from shown_classes import read_pictures
from test_label_pages import Server, find_image
from test_review_pages import REST, free_port, visit

import steadyeye as se
from steadyeye.metrics.label_studies.files import plan_again, read_labels, read_study
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.review.studies.study_items import read_strips

__all__ = ["visit"]

pytestmark = pytest.mark.slow
QUESTION = "image_error_rate(score=0.4) <= 10%"


def is_asked(person):
    """Whether the labels so far, all of which are saved, are not enough."""
    person.page.wait_for_selector("html[data-unsaved='0']")
    return person.json("study")["asks"]


def name_all(person, classes):
    """Names the classes of an image by typing, and says that these are all."""
    for word in classes:
        person.page.keyboard.press("/")
        person.page.keyboard.type(word)
        person.page.keyboard.press("Enter")
        person.page.wait_for_selector(f"#chosen [data-drop='{word}']")
    words = person.page.inner_text("[data-do=yes] span")
    assert words == ("These are all" if classes else "No object")
    person.decide("y")


@pytest.fixture(scope="module")
def evaluated(test_data, tmp_path_factory):
    """The folder of a run of the detector on pictures, and what they show."""
    data, shows = read_pictures(test_data)
    detector = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    se.evaluate(detector, data, out=(run := tmp_path_factory.mktemp("runs") / "a"))
    return run, shows


@pytest.fixture
def shows(evaluated, tmp_path):
    """Picture → the classes that it shows; the run of the detector is in `runs/a`."""
    shutil.copytree(evaluated[0], tmp_path / "runs" / "a")
    return evaluated[1]


def test_a_detector_is_judged_by_the_classes_that_people_name(shows, tmp_path, visit):
    server = Server(tmp_path, free_port(), ("runs/a", "--decide", QUESTION))
    person = visit(server.links["ann"], bypass_csp=True).stage("labels")
    assert find_page_faults(person.page) == []
    assert person.page.is_hidden("#strip")
    assert person.page.is_hidden("[data-do=no]")
    image_classes, unclear = {}, ""
    while is_asked(person):
        name = find_image(person, read_strips(tmp_path / "runs" / "a-labels"))
        if not unclear:
            # nobody can tell of one image
            unclear = name
            person.decide("t")
            assert person.saved() == "Saved: cannot tell"
            continue
        image_classes[name] = shows[name]
        name_all(person, sorted(shows[name]))
    study = person.json("study")
    server.end(signal.SIGINT)
    assert study["state"] == "fails"
    steadyeye("review-export", "runs/a-labels", "--out", "labels", cwd=tmp_path, check=True)
    labels = read_labels(tmp_path / "labels" / "labels.csv")
    assert labels.pop(unclear) == ("?",)
    assert {name: set(classes) for name, classes in labels.items()} == image_classes
    assert study["people"]["unclear"] == 1
    table = se.open_run(tmp_path / "runs" / "a").predictions
    again = plan_again(read_study(tmp_path / "labels" / "study.json"), table)
    result = judge(again, labels | {unclear: ("?",)})
    assert result.holds is False
    assert result.counts.unknown == 1
    assert steadyeye("gate", "runs/a", "--labels", "labels", cwd=tmp_path).returncode == 1


def test_gold_questions_of_images_without_objects(shows, tmp_path, visit):
    """Somebody says of one that it shows none, of the other that it shows a dog."""
    empty = sorted(name for name in shows if not shows[name])
    (tmp_path / "gold.csv").write_text("set,labels\n" + "".join(f"{name},\n" for name in empty))
    options = ("--metric", "image_error_rate(score=0.4)", "--budget", "32", "--seed", "21")
    server = Server(tmp_path, free_port(), ("runs/a", *options, "--gold", "gold.csv"))
    person = visit(server.links["ann"], bypass_csp=True).stage("labels")
    answered = {}
    while is_asked(person) and not person.page.locator(REST).count():
        name = find_image(person, read_strips(tmp_path / "runs" / "a-labels"))
        answered[name] = {"dog"} if name == empty[-1] else shows[name]
        name_all(person, sorted(answered[name]))
    study = person.json("study")
    server.end(signal.SIGINT)
    assert set(empty) <= set(answered)
    assert (study["people"]["gold_wrong"], study["people"]["gold_asked"]) == (1, 2)
    assert "1 of 2 labels of gold questions were wrong" in " ".join(study["remarks"])
    steadyeye("review-export", "runs/a-labels", "--out", "labels", cwd=tmp_path, check=True)
    labels = read_labels(tmp_path / "labels" / "labels.csv")
    assert {name: set(classes) for name, classes in labels.items()} == shows
