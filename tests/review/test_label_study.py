"""A label study in the review: people's sets, the result of their labels, and its export."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient
from review_toys import make_url

from steadyeye import testing
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Sample
from steadyeye.data.annotations import review_set
from steadyeye.data.annotations.review_set import image_path
from steadyeye.metrics.label_studies.files import plan_again, read_labels, read_study
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.sentences import say_result
from steadyeye.metrics.label_studies.study import Premise, StopRule, parse_premise, plan_study
from steadyeye.review import database
from steadyeye.review.interchange.formats import export_formats
from steadyeye.review.protocol import reviewers as people
from steadyeye.review.protocol.objects import (
    check_set_labels,
    find_set_labels,
    is_right_label,
    word_set_labels,
)
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.studies.study_folder import (
    EARLIER,
    Labelling,
    begin_study,
    read_earlier_labels,
    read_folder,
    resume_study,
)
from steadyeye.review.studies.study_items import SetFrames, StudyItems, read_strips
from steadyeye.review.studies.study_summary import describe_study
from steadyeye.review.web.app import build_app
from steadyeye.review.workflow import decisions, queue
from steadyeye.review.workflow.decisions import Rules, Submission

keys = map("label-{:08d}".format, itertools.count())
ONE_CLASS = Premise("constant-class")


class Pixels:
    """Pictures of the made-up predictions: a grey a row; `made`: how often each was decoded.

    `damaged`: rows whose picture cannot be decoded.
    """

    def __init__(self):
        self.made, self.damaged = [], set()

    def __getitem__(self, row):
        def image():
            if row in self.damaged:
                raise SampleError("cannot decode it")
            self.made.append(row)
            return np.full((24, 32, 3), row % 250, np.uint8)

        return Sample(str(row), image)


class Study:
    """A study of made-up predictions under review, by as many people as asked."""

    def __init__(self, root, question, reviewers=1, sets=40, stop=None, checks=0, **how):
        labelled = testing.example_predictions(sets, 0, 0.7)
        names = [labelled.classes[label] for label in labelled.truth.argmax(axis=1)]
        self.truth = dict(zip(labelled.groups.tolist(), names, strict=True))
        columns = tuple(name for name in labelled.columns if name != "truth")
        self.table = replace(labelled, truth=np.zeros_like(labelled.truth), columns=columns)
        self.root, self.url, self.pixels = root, make_url(root), Pixels()
        root.mkdir(exist_ok=True)
        premise = parse_premise("constant-class", checks)
        self.study = plan_study(self.table, parse_question(question), premise, stop=stop)
        earlier = dict.fromkeys(how.get("earlier", {}), "another")
        self.study = replace(self.study, earlier=earlier)
        begin_study(root, self.study, self.table, Labelling(**how))
        self.open()
        with self.db.writing() as c:
            for number in range(reviewers):
                people.add_reviewer(c, f"r{number}")

    def open(self, first=4):
        """As the command does it, also after a stop."""
        self.study = resume_study(self.root, self.table, None)
        self.folder, _ = read_folder(self.root)
        self.db = database.connect(self.url)
        self.plan, classes = read_plan(self.folder.content), self.folder.class_names
        frames = SetFrames(self.table, self.pixels, self.study.question.k)
        order = [name for name in self.study.order if name not in self.study.earlier]
        scenes = self.study.scenes
        items = StudyItems(self.root, self.db, frames, self.plan, order, classes, scenes)
        items.begin(first, lambda name, n: lambda done: None)
        self.live = LiveStudy(self.study, items, earlier=read_earlier_labels(self.root))
        self.rules = Rules(self.plan, classes, self.folder.fingerprint)

    def who(self, number):
        with self.db.reading() as c:
            return people.list_reviewers(c)[number]

    def next(self, number=0, most=1):
        self.live.items.add_needed()
        with self.db.writing() as c:
            if self.live.explain_rest(c):
                return []
            reviewer = people.list_reviewers(c)[number]
            return queue.serve_items(c, self.plan, reviewer, "labels", most)

    def key(self, served):
        """The set that is shown, by its picture."""
        strips = self.live.items.strips
        return next(n for n, strip in strips.items() if strip.image == served.payload["image"])

    def say(self, served, answer, number=0):
        with self.db.writing() as c:
            reviewer = people.list_reviewers(c)[number]
            submission = Submission(
                served.assignment, served.nonce, answer=answer, key=next(keys), seconds=1.0
            )
            return decisions.decide(c, self.rules, reviewer, submission).id

    def label(self, number=0, whole="yes"):
        """Labels the next set rightly; returns it, or None where nothing is asked any more."""
        served = self.next(number)
        if not served:
            return None
        name = self.key(served[0])
        self.say(served[0], {"labels": [self.truth[name]], "whole": whole}, number)
        return name

    def result(self):
        with self.db.reading() as c:
            return self.live.judge(c)

    def export(self, out):
        with self.db.reading() as c:
            export_formats(c, self.folder, self.plan, out, names=["labels"], partial=False)
        return {name: (out / name).read_bytes() for name in ("labels.csv", "study.json")}


@pytest.mark.slow
def test_pictures_that_another_server_of_a_study_made_are_sent(tmp_path):
    """Else its reviewers see none, once the other server is ahead."""
    review = Study(tmp_path / "study", "pm_k(k=2) >= 30%")
    with review.db.writing() as c:
        token = people.add_reviewer(c, "r1")
    app = build_app(review.folder, review.db, ["testserver"], live=review.live)
    review.open()  # the other server
    session = TestClient(app)
    session.post("/sign-in", json={"token": token})
    while review.live.items.add_needed():
        continue
    pictures = {strip.image for strip in review.live.items.strips.values()}
    assert len(pictures) > 4
    assert {session.get(f"/images/{name}").status_code for name in pictures} == {200}
    assert session.get(f"/images/{'0' * 64}.jpg").status_code == 404


@pytest.mark.slow
def test_sets_are_asked_in_order_until_it_is_decided(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2) >= 30%", reviewers=3)
    assert review.result().labels == 0
    names = []
    for number in itertools.cycle(range(3)):
        if (name := review.label(number)) is None:
            break
        names.append(name)
    assert names == list(review.study.candidates[: len(names)])
    result = review.result()
    assert result.holds is not None
    assert result.labels == len(names)
    # the export alone gives the verdict again, and the same bytes
    first, second = review.export(tmp_path / "one"), review.export(tmp_path / "two")
    assert first == second
    again = plan_again(read_study(tmp_path / "one" / "study.json"), review.table)
    assert judge(again, read_labels(tmp_path / "one" / "labels.csv")) == result


@pytest.mark.slow
def test_a_stopped_server_continues_and_makes_no_picture_twice(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=6))
    names = [review.label() for _ in range(3)]
    decoded, before = list(review.pixels.made), review.result()
    log = tmp_path / "study" / "strips.jsonl"
    log.write_bytes(log.read_bytes() + b'["cut off')
    review.open()
    assert review.pixels.made == decoded
    assert review.result() == before
    names += [review.label() for _ in range(3)]
    assert names == list(review.study.candidates[:6])
    assert review.label() is None
    assert len(read_strips(tmp_path / "study")) == len(set(review.live.items.strips))


def test_a_set_without_pictures_counts_as_one_that_nobody_can_label(tmp_path):
    """Else no label after it in the order would ever count, and the study would never end."""
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=14))
    name = review.study.candidates[6]
    review.pixels.damaged = set(np.flatnonzero(review.table.groups == name).tolist())
    asked_about = []
    while (label := review.label()) is not None:
        asked_about.append(label)
    assert asked_about == [n for n in review.study.candidates[:14] if n != name]
    result = review.result()
    assert (result.counts.labelled, result.counts.unknown, result.enough) == (14, 1, True)
    by_hand = {n: (review.truth[n],) for n in asked_about} | {name: ()}
    assert result == judge(review.study, by_hand)
    with review.db.reading() as c:
        remarks = " ".join(describe_study(c, review.live)["remarks"])
    assert "No picture can be made of 1 set" in remarks
    review.export(tmp_path / "out")
    assert read_labels(tmp_path / "out" / "labels.csv") == by_hand
    # stopped and begun again it is the same; once the file is mended the set is asked about
    review.open()
    assert review.result() == result
    review.pixels.damaged = set()
    review.open()
    assert review.result().counts.labelled == 6
    assert review.label() == name
    assert review.result().counts.unknown == 0
    assert not (review.root / "no-pictures.json").exists()


def test_pictures_that_were_deleted_are_made_again(tmp_path):
    """Else the set could not be asked, and no label after it would count."""
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=6))
    names = [review.label() for _ in range(2)]
    lost = review.live.items.strips[review.study.candidates[2]]
    pictures = {image_path(review.root, name) for name in (lost.image, *dict(lost.strip).values())}
    for picture in pictures:
        picture.unlink()
    review.open()
    assert all(picture.is_file() for picture in pictures)
    while (name := review.label()) is not None:
        names.append(name)
    assert names == list(review.study.candidates[:6])
    assert review.result().counts.labelled == 6


@pytest.mark.slow
def test_a_vote_taken_back_recomputes(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=2))
    review.label()
    served = review.next()[0]
    decision = review.say(served, {"labels": []})
    assert review.result().counts.unknown == 1
    assert review.result().enough
    assert review.next() == []
    with review.db.writing() as c:
        decisions.undo(c, review.rules, review.who(0), decision, next(keys))
    assert review.result().labels == 1
    assert not review.result().enough
    with review.db.reading() as c:
        summary = describe_study(c, review.live)
    assert summary["state"] == "open"
    assert [n for n, _, _ in summary["picture"]["trace"]] == [0, 1]


@pytest.mark.slow
def test_gold_questions_are_reported_next_to_the_interval(tmp_path):
    probe = Study(tmp_path / "probe", "pm_k(k=2)", stop=StopRule(budget=5))
    gold = {name: (probe.truth[name],) for name in probe.study.candidates[-4:]}
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=20), gold=gold)
    wrong = 0
    while served := review.next():
        name = review.key(served[0])
        answer = next(
            c for c in review.table.classes if (c == review.truth[name]) != (name in gold)
        )
        wrong += name in gold
        review.say(served[0], {"labels": [answer], "whole": "yes"})
    with review.db.reading() as c:
        summary = describe_study(c, review.live)
    assert summary["people"]["gold_wrong"] == summary["people"]["gold_asked"] == wrong
    assert wrong > 0
    assert any(f"{wrong} of {wrong} labels of gold" in text for text in summary["remarks"])
    # if as many labels are wrong as that allows, all of them, the interval says no more than none
    most = f"{100 * summary['countable'] / summary['sets']:.1f}"
    widened = (
        f"If up to 100.0 % of all labels are wrong, the interval of pm_k(k=2) is 0.0–{most} %."
    )
    assert widened in [text.replace("\u202f", " ") for text in summary["remarks"]]


@pytest.mark.slow
def test_the_premise_is_checked_among_the_other_sets(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=16), checks=6)
    served = [review.label() for _ in range(5)]
    # after a stop, and for a set whose class changes
    review.open()
    served += [review.label(whole="no" if number == 10 else "yes") for number in range(5, 16)]
    assert served == list(review.study.order[:16])
    assert set(review.study.checks) <= set(served)
    assert review.label() is None
    result = review.result()
    assert (result.labels, result.counts.checks.checked) == (10, 6)
    with review.db.reading() as c:
        summary = describe_study(c, review.live)
    assert ("Checks of the premise", "6 of 6 sets") in summary["numbers"]
    assert summary["picture"]["trace"][-1][0] == 16
    changing = served[10]
    doubtful = (changing,) if changing in review.study.checks else ()
    assert result.counts.checks.doubtful == doubtful
    assert any("checked sets" in text for text in summary["remarks"])
    review.export(tmp_path / "out")
    again = plan_again(read_study(tmp_path / "out" / "study.json"), review.table)
    assert judge(again, read_labels(tmp_path / "out" / "labels.csv")) == result


def test_a_premise_that_is_stated_is_to_be_checked(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2)", stop=StopRule(budget=6))
    with review.db.reading() as c:
        remarks = describe_study(c, review.live)["remarks"]
    assert any("`steadyeye label --check-premise 12` asks about 12" in text for text in remarks)


def test_another_question_needs_another_folder(tmp_path):
    review = Study(tmp_path / "study", "pm_k(k=2) >= 30%")
    other = plan_study(review.table, parse_question("pm_k(k=2) >= 60%"), ONE_CLASS)
    with pytest.raises(UsageError, match="begun with other options"):
        resume_study(review.root, review.table, other)
    assert review_set.read(review.root).content["kind"] == "labels"
    stop = threading.Event()
    stop.set()
    review.live.items.keep_ahead(stop)


@pytest.mark.slow
def test_only_sets_without_an_earlier_label_are_asked(tmp_path):
    probe = Study(tmp_path / "probe", "pm_k(k=2) >= 30%")
    order = probe.study.candidates
    earlier = {name: (probe.truth[name],) for name in (*order[:3], *order[5:9:2])}
    gold = {order[-1]: (probe.truth[order[-1]],), order[1]: ("another class",)}
    review = Study(tmp_path / "study", "pm_k(k=2) >= 30%", earlier=earlier, gold=gold)
    assert review.result().labels == 3
    names = []
    while (name := review.label()) is not None:
        names.append(name)
        review.open()
    result = review.result()
    assert result.holds is not None
    counted = order[: result.labels]
    assert [name for name in names if name not in gold] == [
        name for name in counted if name not in earlier
    ]
    # of a set with an earlier label a gold question has the last word
    right = [review.truth[n] == review.study.answers[n][0] for n in counted if n != order[1]]
    assert result.counts.right == sum(right)
    used = sum(name in earlier for name in counted)
    with review.db.reading() as c:
        summary = describe_study(c, review.live)
    assert f"{used} of them collected for another" in summary["sentences"]["headline"]
    serve = f"{len(earlier)} labels collected for another are used"
    assert any(text.startswith(serve) for text in summary["remarks"])
    videos = len(set(review.study.videos.values()))
    assert summary["videos"]["interval"]["n"] == result.labels
    assert any(text.startswith(f"Videos like these {videos}: ") for text in summary["remarks"])
    review.export(tmp_path / "out")
    again = plan_again(read_study(tmp_path / "out" / "study.json"), review.table)
    exported = read_labels(tmp_path / "out" / "labels.csv")
    assert judge(again, exported) == result
    assert set(exported) == set(earlier) | set(names) | set(gold)
    assert say_result(again, judge(again, exported)) == summary["sentences"]["headline"]


@pytest.mark.slow
def test_a_study_continues_with_the_earlier_labels_it_began_with(tmp_path):
    probe = Study(tmp_path / "probe", "pm_k(k=2) >= 30%")
    earlier = {name: (probe.truth[name],) for name in probe.study.candidates[:3]}
    review = Study(tmp_path / "study", "pm_k(k=2) >= 30%", earlier=earlier)
    assert (
        resume_study(review.root, review.table, review.study, earlier).earlier
        == review.study.earlier
    )
    other = {**earlier, probe.study.candidates[0]: ("another class",)}
    for labels in (other, None):
        with pytest.raises(UsageError, match="begun with other options"):
            resume_study(review.root, review.table, review.study, labels)
    with pytest.raises(UsageError, match="begun with other options"):
        resume_study(review.root, review.table, replace(review.study, earlier={}), earlier)
    (review.root / EARLIER).write_text("set,labels\n")
    with pytest.raises(UsageError, match="has other sets than the study began with"):
        resume_study(review.root, review.table, None)


def test_the_majority_of_answers_is_counted_by_class():
    yes = {"labels": ["dog"], "whole": "yes"}
    assert check_set_labels({"labels": ["Dogs", "DOG"], "whole": "yes"}, ["dog", "cat"]) == yes
    assert check_set_labels({"labels": []}, ["dog"]) == {"labels": []}
    for bad in ({"labels": "dog"}, {"labels": ["dog"]}, {"labels": ["a|b"], "whole": "yes"}):
        with pytest.raises(UsageError):
            check_set_labels(bad, ["dog"])
    cat = {"labels": ["cat"], "whole": "yes"}
    assert find_set_labels([yes]) == (yes, "")
    assert find_set_labels([yes, cat, yes]) == (yes, "")
    assert find_set_labels([yes, cat]) == ({"labels": []}, "no class has a majority")
    assert find_set_labels([{"labels": []}])[1] == "cannot tell"
    assert find_set_labels([{**yes, "whole": "no"}])[1] == "changes within the set"
    known = {"labels": ["dog", "puppy"], "whole": "yes"}
    assert is_right_label(known, yes)
    assert not is_right_label(known, cat)
    assert not is_right_label(known, {"labels": []})


def test_all_classes_of_an_image_and_their_majority():
    both = {"labels": ["cat", "dog"], "whole": "complete"}
    none, unclear = {"labels": [], "whole": "complete"}, {"labels": []}
    assert check_set_labels({"labels": ["Dog", "cat"], "whole": "complete"}, ["dog", "cat"]) == both
    assert check_set_labels(none, ["dog"]) == none
    many = {"labels": [f"class {number}" for number in range(11)], "whole": "complete"}
    assert check_set_labels(many, ["dog"])["labels"] == sorted(many["labels"])
    with pytest.raises(UsageError, match="at most 10 classes"):
        check_set_labels({**many, "whole": "yes"}, ["dog"])
    assert find_set_labels([both]) == (both, "")
    assert find_set_labels([none]) == (none, "")
    dog = {"labels": ["dog"], "whole": "complete"}
    assert find_set_labels([both, dog, none]) == (dog, "")
    assert find_set_labels([none, dog, none]) == (none, "")
    assert find_set_labels([none, dog]) == (unclear, "no class has a majority")
    assert find_set_labels([none, unclear]) == (unclear, "no class has a majority")
    assert find_set_labels([unclear, unclear, none]) == (unclear, "cannot tell")
    assert is_right_label(both, both)
    assert not is_right_label(both, dog)
    assert is_right_label(none, none)
    assert not is_right_label(none, unclear)
    assert not is_right_label(both, {**both, "whole": "yes"})
    assert [word_set_labels(answer) for answer in (both, none, unclear)] == [
        "cat and dog",
        "no object",
        "cannot tell",
    ]
