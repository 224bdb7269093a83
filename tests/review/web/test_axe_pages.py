"""axe on pages that people seldom see: sign-in, refusals, the box check, what is finished."""

import itertools

import pytest
from page_checks import LOOKS, Opened, find_faults, find_violations, show_as
from review_toys import GOOD, YES
from test_boxes_pages import filmed
from test_review_pages import REST, site, visit

from steadyeye.data.annotations.review_set import image_path
from steadyeye.review.protocol import reviewers
from steadyeye.review.workflow import decisions, queue
from steadyeye.review.workflow.decisions import Rules, Submission

__all__ = ["filmed", "site", "visit"]

keys = map("request-{:08d}".format, itertools.count())


def answer_stage(here, name, stage, answer):
    """Answers all that a person is given in a stage, without a browser; returns how many."""
    rules = Rules(here.plan, here.folder.class_names, here.folder.fingerprint)
    with here.db.writing() as c:
        who = next(one for one in reviewers.list_reviewers(c) if one.name == name)
        answered = 0
        while served := queue.serve_items(c, here.plan, who, stage, 1):
            own = served[0]
            said = {"answer": answer(own.payload), "seconds": 1.0, "key": next(keys)}
            decisions.decide(c, rules, who, Submission(own.assignment, own.nonce, **said))
            answered += 1
    return answered


def look_at(page, name, found):
    """Adds what is cut on a page, and what axe says of it, in each look."""
    for look in LOOKS:
        show_as(page, look)
        found[name, look] = [*find_faults(Opened(page)), *find_violations(page)]


def finish(found):
    assert found == {name: [] for name in found}


@pytest.mark.slow
def test_the_box_check(filmed, visit):
    here = filmed()
    here.join("ann")
    drawn = answer_stage(here, "ann", "boxes", lambda shown: {"boxes": shown["boxes"]})
    assert drawn == 6
    found = {}
    ben = visit(here.join("ben"), bypass_csp=True).stage("box_check")
    assert ben.text("h1") == "Box check"
    look_at(ben.page, "box check", found)
    ben.press("Tab", "l")
    look_at(ben.page, "box check, a box chosen", found)
    assert answer_stage(here, "ben", "box_check", lambda s: {"boxes": s["boxes"]}) == 6
    ben.stage("box_check")
    assert ben.page.locator(REST).count() == 1
    look_at(ben.page, "box check, finished", found)
    finish(found)


@pytest.mark.slow
def test_sign_in_and_what_is_refused(site, visit):
    here = site()
    ann = visit(here.join("ann"), bypass_csp=True)
    found = {}
    page = ann.page
    for path, title in (
        ("dashboard", "Not allowed"),
        ("items", "Not allowed"),
        ("nowhere", "Page not found"),
        ("stages/none", "Page not found"),
    ):
        page.goto(f"{here.base}/{path}")
        assert ann.text("h1") == title
        look_at(page, path, found)
    page.goto(f"{here.base}/r#{'x' * 43}")
    page.locator("#entry", has_text="link").wait_for()
    look_at(page, "a link of nobody", found)
    ann.context.clear_cookies()
    page.goto(f"{here.base}/r")
    page.locator("#entry").wait_for()
    look_at(page, "sign-in without a link", found)
    page.goto(f"{here.base}/stages/pairs")
    assert ann.text("h1") == "You are not signed in"
    look_at(page, "not signed in", found)
    finish(found)
    ann.complaints[:] = [text for text in ann.complaints if "Failed to load" not in text]


@pytest.mark.slow
def test_a_finished_review_and_one_that_lacks_pictures(site, visit):
    here = site(stages={"anchors": 1, "pairs": 1})
    here.join("ann")
    assert answer_stage(here, "ann", "anchors", lambda shown: GOOD) == 2
    boss = visit(here.join("boss", admin=True), bypass_csp=True)
    page, found = boss.page, {}
    for row in here.folder.frames.to_pylist():
        image_path(here.folder.root, row["image"]).rename(here.folder.root / row["image"])
    boss.stage("pairs")
    boss.wait_text("#rest .headline", "cannot be shown")
    look_at(page, "no picture", found)
    page.goto(f"{here.base}/dashboard")
    assert page.locator("section[aria-labelledby=pictures] li").count() > 1
    look_at(page, "dashboard, no picture", found)
    for row in here.folder.frames.to_pylist():
        (here.folder.root / row["image"]).rename(image_path(here.folder.root, row["image"]))
    answered = [answer_stage(here, name, "pairs", lambda shown: YES) for name in ("ann", "boss")]
    assert sum(answered) == 8
    page.goto(f"{here.base}/dashboard")
    assert boss.text(".headline").startswith("Done: export with")
    look_at(page, "finished dashboard", found)
    boss.stage("pairs")
    boss.wait_text("#rest .headline", "Done: nothing is left")
    look_at(page, "finished stage", found)
    page.goto(f"{here.base}/")
    look_at(page, "finished overview", found)
    finish(found)
    boss.complaints[:] = [text for text in boss.complaints if "404" not in text]
