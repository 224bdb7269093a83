"""Gold questions of images without objects: how they are read, shown and scored."""

import itertools

import pytest
from review_toys import make_url
from test_label_study import Pixels

from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.metrics.label_studies.files import write_labels
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import plan_study
from steadyeye.review import database
from steadyeye.review.protocol import reviewers as people
from steadyeye.review.protocol.stages import read_plan
from steadyeye.review.studies.live_study import LiveStudy
from steadyeye.review.studies.study_folder import Labelling, begin_study, read_folder, read_gold
from steadyeye.review.studies.study_items import SetFrames, StudyItems
from steadyeye.review.studies.study_summary import describe_study
from steadyeye.review.workflow import decisions, queue
from steadyeye.review.workflow.decisions import Rules, Submission

NOTHING, UNCLEAR = {"labels": [], "whole": "complete"}, {"labels": []}
SOME = {"labels": ["anything"], "whole": "complete"}
keys = map("gold-{:08d}".format, itertools.count())


def test_an_image_without_a_class_is_known_and_one_that_nobody_can_tell_is_not(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_bytes(write_labels({"a": (), "b": ("?",), "c": ("car", "dog")}))
    assert read_gold(path, of_images=True) == {"a": (), "c": ("car", "dog")}
    # of a set of frames no class means that nobody could tell
    assert read_gold(path) == {"b": ("?",), "c": ("car", "dog")}
    path.write_bytes(write_labels({"b": ("?",)}))
    with pytest.raises(UsageError, match="has no image whose classes are known; write some"):
        read_gold(path, of_images=True)
    path.write_bytes(write_labels({"a": ()}))
    with pytest.raises(UsageError, match="has no set with a class; write some"):
        read_gold(path)


def answer_next(live, rules, number, answers):
    """What a person is asked next, answered as `answers` have it, or that there is something."""
    names = {strip.image: name for name, strip in live.items.strips.items()}
    with live.items.database.writing() as c:
        person = people.list_reviewers(c)[number]
        for served in queue.serve_items(c, rules.plan, person, "labels", 1):
            name = names[served.payload["image"]]
            answer = answers.get(name, SOME)
            submission = Submission(
                served.assignment, served.nonce, next(keys), answer, seconds=1.0
            )
            decisions.decide(c, rules, person, submission)
            return name
    return None


@pytest.mark.slow
def test_images_that_show_nothing_are_asked_and_judged(tmp_path):
    """Of one people say so, of another that they cannot tell, of a third that it shows some."""
    table = testing.example_detections(12)
    study = plan_study(table, parse_question("image_error_rate(score=0.3)"))
    right, unclear, wrong = study.candidates[-3:]
    gold = {right: (), unclear: (), wrong: ()}
    begin_study(tmp_path, study, table, Labelling(gold=gold))
    folder, _ = read_folder(tmp_path)
    db, plan = database.connect(make_url(tmp_path)), read_plan(folder.content)
    frames, classes = SetFrames(table, Pixels(), None), folder.class_names
    items = StudyItems(tmp_path, db, frames, plan, study.order, classes, {}, of_images=True)
    items.begin(len(study.order), lambda name, n: lambda done: None)
    live, rules = LiveStudy(study, items), Rules(plan, classes, folder.fingerprint)
    with db.writing() as c:
        for name in ("r0", "r1"):
            people.add_reviewer(c, name)
    answers = {right: NOTHING, unclear: UNCLEAR, wrong: SOME}
    both = [answer_next(live, rules, number % 2, answers) for number in range(2 * len(study.order))]
    times = {name: both.count(name) for name in gold}
    assert min(times.values()) > 0
    with db.reading() as c:
        page, labels = describe_study(c, live), live.read_labels(c)
    assert page["people"]["gold_asked"] == sum(times.values())
    assert page["people"]["gold_wrong"] == times[unclear] + times[wrong]
    # whatever people say of it, the known answer is its label
    assert [labels[name] for name in gold] == [()] * 3
    detected = sum(bool(study.answers[name]) for name in gold)
    others = dict.fromkeys(study.candidates, ("?",))
    assert judge(study, others | {name: labels[name] for name in gold}).counts.right == detected > 0
