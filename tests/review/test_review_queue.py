"""The review's queue and decisions: questions, standing decisions, and their consequences."""

import time
from dataclasses import replace

import pytest
import simplejpeg
from review_toys import GOOD, NO, YES, Review, draw, source
from sqlalchemy import event, select, text, update
from sqlalchemy.exc import DBAPIError

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.protocol import reviewers, votes
from steadyeye.review.results import status
from steadyeye.review.workflow import assignments, decisions, queue
from steadyeye.review.workflow.decisions import RefusedError, Submission
from steadyeye.review.workflow.quality import set_gold


@pytest.fixture
def folder(tmp_path):
    draw([source()], tmp_path / "set")
    return review_set.read(tmp_path / "set")


def test_pairs_wait_for_their_anchor_and_take_its_labels(folder):
    review = Review(folder)
    assert review.next("pairs") == []
    (first,) = review.next("anchors")
    review.say(first, {"quality": "good", "labels": ["dog"]})
    payloads = review.everything("pairs", lambda payload: YES)
    assert len(payloads) == 4
    assert {tuple(p["labels"]) for p in payloads} == {("dog",)}
    assert {p["video"] for p in payloads} == {first.payload["video"]}


def test_the_statements_of_a_decision_are_built_once(folder):
    """The next pair and the decision on it run the very statements of those before."""
    review = Review(folder, stages={"pairs": 1})
    reviewer, rounds = review.who(), []
    event.listen(review.db.engine, "before_execute", lambda _, s, *rest: rounds[-1].add(s))
    for number in range(3):
        rounds.append(set())
        with review.db.writing() as c:
            (pair,) = queue.serve_items(c, review.plan, reviewer, "pairs", 1)
            key = f"request-{number}"
            answer = Submission(pair.assignment, pair.nonce, key, YES, 1.0)
            decisions.decide(c, review.rules, reviewer, answer)
    # the first of all has no place to go on from
    assert len(rounds[2]) > 10
    assert rounds[2] <= rounds[1]


def test_a_bad_anchor_is_rejected_with_its_set(folder):
    review = Review(folder)
    review.everything("anchors", lambda payload: {"quality": "bad"})
    assert review.next("pairs") == []
    assert {(v.accepted, v.reason) for v in review.verdicts().values()} == {(False, "anchor bad")}


def test_a_doubted_pair_is_verified_by_everybody(folder):
    review = Review(folder, reviewers=3, stages={"pairs": 1})
    first = review.next("pairs", 0)[0]
    review.say(first, NO, 0)
    for number, answer in enumerate([YES, NO, YES]):
        assert review.verdicts()[_id(review, "joint")].reason == "not decided"
        review.say(review.next("joint", number)[0], answer, number)
    assert review.verdicts()[_id(review, "joint")].accepted
    assert review.next("joint", 0) == []


@pytest.mark.parametrize(
    ("votes", "accepted"),
    [([YES, NO], False), ([YES, YES, NO], True), ([YES, YES, NO, NO], False), ([YES] * 2, True)],
)
def test_similar_only_by_a_strict_majority(folder, votes, accepted):
    review = Review(folder, reviewers=len(votes), stages={"pairs": 1})
    review.say(review.next("pairs")[0], {"correct": "unsure", "similar": "yes"})
    for number, answer in enumerate(votes):
        review.say(review.next("joint", number)[0], answer, number)
    assert review.verdicts()[_id(review, "joint")].accepted is accepted


def _id(review, stage):
    with review.db.reading() as c:
        (key,) = c.execute(database.items.select().where(database.items.c.stage == stage)).all()
    return key.key


def test_nobody_is_shown_an_item_twice_and_order_is_random(folder):
    review = Review(folder, reviewers=2, stages={"pairs": 2})
    payloads = [review.everything("pairs", lambda payload: YES, number) for number in (0, 1)]
    for mine in payloads:
        images = [payload["image"] for payload in mine]
        assert len(images) == len(set(images)) == 8
    videos = [payload["video"] for payload in payloads[0]]
    assert videos != sorted(videos)


def test_an_assigned_item_without_an_answer_is_served_again(folder):
    review = Review(folder, stages={"pairs": 1})
    served = review.next("pairs", most=2)
    assert review.next("pairs", most=2) == served
    review.say(served[0], YES)
    again = review.next("pairs", most=2)
    assert again[0] == served[1]
    assert again[1] not in served


def test_the_same_request_adds_nothing(folder):
    review = Review(folder, stages={"pairs": 1})
    served = review.next("pairs")[0]
    decision = review.say(served, YES, key="the-same-request")
    assert review.say(served, YES, key="the-same-request") == decision
    with pytest.raises(RefusedError, match="used for another decision"):
        review.say(served, NO, key="the-same-request")
    with pytest.raises(RefusedError, match="decided already"):
        review.say(served, NO)
    assert len(review.verdicts()) == 10


def test_a_decision_is_changed_by_a_new_one_that_has_seen_it(folder):
    review = Review(folder, stages={"pairs": 1})
    served = review.next("pairs")[0]
    decision = review.say(served, NO)
    assert len(review.next("joint")) == 1
    review.say(served, YES, replaces=decision)
    assert review.next("joint") == []
    assert sum(v.accepted for v in review.verdicts().values()) == 3


def test_undo_is_a_new_decision(folder):
    review = Review(folder)
    served = review.next("anchors")[0]
    decision = review.say(served, GOOD)
    assert review.next("pairs")
    review.undo(decision)
    assert review.next("anchors")[0] == served
    with pytest.raises(RefusedError, match="no longer stands"):
        review.undo(decision)
    with review.db.reading() as c:
        rows = c.execute(decisions.decisions.select()).all()
    assert [(row.kind, row.replaces) for row in rows] == [("answer", None), ("undo", decision)]


def test_decisions_cannot_be_altered(folder):
    review = Review(folder)
    review.say(review.next("anchors")[0], GOOD)
    for statement in ("UPDATE decisions SET seconds = 0", "DELETE FROM decisions"):
        refused = pytest.raises(DBAPIError, match="only ever added")
        with refused, review.db.engine.begin() as connection:
            connection.execute(text(statement))


def test_the_version_of_a_working_copy_fits_its_column(folder, monkeypatch):
    """PostgreSQL refuses a longer text, so that no decision could be stored; the set stays."""
    monkeypatch.setattr(votes, "__version__", "0.0.1.dev1185+g29403a1bd.d20261126")
    review = Review(folder)
    review.say(review.next("anchors")[0], GOOD)
    column = database.decisions.c.version
    with review.db.reading() as c:
        (version,) = c.execute(select(column)).scalars()
    assert len(version) <= column.type.length
    assert version.startswith("steadyeye 0.0.1.dev1185+g29403a1bd")
    assert version.endswith(f", set {folder.fingerprint}")


def test_an_answer_must_be_ones_own_and_allowed(folder):
    review = Review(folder, reviewers=2, stages={"pairs": 1})
    served = review.next("pairs")[0]
    with pytest.raises(RefusedError, match="not assigned to you"):
        review.say(served, YES, 1)
    with pytest.raises(UsageError, match="similar='perhaps'; choose from yes, no, unsure"):
        review.say(served, {"correct": "yes", "similar": "perhaps"})
    with pytest.raises(UsageError, match="say why it is not similar"):
        review.say(served, {"correct": "yes", "similar": "no"})


def test_items_not_answered_in_time_are_assigned_to_others(folder):
    review = Review(folder, reviewers=2, stages={"pairs": 1})
    served = review.next("pairs", 0, most=8)
    assert len(served) == 8
    review.wait(31)
    assert len(review.next("pairs", 1, most=8)) == 8
    review.say(served[0], YES, 0)
    assert review.next("pairs", 0) == []


def test_without_time_an_item_is_shown_once_a_page(folder):
    review = Review(folder, reviewers=2, stages={"pairs": 1}, minutes=0)
    for number in (0, 1, 0):
        served = review.next("pairs", number, most=10)
        assert len({item.assignment for item in served}) == len(served) == 8
    nothing = {"lacks": lambda payload: True}
    with review.db.writing() as c:
        assert queue.serve_items(c, review.plan, review.who(1), "pairs", **nothing) == []


def test_items_assigned_while_the_clock_was_ahead_are_assigned_to_others_too(folder):
    """It would else wait until the clock is there again, though its reviewer is long gone."""
    review = Review(folder, reviewers=3, stages={"pairs": 1}, minutes=30)
    served = review.next("pairs", 0, most=8)
    assert review.next("pairs", 1) == []
    made_at = update(database.assignments).values(made_at=time.time() + 86_400)
    with review.db.writing() as c:
        c.execute(made_at.where(database.assignments.c.id == served[0].assignment))
        assert assignments.count_left(c, review.plan, review.who(1)) == {"pairs": 1}
    (again,) = review.next("pairs", 1)
    assert again.payload == served[0].payload


def test_a_reviewer_who_fails_gold_questions_is_paused(folder):
    gold = {"every": 1, "least": 0.8, "minimum": 3}
    review = Review(folder, stages={"pairs": 1}, gold=gold)
    with review.db.writing() as c:
        for row in folder.frames.to_pylist():
            if row["offset"]:
                set_gold(c, "pairs", row["id"], YES)
    for answer in (YES, NO, NO):
        review.say(review.next("pairs")[0], answer)
    assert review.next("pairs") == []
    assert review.who().paused == "1 of your last 3 gold questions were right; ask the admin"
    with review.db.writing() as c:
        reviewers.pause_reviewer(c, review.who().id, "")
    review.say(review.next("pairs")[0], YES)
    assert review.next("pairs"), "whom the admin lets go on is not stopped by old mistakes"


def test_gold_questions_come_from_the_manifest(folder):
    gold_id = next(r["id"] for r in folder.frames.to_pylist() if r["offset"])
    review = Review(folder, stages={"pairs": 1}, gold={"answers": {"pairs": {gold_id: NO}}})
    with review.db.reading() as c:
        gold_rows = c.execute(
            database.items.select().where(database.items.c.gold.is_not(None))
        ).all()
    assert [(row.key, row.gold) for row in gold_rows] == [(gold_id, NO)]
    with pytest.raises(UsageError, match=r"gold.answers.pairs: no item 'nowhere' in this stage"):
        Review(folder, 0, gold={"answers": {"pairs": {gold_id: NO, "nowhere": NO}}})
    with pytest.raises(UsageError, match="similar=None; choose from"):
        Review(folder, 0, gold={"answers": {"pairs": {gold_id: {"correct": "yes"}}}})


def test_the_number_of_remaining_items_is_counted_per_reviewer(folder):
    review = Review(folder, reviewers=2, stages={"pairs": 1})

    def left(number, minutes=30):
        with review.db.reading() as c:
            late = replace(review.plan, minutes=minutes)
            return assignments.count_left(c, late, review.who(number))["pairs"]

    assert (left(0), left(1)) == (8, 8)
    served = review.next("pairs", 0, most=2)
    assert (left(0), left(1)) == (8, 6)
    assert left(1, minutes=0) == 8
    review.say(served[0], YES)
    assert (left(0), left(1)) == (7, 6)


def test_the_known_answer_of_a_gold_question_decides(folder):
    review = Review(folder, stages={"pairs": 1}, gold={"every": 1, "least": 0.0})
    gold_id = next(r["id"] for r in folder.frames.to_pylist() if r["offset"])
    with review.db.writing() as c:
        set_gold(c, "pairs", gold_id, NO)
    review.everything("pairs", lambda payload: YES)
    frame_verdicts = review.verdicts()
    assert (frame_verdicts[gold_id].accepted, frame_verdicts[gold_id].reason) == (False, "blur")
    assert sum(v.accepted for v in frame_verdicts.values()) == 9
    assert review.next("joint") == []


def test_export_keeps_every_frame_with_its_verdict(folder, tmp_path):
    review = Review(folder)
    review.everything("anchors", lambda p: GOOD if p["video"] == "v0" else {"quality": "unsure"})
    undecided = pytest.raises(UsageError, match="4 of 10 frames not decided")
    with review.db.reading() as c, undecided:
        export_set(c, folder, review.plan, tmp_path / "out")
    review.everything("pairs", lambda p: NO if p["offset"] == 2 else YES)
    review.everything("joint", lambda p: NO)
    with review.db.reading() as c:
        counts = export_set(c, folder, review.plan, tmp_path / "out")
        summary = status.summarise(c, folder, review.plan)
    assert counts == {
        "anchors": 2,
        "anchors_accepted": 1,
        "pairs": 8,
        "pairs_accepted": 3,
        "labels_updated": 0,
        "undecided": 0,
    }
    assert summary["table"][1] == {
        **{"stage": "pairs", "reviewed": 4, "accepted": 3, "gold": 0},
        "reasons": {"blur": 1},
    }
    from steadyeye.data.sources.reviewed import reviewed

    accepted = reviewed(root=str(tmp_path / "out"))
    assert [m.offset for m in accepted.members] == [-2, -1, 0, 1]
    every = reviewed(root=str(tmp_path / "out"), review=False)
    assert [every[i].tags["accepted"] for i in range(len(every))] == [1, 1, 1, 1, 0] + [0] * 5


def test_frames_are_stored_once_and_marked(tmp_path):
    draw([source(3)], tmp_path / "set")
    stored_set = review_set.read(tmp_path / "set")
    files = list((tmp_path / "set" / "images").rglob("*.jpg"))
    assert {file.name for file in files} == stored_set.images
    for file in files:
        assert review_set.image_name(file.read_bytes()) == file.name
        assert simplejpeg.decode_jpeg(file.read_bytes()).shape == (32, 40, 3)
    assert not any(stored_set.frames["across_cut"].to_pylist())
    with pytest.raises(UsageError, match="holds a set already"):
        draw([source()], tmp_path / "set")
