"""axe on rarely visited pages: sign-in, refusals, the box check, finished stages."""

import itertools

import pytest
from page_checks import find_page_faults
from review_toys import GOOD, YES
from test_boxes_pages import filmed
from test_review_pages import REST, start_site, visit

from steadyeye.data.annotations.review_set import image_path
from steadyeye.review.protocol import reviewers
from steadyeye.review.workflow import decisions, queue
from steadyeye.review.workflow.decisions import Rules, Submission

__all__ = ["filmed", "start_site", "visit"]

keys = map("request-{:08d}".format, itertools.count())


def answer_stage(site, name, stage, answer):
    """Answers all that a person is given in a stage, without a browser; returns how many."""
    rules = Rules(site.plan, site.folder.class_names, site.folder.fingerprint)
    with site.db.writing() as c:
        who = next(person for person in reviewers.list_reviewers(c) if person.name == name)
        answered = 0
        while served := queue.serve_items(c, site.plan, who, stage, 1):
            own = served[0]
            submission = {"answer": answer(own.payload), "seconds": 1.0, "key": next(keys)}
            decisions.decide(c, rules, who, Submission(own.assignment, own.nonce, **submission))
            answered += 1
    return answered


@pytest.mark.slow
def test_the_page_of_the_box_check_has_no_violations(filmed, visit):
    site = filmed()
    site.join("ann")
    box_count = answer_stage(site, "ann", "boxes", lambda payload: {"boxes": payload["boxes"]})
    assert box_count == 6
    ben = visit(site.join("ben"), bypass_csp=True).stage("box_check")
    assert ben.text("h1") == "Box check"
    assert find_page_faults(ben.page) == []
    ben.press("Tab", "l")
    assert find_page_faults(ben.page) == []
    assert answer_stage(site, "ben", "box_check", lambda s: {"boxes": s["boxes"]}) == 6
    ben.stage("box_check")
    assert ben.page.locator(REST).count() == 1
    assert find_page_faults(ben.page) == []


@pytest.mark.slow
def test_sign_in_and_what_is_refused(start_site, visit):
    site = start_site()
    ann = visit(site.join("ann"), bypass_csp=True)
    page = ann.page
    for path, title in (
        ("dashboard", "Not allowed"),
        ("items", "Not allowed"),
        ("nowhere", "Page not found"),
        ("stages/none", "Page not found"),
    ):
        page.goto(f"{site.base}/{path}")
        assert ann.text("h1") == title
        assert find_page_faults(page) == [], path
    page.goto(f"{site.base}/r#{'x' * 43}")
    page.locator("#entry", has_text="link").wait_for()
    assert find_page_faults(page) == []
    ann.context.clear_cookies()
    page.goto(f"{site.base}/r")
    page.locator("#entry").wait_for()
    assert find_page_faults(page) == []
    page.goto(f"{site.base}/stages/pairs")
    assert ann.text("h1") == "You are not signed in"
    assert find_page_faults(page) == []
    ann.complaints[:] = [text for text in ann.complaints if "Failed to load" not in text]


@pytest.mark.slow
def test_a_finished_review_and_one_that_lacks_pictures(start_site, visit):
    site = start_site(stages={"anchors": 1, "pairs": 1})
    site.join("ann")
    assert answer_stage(site, "ann", "anchors", lambda payload: GOOD) == 2
    boss = visit(site.join("boss", admin=True), bypass_csp=True)
    page = boss.page
    for row in site.folder.frames.to_pylist():
        image_path(site.folder.root, row["image"]).rename(site.folder.root / row["image"])
    boss.stage("pairs")
    boss.wait_text("#rest .headline", "cannot be shown")
    assert find_page_faults(page) == []
    page.goto(f"{site.base}/dashboard")
    assert page.locator("section[aria-labelledby=pictures] li").count() > 1
    assert find_page_faults(page) == []
    for row in site.folder.frames.to_pylist():
        (site.folder.root / row["image"]).rename(image_path(site.folder.root, row["image"]))
    answered = [answer_stage(site, name, "pairs", lambda payload: YES) for name in ("ann", "boss")]
    assert sum(answered) == 8
    page.goto(f"{site.base}/dashboard")
    assert boss.text(".headline").startswith("Done: export with")
    assert find_page_faults(page) == []
    boss.stage("pairs")
    boss.wait_text("#rest .headline", "Done: no item is open")
    assert find_page_faults(page) == []
    page.goto(f"{site.base}/")
    assert find_page_faults(page) == []
    boss.complaints[:] = [text for text in boss.complaints if "404" not in text]
