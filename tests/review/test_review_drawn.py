"""Boxes sent to the server by other clients than its page: none leaves its image."""

import pytest
from fastapi.testclient import TestClient
from review_boxes import Boxes, candidates, write
from sqlalchemy import select

from steadyeye.data.annotations import review_set
from steadyeye.review.database import decisions
from steadyeye.review.protocol import reviewers
from steadyeye.review.sampling.sampling import sample_boxes
from steadyeye.review.web.app import build_app

PLAN = {"stages": {"boxes": 1}}


@pytest.fixture
def page(tmp_path):
    """A browser of a reviewer of boxes, on images of 40 × 32 pixels."""
    sample_boxes(*write(tmp_path, candidates()))
    folder = review_set.read(tmp_path / "set")
    folder.content["review"] = PLAN
    review = Boxes(folder, 0, **PLAN)
    with review.db.writing() as c:
        token = reviewers.add_reviewer(c, "ann")
    session = TestClient(build_app(folder, review.db, ["testserver"]))
    signed_in = session.post("/sign-in", json={"token": token}).json()
    session.headers["x-csrf-token"] = signed_in["csrf"]
    return session


def send(page, corners, key="request-1"):
    item = page.get("/stages/boxes.json").json()["next"][0]
    body = {"assignment": item["assignment"], "nonce": item["nonce"], "key": key, "seconds": 1.0}
    return page.post(
        "/decisions", json={**body, "answer": {"boxes": [{"box": corners, "label": "cat"}]}}
    )


@pytest.mark.parametrize(
    "corners", [[0, 0, 42, 32], [0, 0, 40, 34], [60, 60, 70, 70], [40.5, 1, 40.9, 9]]
)
def test_a_box_outside_its_image_is_refused(page, corners):
    answer = send(page, corners)
    assert answer.status_code == 422
    assert "the image has 40 × 32 pixels; draw it inside" in answer.text


@pytest.mark.parametrize("corners", [[5, 5, 5, 9], [5, 5, 9, 5], [9, 5, 5, 9], [-1, 0, 5, 5]])
def test_a_box_without_area_is_refused(page, corners):
    assert send(page, corners).status_code == 422


def test_a_box_that_reaches_out_by_a_pixel_is_cut_and_sent_again_is_the_same(page):
    item = page.get("/stages/boxes.json").json()["next"][0]
    body = {"assignment": item["assignment"], "nonce": item["nonce"], "key": "request-1"}
    answer = {"boxes": [{"box": [30, 20, 40.6, 33], "label": "cat"}]}
    sent = [
        page.post("/decisions", json={**body, "answer": answer, "seconds": 1.0}) for _ in range(2)
    ]
    assert [reply.status_code for reply in sent] == [200, 200]
    assert sent[0].json()["decision"] == sent[1].json()["decision"]
    (decision,) = page.app.state.database.write(read_answers)
    assert decision == {"boxes": [{"box": [30.0, 20.0, 40.0, 32.0], "label": "cat"}]}


def read_answers(connection):
    return list(connection.execute(select(decisions.c.answer)).scalars())
