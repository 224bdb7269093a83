"""Joint verification when reviewers leave, return, or join while an item is closed."""

from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from review_toys import NO, YES, Review, draw, source
from sqlalchemy import select

from steadyeye.cli.review_tables import build_tables
from steadyeye.data.annotations import review_set
from steadyeye.review import database
from steadyeye.review.protocol import reviewers as people
from steadyeye.review.results.recount import check_counts
from steadyeye.review.results.status import summarise
from steadyeye.review.web.app import build_app
from steadyeye.review.workflow import members


@pytest.fixture
def folder(tmp_path):
    draw([source(1)], tmp_path / "set")
    return review_set.read(tmp_path / "set")


@pytest.fixture
def review(folder):
    """Three reviewers; the first doubts one pair and accepts the three others."""
    toy_review = Review(folder, 3, stages={"pairs": 1})
    toy_review.everything("pairs", lambda p: NO if p["offset"] == 2 else YES)
    return toy_review


def leave(review, number):
    with review.db.writing() as c:
        members.end_link(c, review.plan, f"r{number}")


def come_back(review, number):
    with review.db.writing() as c:
        members.renew_link(c, review.plan, f"r{number}")


def joint(review):
    """(state, votes needed) of the only pair under joint verification, and its verdict."""
    columns = (database.items.c.state, database.items.c.needed, database.items.c.key)
    with review.db.reading() as c:
        row = c.execute(select(*columns).where(database.items.c.stage == "joint")).one()
        assert check_counts(c, review.plan) == []
    verdict = review.verdicts()[row.key]
    return row.state, row.needed, None if verdict.reason == "not decided" else verdict.accepted


def test_a_reviewer_who_left_is_not_waited_for(review):
    """Else no review with a doubted pair ends once somebody has left."""
    assert joint(review) == ("open", 3, None)
    leave(review, 2)
    assert joint(review) == ("open", 2, None)
    with review.db.reading() as c:
        tables = build_tables(summarise(c, review.folder, review.plan))
    (own,) = (table.rows for table in tables if table.columns[0] == "decisions")
    notes = {name: note for *_, name, note in own}
    assert notes == {"r0": "", "r1": "", "r2": "no link"}
    for number, answer in ((0, YES), (1, YES)):
        review.say(review.next("joint", number)[0], answer, number)
    assert joint(review) == ("done", 2, True)


@pytest.mark.parametrize(("votes", "accepted"), [((YES, YES, NO), True), ((NO, YES, NO), False)])
def test_votes_of_who_left_stand(review, votes, accepted):
    """Strict majorities of all three votes; the last of the three voted before leaving."""
    review.say(review.next("joint", 2)[0], votes[2], 2)
    leave(review, 2)
    assert joint(review) == ("open", 3, None)
    for number in (0, 1):
        review.say(review.next("joint", number)[0], votes[number], number)
    assert joint(review) == ("done", 3, accepted)


def test_a_pair_is_settled_when_the_last_missing_reviewer_leaves(review):
    for number in (0, 1):
        review.say(review.next("joint", number)[0], YES, number)
    assert joint(review) == ("open", 3, None)
    leave(review, 2)
    assert joint(review) == ("done", 2, True)


def test_a_reviewer_who_returns_is_asked_again(review):
    leave(review, 2)
    come_back(review, 2)
    assert joint(review) == ("open", 3, None)
    leave(review, 0)
    leave(review, 1)
    leave(review, 2)
    assert joint(review) == ("open", 1, None)


def test_a_reviewer_who_joined_while_a_pair_was_closed_is_asked_too(review):
    """The doubt is taken back and said again; in between somebody joins."""
    columns = (database.decisions.c.id, database.decisions.c.answer)
    with review.db.reading() as c:
        (doubt,) = [row.id for row in c.execute(select(*columns)) if row.answer["similar"] == "no"]
    review.undo(doubt)
    with review.db.writing() as c:
        people.add_reviewer(c, "r3", joint=review.plan.joint)
    review.everything("pairs", lambda payload: NO)
    assert joint(review) == ("open", 4, None)


def test_a_reviewer_who_joined_after_a_decision_is_asked_once_the_pair_is_open_again(review):
    verified = [review.say(review.next("joint", number)[0], YES, number) for number in range(3)]
    with review.db.writing() as c:
        people.add_reviewer(c, "r3", joint=review.plan.joint)
    assert joint(review) == ("done", 3, True)
    review.undo(verified[0])
    assert joint(review) == ("open", 4, None)


def test_the_page_that_revokes_a_link_ends_the_wait(review):
    for number in (0, 1):
        review.say(review.next("joint", number)[0], YES, number)
    with review.db.writing() as c:
        token = people.add_reviewer(c, "admin", admin=True)
    content = {**review.folder.content, "review": {"stages": {"pairs": 1}}}
    app = build_app(replace(review.folder, content=content), review.db, ["testserver"])
    session = TestClient(app)
    signed_in = session.post("/sign-in", json={"token": token}).json()
    headers = {"x-csrf-token": signed_in["csrf"]}
    url = f"/reviewers/{review.who(2).id}/revoke"
    assert session.post(url, json={}, headers=headers).status_code == 200
    assert joint(review) == ("done", 2, True)


def test_an_item_that_a_reviewer_did_not_answer_in_time_is_theirs_again(review):
    """Else no review with a doubted pair ends once somebody was away from an open page."""
    served = review.next("joint", 2)
    review.wait(120)
    for number in (0, 1):
        review.everything("joint", lambda payload: YES, number)
    assert joint(review) == ("open", 3, None)
    assert review.next("joint", 2) == served
    assert review.everything("joint", lambda payload: YES, 2) == [served[0].payload]
    assert joint(review) == ("done", 3, True)


@pytest.mark.parametrize("votes", [1, 2])
def test_items_that_nobody_answered_in_time_are_asked_again(folder, votes):
    review = Review(folder, 2, stages={"pairs": votes})
    review.next("pairs", 1, 2)
    review.wait(120)
    review.next("pairs", 0, 4)
    review.wait(120)
    for number in (0, 1, 0):
        review.everything("pairs", lambda payload: YES, number)
        with review.db.reading() as c:
            assert check_counts(c, review.plan) == []
    assert {verdict.accepted for verdict in review.verdicts().values()} == {True}


def test_a_decision_that_is_taken_back_late_can_be_made_again(folder):
    review = Review(folder, 2, stages={"pairs": 2})
    decision = review.say(review.next("pairs", 0)[0], YES)
    review.everything("pairs", lambda payload: YES, 1)
    review.undo(decision)
    review.wait(120)
    assert review.next("pairs", 1) == []
    assert len(review.everything("pairs", lambda payload: YES, 0)) == 4


@pytest.mark.parametrize("stages", [{"pairs": 1}, {"pairs": 3, "joint": 0}])
def test_what_a_reviewer_was_given_before_leaving_goes_to_others(folder, stages):
    """One who comes back is asked again, unless others were."""
    review = Review(folder, 2, stages=stages)
    if stages["pairs"] == 1:
        review.everything("pairs", lambda payload: NO)
        stage = "joint"
    else:
        stage = "pairs"
    review.next(stage, 1, 4)
    leave(review, 1)
    with review.db.writing() as c:
        people.add_reviewer(c, "r2", joint=review.plan.joint)
    assert len(review.everything(stage, lambda payload: YES, 2)) == 4
    review.everything(stage, lambda payload: YES, 0)
    come_back(review, 1)
    assert len(review.next(stage, 1, 4)) == (4 if stage == "pairs" else 0)
    with review.db.reading() as c:
        assert check_counts(c, review.plan) == []
