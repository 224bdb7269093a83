"""A folder of clips without labels, three people in browsers, a decision: end to end."""

import json
import re
import signal
import subprocess
from dataclasses import asdict

import forked
import pytest
from label_clips import cut_clips
from page_checks import Look, Window, find_faults, find_page_faults, show_as
from test_review_pages import REST, Served, free_port, visit
from whole_runs import command

from steadyeye.metrics.label_studies.difference_study import plan_difference
from steadyeye.metrics.label_studies.files import plan_again, read_labels, read_study
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.judge_difference import (
    judge_difference,
    plan_difference_again,
)
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import Premise
from steadyeye.predictions.read import cells, read
from steadyeye.review.studies.study_items import read_strips

__all__ = ["visit"]

PEOPLE = ("ann", "ben", "cy")
QUESTION = "pm_k(k=3) >= 30%"
# six frames of a strip are as narrow there as seven on a phone of 320 pixels
NARROW = Look(280, "light")


def steadyeye(folder, *words):
    return forked.steadyeye(*words, cwd=folder, check=True).stdout


class Server(Served):
    """`steadyeye label` in a process of its own; `links`: by name."""

    def __init__(self, folder, port, arguments=("runs/a", "--decide", QUESTION)):
        words = ["label", *arguments, "--premise", "constant-class"]
        names = [word for name in PEOPLE for word in ("--reviewer", name)]
        self.begin(port, *words, *names, cwd=folder)
        assert set(PEOPLE) <= set(self.links)

    def end(self, how):
        self.process.send_signal(how)
        self.process.communicate()


def find_image(person, strips):
    """The id of the set, or of the image, that a person looks at."""
    sources = person.page.locator("#item img").evaluate_all("all => all.map((one) => one.src)")
    return next(name for name, strip in strips.items() if any(strip.image in s for s in sources))


def label(person, word):
    """Names what is shown by typing, and says that all frames show it; False: nothing is asked."""
    # a set that the page has already is taken back once the labels are enough
    person.page.wait_for_selector("html[data-unsaved='0']")
    if person.page.locator(REST).count() or not person.json("study")["asks"]:
        return False
    person.page.keyboard.press("/")
    person.page.keyboard.type(word)
    person.page.keyboard.press("Enter")
    person.page.wait_for_selector(f"#chosen [data-drop='{word}']")
    return person.decide("y")


@pytest.mark.slow
def test_three_people_decide_a_question_on_clips_without_labels(test_data, tmp_path, visit):
    assert cut_clips(test_data, tmp_path / "clips", frames=7, most=3) >= 12
    # seven frames of a set are as many as a strip has
    data = "video(path='clips', k=3)"
    steadyeye(tmp_path, "run", "--model", "efficientnet_lite0", "--data", data, "--out", "runs/a")
    table = read(*cells(tmp_path / "runs" / "a")[0])
    port = free_port()
    server = Server(tmp_path, port)
    people = [visit(server.links[name], bypass_csp=True).stage("labels") for name in PEOPLE]
    assert find_page_faults(people[0].page) == []
    show_as(people[0].page, NARROW)
    assert find_faults(Window(people[0].page)) == []
    assert not re.search(r"clip_\d", people[0].page.content())
    # two name the same wrong class, and the server is killed
    assert all(label(person, "tench") for person in people[:2])
    assert people[1].saved() == "Saved: tench"
    server.end(signal.SIGKILL)
    server = Server(tmp_path, port)
    before = people[2].json("study")
    assert before["people"]["labelled"] == 2
    going = list(people)
    while going:
        going = [person for person in going if label(person, "tench")]
    after = people[0].json("study")
    assert after["state"] in ("holds", "fails")
    # who had nothing left while others still decided is told when the page is asked again
    people[2].stage("labels")
    people[2].wait_text(REST, "Enough labels")
    page = people[0].page
    page.goto(f"http://127.0.0.1:{port}/study")
    page.wait_for_selector("#closing svg")
    assert find_page_faults(page) == []
    exports = []
    steadyeye(tmp_path, "review-export", "runs/a-labels", "--out", "one")
    # not a fork: in this one sets have another order
    words = command("review-export", "runs/a-labels", "--out", "two")
    subprocess.run(words, cwd=tmp_path, check=True)
    for name in ("one", "two"):
        files = ("labels.csv", "study.json")
        exports.append([(tmp_path / name / file).read_bytes() for file in files])
    assert exports[0] == exports[1]
    study = plan_again(read_study(tmp_path / "one" / "study.json"), table)
    result = judge(study, read_labels(tmp_path / "one" / "labels.csv"))
    assert result.holds is (after["state"] == "holds")
    assert result.labels == after["result"]["counts"]["labelled"]
    server.end(signal.SIGINT)
    for person in people:
        # of requests while the server was away
        person.complaints[:] = [text for text in person.complaints if "Failed to load" not in text]


@pytest.mark.slow
def test_a_clear_difference_ends_with_sets_left(test_data, tmp_path, visit):
    """Reviewers name what the first model predicts where it can be right, else another class."""
    assert cut_clips(test_data, tmp_path / "clips", frames=5, most=4) >= 18
    tables = []
    for name, model in (("a", "efficientnet_lite2"), ("b", "efficientnet_lite0")):
        words = ("--model", model, "--data", "video(path='clips', k=2)", "--out", f"runs/{name}")
        steadyeye(tmp_path, "run", *words)
        tables.append(read(*cells(tmp_path / "runs" / name)[0]))
    study = plan_difference(*tables, parse_question("pm_k(k=2)"), Premise("constant-class"))
    predicted, can_be_right = study.shared.answers[0], study.shared.pools[0]
    port = free_port()
    server = Server(tmp_path, port, ("runs/a", "runs/b", "--metric", "pm_k(k=2)"))
    people = [visit(server.links[name], bypass_csp=True).stage("labels") for name in PEOPLE[:2]]

    def label_set(person):
        name = find_image(person, read_strips(tmp_path / "runs" / "a-b-labels"))
        assert name in study.candidates
        return label(person, predicted[name][0] if name in can_be_right else "tench")

    assert all(map(label_set, people))
    assert people[1].saved().startswith("Saved: ")
    server.end(signal.SIGKILL)
    server = Server(tmp_path, port, ("runs/a", "runs/b"))  # the metric is that of the study
    assert people[1].json("study")["people"]["labelled"] == 2
    going = list(people)
    while going:
        going = [person for person in going if label_set(person)]
    after = people[0].json("study")
    labelled = after["people"]["labelled"]
    assert labelled < len(study.candidates) - len(PEOPLE)
    assert (after["state"], after["asks"]) == ("better", False)
    for person in people:
        person.stage("labels")
        person.wait_text(REST, "Enough labels: no more are asked for.")
        assert person.page.is_hidden("#item")
    page = people[0].page
    page.goto(f"http://127.0.0.1:{port}/study")
    page.wait_for_selector("#closing svg")
    headline = "efficientnet_lite2 has a better pm_k(k=2) than efficientnet_lite0"
    assert page.text_content("#headline").startswith(headline)
    assert find_page_faults(page) == []
    assert page.text_content("#headline") == after["sentences"]["headline"]
    assert people[1].json("study")["people"]["labelled"] == labelled
    server.end(signal.SIGINT)
    steadyeye(tmp_path, "review-export", "runs/a-b-labels", "--out", "labels")
    record = read_study(tmp_path / "labels" / "study.json")
    labels = read_labels(tmp_path / "labels" / "labels.csv")
    assert len(labels) == labelled
    result = judge_difference(plan_difference_again(record, *tables), labels)
    assert json.dumps(asdict(result)) == json.dumps(after["result"])
    assert result.better == "efficientnet_lite2"
    done = steadyeye(tmp_path, "compare", "runs/a", "runs/b", "--labels", "labels")
    assert after["sentences"]["headline"] in done.splitlines()
    for person in people:
        # of requests while the server was away
        person.complaints[:] = [text for text in person.complaints if "Failed to load" not in text]
