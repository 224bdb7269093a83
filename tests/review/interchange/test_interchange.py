"""Decisions as exported to Label Studio and CVAT: out, back, once, and only for open items."""

import json
import random
import shutil
import time
from xml.etree import ElementTree

import pytest
from forked import steadyeye
from review_boxes import BOX, FINE, Boxes, candidates, write
from review_toys import CLASSES, GOOD, NO, YES, Review, draw, source
from whole_runs import davis

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review.interchange import cvat, label_studio
from steadyeye.review.interchange.answers import import_annotations, list_answered
from steadyeye.review.protocol import reviewers
from steadyeye.review.results.agreement import measure_agreement
from steadyeye.review.sampling.image_store import read_size
from steadyeye.review.sampling.sampling import Sampling, sample_boxes
from steadyeye.review.workflow import quality
from steadyeye.review.workflow.quality import set_gold

__all__ = ["davis"]

FORMS = {"label_studio": label_studio, "cvat": cvat}


@pytest.fixture
def folder(tmp_path):
    draw([source()], tmp_path / "set", Sampling("set", {"k": 2}, CLASSES))
    return review_set.read(tmp_path / "set")


@pytest.fixture
def boxes(tmp_path):
    sample_boxes(*write(tmp_path, candidates()))
    return review_set.read(tmp_path / "set")


def copied(folder, to):
    """The same set in a folder of its own, without its review."""
    shutil.copytree(folder.root, to, ignore=shutil.ignore_patterns("review.sqlite*"))
    return review_set.read(to)


def written(review, form, out):
    with review.db.reading() as c:
        return FORMS[form].export_tasks(c, review.folder, review.plan, out)


def results(form, out):
    """The files of results, those of the earlier stages first."""
    pattern = "*.results.json" if form == "label_studio" else "*/results/*.xml"
    order = ["anchors", "pairs", "joint", "classification", "boxes", "box_check"]
    files = (out / form).glob(pattern)
    return sorted(
        files,
        key=lambda f: (order.index(f.relative_to(out / form).parts[0].partition(".")[0]), f.name),
    )


def taken(review, form, file, prefix="", annotator=""):
    with review.db.writing() as c:
        annotations = FORMS[form].read_annotations(review.folder, file, annotator)
        return import_annotations(c, review.rules, annotations, prefix)


def standing(review, timed=True):
    """Everything that stands: who said what of which item, and when and how fast."""
    with review.db.reading() as c:
        rows = [row for stage in review.plan.votes for row in list_answered(c, stage)]
    return {
        (row.stage, row.key, decision.name): (
            decision.answer,
            decision.comment,
            *((decision.seconds, round(decision.made_at, 6)) if timed else ()),
        )
        for row in rows
        for decision in row.decisions
    }


def argued(folder):
    """A review in which two people answer everything and do not agree on all of it."""
    review = Review(folder, 2, stages={"anchors": 2, "pairs": 2})
    rng = random.Random(0)
    for number in range(2):
        while served := review.next("anchors", number):
            review.say(served[0], GOOD, number, comment="good & <clear>", seconds=2.5 + number)
    for number in range(2):
        review.everything("pairs", lambda payload: rng.choice([YES, YES, NO]), number)
    for number in range(2):
        review.everything("joint", lambda payload: rng.choice([YES, NO]), number)
    return review


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_review_of_frames_comes_back_as_it_was_and_only_once(folder, tmp_path, form):
    first = argued(folder)
    counts = written(first, form, tmp_path / "out")
    second = Review(
        copied(folder, tmp_path / "again"), reviewers=0, stages={"anchors": 2, "pairs": 2}
    )
    added = [taken(second, form, file)["decisions"] for file in results(form, tmp_path / "out")]
    assert sum(added) == list(counts.values())[1] == len(standing(first))
    timed = form == "label_studio"
    assert standing(second, timed) == standing(first, timed)
    assert second.verdicts() == first.verdicts()
    with first.db.reading() as a, second.db.reading() as b:
        stages = ("anchors", "pairs", "joint")
        assert measure_agreement(a, stages, {}) == measure_agreement(b, stages, {})
        assert [p.name for p in quality.measure_paces(b)] == ["r0", "r1"]
        medians = [p.median_seconds for p in quality.measure_paces(b)]
    assert medians == ([1.0, 1.0] if timed else [None, None])
    before = standing(second)
    for file in results(form, tmp_path / "out"):
        counts = taken(second, form, file)
        assert (counts["decisions"], counts["there_already"] > 0) == (0, True)
        assert taken(first, form, file)["decisions"] == 0
    assert standing(second) == before


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_review_of_boxes_comes_back_as_it_was(boxes, tmp_path, form):
    votes = {"classification": 2, "boxes": 1}
    first = Boxes(boxes, 2, stages=votes)
    for number in range(2):
        first.everything("classification", lambda payload: FINE, number)
    odd = {"box": [0.37, 1.13, 39.99, 31.01], "label": "dog"}
    first.everything("boxes", lambda payload: {"boxes": [BOX, odd]}, 0)
    first.everything("box_check", lambda payload: {"boxes": [*payload["boxes"][1:], BOX]}, 1)
    written(first, form, tmp_path / "out")
    second = Boxes(copied(boxes, tmp_path / "again"), 0, stages=votes)
    for file in results(form, tmp_path / "out"):
        assert taken(second, form, file)["decisions"] > 0
    assert standing(second, timed=False) == standing(first, timed=False)
    assert len(standing(second)) == 8 + 3 + 3


def test_percent_and_pixels_agree():
    rng = random.Random(0)
    for _ in range(2_000):
        shape = rng.randint(1, 8_000), rng.randint(1, 8_000)
        xs = sorted(rng.uniform(0, shape[0]) for _ in range(2))
        ys = sorted(rng.uniform(0, shape[1]) for _ in range(2))
        box = [xs[0], ys[0], xs[1], ys[1]]
        percent = label_studio.to_percent(box, shape)
        assert label_studio.to_pixels(percent, shape) == pytest.approx(box, abs=1e-6)
    assert label_studio.to_percent([10, 20, 60, 30], (200, 50)) == {
        "x": 5,
        "y": 40,
        "width": 25,
        "height": 20,
    }


def annotation(task, *choices, **more):
    """An annotation as Label Studio exports it."""
    result = [
        {
            "from_name": name,
            "to_name": "image",
            "type": "choices",
            "id": f"x{number}",
            "origin": "manual",
            "value": {"choices": list(words)},
        }
        for number, (name, *words) in enumerate(choices)
    ]
    entry = {
        "id": 1001,
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": "2021-03-09T22:16:08.728353Z",
        "updated_at": "2021-03-09T22:16:09.728378Z",
        "lead_time": 4.288,
        "completed_by": {"id": 10, "email": "ann@example.org", "first_name": "", "last_name": ""},
        **more,
    }
    return {"id": 1, "project": 83, **task, "annotations": [entry]}


@pytest.fixture
def project(folder, tmp_path):
    """A review whose open pairs Label Studio has, and what imports a list of annotated tasks."""
    review = Review(folder, 1, stages={"pairs": 1})
    written(review, "label_studio", tmp_path / "out")
    tasks = json.loads((tmp_path / "out/label_studio/pairs.tasks.json").read_text())

    def send(annotated, **how):
        path = tmp_path / "export.json"
        path.write_text(json.dumps(annotated))
        return taken(review, "label_studio", path, **how)

    return review, tasks, send


def test_an_annotation_becomes_a_decision_of_its_annotator(project):
    review, tasks, send = project
    assert len(tasks) == 8
    choices = (("correct", "yes"), ("similar", "no"), ("reasons", "blur", "motion"))
    counts = send([annotation(tasks[0], *choices)], prefix="ls ")
    assert counts == {
        "decisions": 1,
        "there_already": 0,
        "older_than_stored": 0,
        "skipped_by_their_annotator": 0,
    }
    ((question, decision),) = standing(review).items()
    assert question == ("pairs", tasks[0]["data"]["key"], "ls ann@example.org")
    answer = {"correct": "yes", "similar": "no", "reasons": ["motion", "blur"]}
    assert decision == (answer, "", 4.288, 1615328169.728378)
    joint = review.next("joint", 0)
    assert joint[0].payload["image"] in tasks[0]["data"]["image"]
    assert len(review.everything("pairs", lambda payload: YES)) == 7


def test_a_changed_annotation_replaces_and_an_older_one_does_not(project):
    review, tasks, send = project
    yes = (("correct", "yes"), ("similar", "yes"))
    no = (("correct", "no"), ("similar", "yes"))
    later = {"updated_at": "2021-03-10T00:00:00Z"}
    assert send([annotation(tasks[0], *yes)])["decisions"] == 1
    assert send([annotation(tasks[0], *no, **later)])["decisions"] == 1
    assert send([annotation(tasks[0], *yes)])["there_already"] == 1
    unknown = annotation(tasks[0], *yes, id=1002)
    assert send([unknown])["older_than_stored"] == 1
    assert send([annotation(tasks[0], *yes, updated_at="2021-03-11T00:00:00Z")])["decisions"] == 1
    (stands,) = standing(review).values()
    assert stands[0] == {"correct": "yes", "similar": "yes", "reasons": []}
    assert send([annotation(tasks[1], *yes, was_cancelled=True)])["skipped_by_their_annotator"] == 1


def test_an_answer_that_was_edited_in_the_exported_file_replaces(folder, tmp_path, monkeypatch):
    """Files round times to a microsecond, so half of them seemed older than the decision."""
    review = Review(folder, 1, stages={"pairs": 1})
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: 1_700_000_000.1234563)
        review.say(review.next("pairs")[0], YES)
    written(review, "label_studio", tmp_path)
    (file,) = results("label_studio", tmp_path)
    tasks = json.loads(file.read_text())
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["no"]
    file.write_text(json.dumps(tasks))
    assert taken(review, "label_studio", file)["decisions"] == 1
    (stands,) = standing(review).values()
    assert stands[0] == {"correct": "no", "similar": "yes", "reasons": []}


def test_the_short_form_of_an_export_is_refused(project):
    """Nothing was imported of it, and nothing said so."""
    _, tasks, send = project
    row = {**tasks[0]["data"], "id": 1, "correct": "yes", "annotator": 1, "annotation_id": 5}
    with pytest.raises(UsageError, match="JSON-MIN; export from Label Studio as JSON"):
        send([row])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"completed_by": None}, "1 annotation cannot be read, first .*does not say who made it"),
        ({"data": {"stage": "pairs", "key": "v9", "image": "x"}}, "this set has no 'v9'"),
        ({"data": {"image": "x"}}, "names no stage and key of a set"),
        ({"data": {"stage": "joint", "key": "v0/0/1", "image": "x"}}, "has no 'v0/0/1'"),
        ({"choices": [("correct", "yes"), ("similar", "perhaps")]}, "similar='perhaps'; choose"),
        ({"choices": [("correct", "yes")]}, "similar=None; choose from yes, no, unsure"),
        ({"choices": [("correct", "yes", "no")]}, "annotations? cannot be read, first task 1"),
        ({"result": None}, "cannot be read, first task 1 annotation 1001: its form is not"),
        ({"completed_by": "boss"}, "'boss' is the admin of this review; give --reviewer-prefix"),
        ({"completed_by": "r0"}, "r0 is paused: late"),
    ],
)
def test_an_export_with_an_invalid_annotation_is_refused_as_a_whole(project, change, message):
    review, tasks, send = project
    with review.db.writing() as c:
        reviewers.add_reviewer(c, "boss", admin=True)
        if change.get("completed_by") == "r0":
            reviewers.pause_reviewer(c, review.who().id, "late")
    change = dict(change)
    data = {"data": change.pop("data", tasks[1]["data"])}
    choices = change.pop("choices", [("correct", "yes"), ("similar", "yes")])
    good = annotation(tasks[0], ("correct", "yes"), ("similar", "yes"), completed_by=7)
    with pytest.raises(UsageError, match=message) as refused:
        send([good, annotation(data, *choices, **change)])
    assert "\n" not in str(refused.value)
    assert standing(review) == {}
    with review.db.reading() as c:
        assert [reviewer.name for reviewer in reviewers.list_reviewers(c)] == ["r0", "boss"]
    assert send([good])["decisions"] == 1
    assert next(iter(standing(review)))[2] == "annotator 7"


def test_gold_questions_judge_annotators_too(folder, tmp_path):
    gold = {"every": 1, "least": 0.8, "minimum": 3}
    review = Review(folder, 1, stages={"pairs": 1}, gold=gold)
    with review.db.writing() as c:
        for row in folder.frames.to_pylist():
            if row["offset"]:
                set_gold(c, "pairs", row["id"], YES)
    written(review, "label_studio", tmp_path / "out")
    tasks = json.loads((tmp_path / "out/label_studio/pairs.tasks.json").read_text())
    assert "gold" not in json.dumps(tasks)
    no = (("correct", "no"), ("similar", "yes"))
    path = tmp_path / "export.json"
    path.write_text(json.dumps([annotation(t, *no, id=n) for n, t in enumerate(tasks)]))
    assert taken(review, "label_studio", path)["decisions"] == 8
    assert review.who(1).paused == "0 of your last 8 gold questions were right; ask the admin"


def test_annotators_do_not_decide_on_boxes_that_they_drew_elsewhere(boxes, tmp_path):
    review = Boxes(boxes, 0, stages={"boxes": 1})
    written(review, "label_studio", tmp_path / "out")
    form = tmp_path / "out/label_studio"
    tasks = json.loads((form / "boxes.tasks.json").read_text())
    annotated_tasks = [
        annotation(t, id=n) | {"annotations": [{**annotation(t)["annotations"][0], "id": n}]}
        for n, t in enumerate(tasks)
    ]
    for task in annotated_tasks:
        task["annotations"][0]["result"] = task["predictions"][0]["result"]
    (tmp_path / "a.json").write_text(json.dumps(annotated_tasks))
    assert taken(review, "label_studio", tmp_path / "a.json")["decisions"] == 3
    written(review, "label_studio", tmp_path / "out")
    checks = json.loads((form / "box_check.tasks.json").read_text())
    for task in annotated_tasks:
        match = next(c for c in checks if c["data"]["key"] == task["data"]["key"])
        task["data"] = match["data"]
        task["annotations"][0]["id"] += 100
    (tmp_path / "b.json").write_text(json.dumps(annotated_tasks))
    with pytest.raises(UsageError, match=r"3 annotations cannot be taken, .*another reviewer must"):
        taken(review, "label_studio", tmp_path / "b.json")
    annotated_tasks[0]["annotations"][0]["result"][0]["value"]["rotation"] = 30
    (tmp_path / "b.json").write_text(json.dumps(annotated_tasks))
    with pytest.raises(UsageError, match="the box box0 is rotated or outside the image"):
        taken(review, "label_studio", tmp_path / "b.json")


def test_cvat_tasks_hold_one_picture_an_item_with_its_anchor_beside(folder, tmp_path):
    review = Review(folder, 1, stages={"pairs": 1})
    assert written(review, "cvat", tmp_path / "out") == {"pictures": 8, "answers": 0}
    root = tmp_path / "out/cvat/pairs"
    images = ElementTree.parse(root / "annotations.xml").getroot().findall("image")
    names = [image.get("name") for image in images]
    assert names == sorted(names)
    for image in images:
        name = image.get("name")
        assert read_size(root / "images" / name) == (
            int(image.get("width")),
            int(image.get("height")),
        )
        assert (root / "images/related_images" / name.replace(".", "_") / "anchor.jpg").is_file()
    (label,) = json.loads((root / "labels.json").read_text())
    assert label["name"] == "steadyeye"
    assert {a["name"]: a["values"] for a in label["attributes"]}["similar"] == [
        "-",
        "yes",
        "no",
        "unsure",
    ]


def answered(root, number, **words):
    """The file of a task of CVAT after somebody answered the first `number` pictures."""
    tree = ElementTree.parse(root / "annotations.xml").getroot()
    for image in tree.findall("image")[:number]:
        tag = ElementTree.SubElement(image, "tag", {"label": "steadyeye", "source": "manual"})
        for name, word in words.items():
            ElementTree.SubElement(tag, "attribute", {"name": name}).text = word
    return tree


def test_a_comment_with_what_xml_cannot_hold_leaves_a_file_that_is_read(folder, tmp_path):
    """A terminal's or a word processor's text, pasted into the comment."""
    review = Review(folder, 1, stages={"pairs": 1})
    review.say(review.next("pairs")[0], YES, comment="at \x1b[31mthe\x0bleft\ufffe \U0001f642")
    written(review, "cvat", tmp_path / "out")
    again = Review(copied(folder, tmp_path / "again"), 0, stages={"pairs": 1})
    (file,) = results("cvat", tmp_path / "out")
    assert taken(again, "cvat", file)["decisions"] == 1
    ((_, comment, *_),) = standing(again).values()
    assert comment == "at \ufffd[31mthe\ufffdleft\ufffd \U0001f642"


def test_cvat_answers_are_taken_and_the_unanswered_counted(folder, tmp_path):
    review = Review(folder, 1, stages={"pairs": 1})
    written(review, "cvat", tmp_path / "out")
    root = tmp_path / "out/cvat/pairs"
    path = tmp_path / "job.xml"

    def send(tree, **how):
        path.write_bytes(ElementTree.tostring(tree))
        return taken(review, "cvat", path, **how)

    yes = {"correct": "yes", "similar": "yes", "blur": "false", "comment": ""}
    with pytest.raises(UsageError, match="names no assignee; give --annotator"):
        send(answered(root, 3, **yes))
    counts = send(answered(root, 3, **yes), annotator="ann")
    assert (counts["decisions"], counts["not_answered"]) == (3, 5)
    assert {key[2] for key in standing(review)} == {"ann"}
    for words, message in [
        ({**yes, "similar": "-"}, "3 pictures cannot be read, first .* 'similar' was not answered"),
        ({**yes, "mood": "bad"}, "no question named 'mood'"),
        ({**yes, "similar": "no"}, "say why it is not similar"),
    ]:
        with pytest.raises(UsageError, match=message):
            send(answered(root, 3, **words), annotator="ann")
    stray = answered(root, 1, **yes)
    stray.find("image").set("name", "other.jpg")
    with pytest.raises(UsageError, match=r"1 picture cannot be read, .*it belongs to no item"):
        send(stray, annotator="ann")
    path.write_text('<!DOCTYPE a [<!ENTITY b "c">]><annotations>&b;</annotations>')
    with pytest.raises(UsageError, match="defines entities, which annotations never need"):
        taken(review, "cvat", path)
    path.write_text("<annotations><track/></annotations>")
    with pytest.raises(UsageError, match=r"is not 'CVAT for images 1\.1'"):
        taken(review, "cvat", path)


def test_boxes_drawn_in_cvat_must_be_upright_and_inside(boxes, tmp_path):
    review = Boxes(boxes, 0, stages={"boxes": 1})
    written(review, "cvat", tmp_path / "out")
    path = tmp_path / "job.xml"
    for change, message in [
        ({"rotation": "12"}, "its box 1 is rotated or outside"),
        ({"xbr": "99"}, "its box 1 is rotated or outside"),
        ({"ytl": "high"}, "its box 1 is rotated or outside"),
        ({"label": "cow"}, "no class named 'cow'"),
    ]:
        tree = answered(tmp_path / "out/cvat/boxes", 1)
        for key, text in change.items():
            tree.find("image/box").set(key, text)
        path.write_bytes(ElementTree.tostring(tree))
        with pytest.raises(UsageError, match=message):
            taken(review, "cvat", path, annotator="ann")
    path.write_bytes(ElementTree.tostring(answered(tmp_path / "out/cvat/boxes", 3)))
    assert taken(review, "cvat", path, annotator="ann")["decisions"] == 3
    suggested = {row["id"]: row for row in boxes.boxes.to_pylist()}
    saved_boxes = [box for decision in standing(review).values() for box in decision[0]["boxes"]]
    assert sorted(box["box"] for box in saved_boxes) == sorted(
        [[row[c] for c in ("x0", "y0", "x1", "y1")] for row in suggested.values()]
    )


@pytest.mark.slow
def test_the_command_line_takes_what_it_wrote(folder, tmp_path):
    review = argued(folder)
    review.db.engine.dispose()
    again = copied(folder, tmp_path / "again").root

    def run(*words):
        done = steadyeye(*words, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    content = json.loads((folder.root / "set.json").read_text())
    content["review"] = {"stages": {"anchors": 2, "pairs": 2}}
    for root in (folder.root, again):
        (root / "set.json").write_text(json.dumps(content))
    formats = "set,label_studio,cvat"
    code, output = run("review-export", again, "--out", "asked", "--format", "cvat")
    assert (code, output.splitlines()[:2]) == (0, ["pictures: 2", "answers: 0"])
    first = (folder.root, *review.option)
    code, output = run("review-export", *first, "--out", "out", "--format", formats)
    assert code == 0, output
    for stage in ("anchors", "pairs", "joint"):
        file = f"out/label_studio/{stage}.results.json"
        code, output = run("review-import", again, file, "--from", "label_studio")
        assert code == 0, output
        assert "decisions: " in output
    output = run("review-import", again, "out/set.json", "--from", "label_studio")[1]
    assert output.startswith("steadyeye: 'out/set.json' is no list of tasks")
    output = run("review-import", again, "out/set.json", "--from", "labelbox")[1]
    assert "no tool named 'labelbox'" in output
    status = json.loads(run("review-status", *first, "--format", "json")[1])
    other = json.loads(run("review-status", again, "--format", "json")[1])
    for key in ("table", "table_one", "agreement", "reviewers"):
        assert status[key] == other[key]
