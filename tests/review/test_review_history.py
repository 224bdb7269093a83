"""Viewing decisions: one's own, changed ones, and items to view again."""

import itertools
import json

import pytest
from review_toys import GOOD, NO, YES, Review, draw, source

from steadyeye.cli.review_tables import build_tables
from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.interchange.formats import FORMATS, TOOLS, export_formats
from steadyeye.review.results import history
from steadyeye.review.results.history import HistoryFilter
from steadyeye.review.results.status import summarise
from steadyeye.review.workflow.quality import RECENT, measure_paces
from steadyeye.review.workflow.queue import serve_again

WRONG = {"correct": "no", "similar": "yes", "reasons": []}


@pytest.fixture
def folder(tmp_path):
    draw([source()], tmp_path / "set")
    return review_set.read(tmp_path / "set")


def list_own(review, number=0, **search):
    with review.db.reading() as c:
        return history.list_own(c, review.who(number).id, HistoryFilter(**search))


def browse(review, kind, **search):
    with review.db.reading() as c:
        return history.browse_items(c, kind, HistoryFilter(**search))


def again(review, decision, stage="pairs", number=0):
    with review.db.reading() as c:
        return serve_again(c, review.who(number), stage, decision)


def test_own_decisions_that_stand_are_listed_and_found(folder):
    review = Review(folder, stages={"anchors": 1, "pairs": 1})
    served = review.next("anchors", most=2)
    review.say(served[0], {"quality": "good", "labels": ["dog"]}, comment="50% é <b>")
    gone = review.say(served[1], GOOD)
    review.undo(gone)
    answers = itertools.cycle([YES, NO, WRONG, YES])
    review.everything("pairs", lambda _: next(answers))
    own = list_own(review)
    words = [entry["answer"] for entry in own["entries"]]
    expected = ["similar", "label is wrong", "not similar, blur", "similar"]
    assert words == [
        *(w if w != "label is wrong" else "similar, label is wrong" for w in expected),
        "good, dog",
    ]
    assert (own["total"], own["page"], own["pages"]) == (5, 1, 1)

    def find(**search):
        return [entry["answer"] for entry in list_own(review, **search)["entries"]]

    assert find(answer="not similar") == ["not similar, blur"]
    assert find(stage="pairs", answer="similar") == [
        "similar",
        "similar, label is wrong",
        "similar",
    ]
    assert find(answer="label is wrong") == ["similar, label is wrong"]
    assert find(text="0% é <") == find(answer="with a comment") == ["good, dog"]
    assert find(text="_%") == []
    assert find(stage="pairs", answer="good") == []
    with pytest.raises(UsageError, match="no stage named 'pair'"):
        find(stage="pair")
    with pytest.raises(UsageError, match="no answer named 'not simila'"):
        find(answer="not simila")


def test_pages_end_where_the_decisions_do(folder, monkeypatch):
    monkeypatch.setattr(history, "PAGE", 3)
    review = Review(folder, stages={"pairs": 1})
    review.everything("pairs", lambda _: YES)
    pages = [list_own(review, page=page) for page in (1, 2, 3, 99)]
    assert [len(page["entries"]) for page in pages] == [3, 3, 2, 2]
    assert [page["page"] for page in pages] == [1, 2, 3, 3]
    assert pages[2]["pages"] == 3
    assert pages[2]["total"] == 8
    numbers = [entry["decision"] for page in pages[:3] for entry in page["entries"]]
    assert numbers == sorted(numbers, reverse=True)


def test_an_answer_is_changed_by_a_decision_that_replaces_it(folder):
    review = Review(folder, 2, stages={"pairs": 1})
    served = review.next("pairs")[0]
    first = review.say(served, NO)
    item = again(review, first)
    assert (item.assignment, item.replaces) == (served.assignment, first)
    assert again(review, first, number=1) is None
    assert again(review, first, stage="joint") is None
    second = review.say(item, YES, replaces=item.replaces)
    assert again(review, first) is None
    assert [entry["decision"] for entry in list_own(review)["entries"]] == [second]
    with review.db.reading() as c:
        rows = c.execute(database.decisions.select().order_by(database.decisions.c.id)).all()
    assert [(row.id, row.replaces) for row in rows] == [(first, None), (second, first)]
    # nobody is asked jointly about a doubt that was withdrawn
    assert browse(review, "answered")["entries"][0]["verdict"] == "accepted"
    assert review.next("joint") == []


def test_a_changed_anchor_begins_with_the_labels_it_was_given(folder):
    review = Review(folder, stages={"anchors": 1})
    decision = review.say(review.next("anchors")[0], {"quality": "good", "labels": ["dog"]})
    assert again(review, decision, "anchors").payload["labels"] == ["dog"]


def test_items_to_look_at_again(folder):
    review = Review(folder, 2, stages={"pairs": 2})
    first, second, third = review.next("pairs", 0, 3)
    others = {served.payload["image"]: served for served in review.next("pairs", 1, 8)}
    same = [others[served.payload["image"]] for served in (first, second, third)]
    review.say(first, YES, seconds=history.SLOW)
    review.say(same[0], WRONG, 1, comment="a cat, surely")
    review.say(second, NO)
    review.say(same[1], {**NO, "reasons": ["motion"]}, 1)
    review.say(third, YES)
    review.say(same[2], YES, 1)
    (slow,) = browse(review, "slow")["entries"]
    (disputed,) = browse(review, "disputed")["entries"]
    (commented,) = browse(review, "commented")["entries"]
    assert slow == disputed == commented
    assert (slow["agree"], slow["n"], slow["verdict"]) == (1, 2, "doubted")
    statements = [
        (statement["name"], statement["answer"], statement["comment"]) for statement in slow["said"]
    ]
    assert statements == [("r0", "similar", ""), ("r1", "similar, label is wrong", "a cat, surely")]
    assert browse(review, "answered")["total"] == 3
    assert browse(review, "disputed", text="surely")["total"] == 1
    assert browse(review, "disputed", text="no such")["total"] == 0
    assert browse(review, "rejected")["total"] == 0
    for number in (0, 1):
        review.everything("joint", lambda _: NO, number)
    rejected = browse(review, "rejected")["entries"]
    assert sorted(entry["stage"] for entry in rejected) == ["joint", "joint", "pairs", "pairs"]
    with pytest.raises(UsageError, match="no kind of items named 'odd'"):
        browse(review, "odd")


@pytest.mark.slow
def test_a_pace_that_nobody_can_look_at_is_flagged(folder):
    review = Review(folder, 2, stages={"pairs": 2})
    served = {number: review.next("pairs", number, 8) for number in (0, 1)}
    for number, seconds in ((0, 0.1), (1, 0.6)):
        last = {}
        for turn in range(RECENT):
            place = turn % 8
            more = {"seconds": seconds, "replaces": last.get(place)}
            with review.db.reading() as c:
                assert not any(pace.hasty for pace in measure_paces(c))
            last[place] = review.say(served[number][place], YES, number, **more)
        with review.db.reading() as c:
            assert [pace.hasty for pace in measure_paces(c)] == [number == 0, False]
        if number == 0:  # slow ones later make it right again
            for place in range(8):
                review.say(served[0][place], NO, replaces=last[place], seconds=5.0)
                last[place] = list_own(review)["entries"][0]["decision"]
            for place in range(8):
                review.say(served[0][place], YES, replaces=last[place], seconds=5.0)


@pytest.mark.slow
def test_comments_reach_the_status_and_every_export(folder, tmp_path):
    review = Review(folder, stages={"pairs": 1})
    review.everything("pairs", lambda _: YES)
    (entry, *_) = list_own(review)["entries"]
    item = again(review, entry["decision"])
    review.say(item, YES, replaces=item.replaces, comment="blurred\x1b[31m at the left")
    with review.db.reading() as c:
        summary = summarise(c, folder, review.plan)
    assert summary["comments"]["n"] == 1
    (comment,) = summary["comments"]["latest"]
    assert (comment["item"], comment["reviewer"]) == (entry["key"], "r0")
    cells = [cell for table in build_tables(summary) for row in table.rows for cell in row]
    assert "blurred [31m at the left" in cells
    for name in (*TOOLS, "set", "pmsets"):
        assert name in FORMATS
        with review.db.reading() as c:
            plan = review.plan
            export_formats(c, folder, plan, tmp_path / f"as_{name}", names=(name,), partial=True)
        file = tmp_path / f"as_{name}" / "comments.json"
        assert json.loads(file.read_text()) == {"comments": [comment]}
