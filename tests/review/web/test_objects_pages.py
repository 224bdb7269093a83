"""Objects in a real browser: what is in the box, the entry quiz before it, what was rejected."""

import pytest
from page_checks import find_page_faults
from review_boxes import FINE, write
from test_review_pages import REST, Site, boxes_on, choose, outcomes, visit

from steadyeye.data.annotations import review_set
from steadyeye.data.annotations.review_set import image_path
from steadyeye.review.database import quiz_answers
from steadyeye.review.sampling.sampling import sample_boxes

__all__ = ["visit"]

DOG = {**FINE, "object": "dog"}
PANEL = "#quiz:not([hidden]) button:not([hidden])"


@pytest.fixture
def detected(tmp_path):
    """Starts a site over pictures, in the first of which there are two detections, of `cat`.

    The data calls all of them `dog`.
    """
    started = []

    def start(pictures=6, **settings):
        content = {
            "images": [{"id": n, "file_name": f"in/{n}"} for n in range(pictures)],
            "categories": [
                {"id": n, "name": name} for n, name in enumerate(("cat", "dog", "bear"))
            ],
            "annotations": [
                {"id": f"b{n}", "image_id": max(n - 1, 0), "category_id": 0, "score": 0.9}
                | {"bbox": [2 + 15 * (n == 1), 3, 14, 20], "annotated": "dog"}
                for n in range(pictures + 1)
            ],
        }
        sample_boxes(*write(tmp_path, content, ["jpg"] * pictures))
        started.append(Site(review_set.read(tmp_path / "set"), **settings))
        return started[-1]

    yield start
    for site in started:
        site.stop()


def ask_quiz(size=2, questions=4):
    answers = {"classification": {f"b{n}": DOG for n in range(2, 2 + questions)}}
    gold = {"every": 1_000_000, "answers": answers}
    return {"quiz": {"size": size, "least": 1.0}, "gold": gold, "stages": {"classification": 1}}


def answer_quiz(person, name):
    """Answers a question of the quiz; returns what the page says of it."""
    choose(person, name, "a")
    person.page.wait_for_selector(PANEL)
    return person.text("#quiz .headline")


def proceed(person):
    person.press("Enter")
    person.page.wait_for_selector(f"#item:not([hidden]) [data-step=object]:not([hidden]), {REST}")
    person.page.wait_for_selector("#quiz button", state="hidden")


def test_the_entry_quiz_is_no_vote_on_the_object(detected, visit):
    site = detected(**ask_quiz())
    ann = visit(site.join("ann"), bypass_csp=True).stage("classification")
    assert ann.text("#quiz .headline").startswith("Entry quiz, question 1 of 2.")
    assert ann.json("stages/classification")["next"] == []
    assert "predicted" not in ann.page.locator("#setup").inner_text()
    assert answer_quiz(ann, "dog") == "Right: dog, well sized."
    proceed(ann)
    headline = answer_quiz(ann, "cat")
    assert headline.startswith(
        "Not right. You said: cat, well sized. The answer is: dog, well sized."
    )
    assert "1 of 2 were right: too few." in headline
    assert ann.text("#quiz ul") == "You said: cat, well sized. The answer is: dog, well sized."
    assert find_page_faults(ann.page) == []
    proceed(ann)
    answer_quiz(ann, "dog")
    proceed(ann)
    assert "2 of 2 were right: you passed." in answer_quiz(ann, "dog")
    assert site.list_decisions() == []
    assert ann.json("index")["stages"][0]["mine"] == 0
    ann.press("Enter")
    ann.page.wait_for_selector("#quiz", state="hidden")
    ann.stage("classification")
    assert find_page_faults(ann.page) == []

    choose(ann, "cat")
    assert find_page_faults(ann.page) == []
    ann.press("p")
    ann.press("o")
    assert find_page_faults(ann.page) == []
    ann.press("Escape")
    choose(ann, "cat")
    ann.decide("a")
    assert ann.saved() == "Saved: cat, well sized"
    ann.press("o")
    ann.page.keyboard.type("Goat")
    ann.press("Enter")
    ann.press("y", "n", "y")
    ann.decide("n")
    assert ann.saved() == "Saved: Goat, well sized, occluded"
    assert not ann.decide("t")
    assert ann.saved() == "Saved: cannot tell"
    reasons = sorted(
        outcome.reason
        for key, outcome in outcomes(site, "classification").items()
        if outcome.reason
    )
    assert reasons == ["cannot tell what it is", "occluded", "the detector was right"]


def test_a_quiz_continues_without_a_question_whose_picture_is_missing(detected, visit):
    site = detected(**ask_quiz())
    ann = visit(site.join("ann"))
    first = ann.json("stages/classification")["quiz"]
    path = image_path(site.folder.root, first["payload"]["image"])
    path.rename(path.with_suffix(".away"))
    ann.stage("classification")
    assert ann.page.get_attribute("#item", "data-assignment") != f"quiz {first['item']}"
    assert ann.text("#quiz .headline").startswith("Entry quiz, question 1 of 2.")
    assert answer_quiz(ann, "dog") == "Right: dog, well sized."
    proceed(ann)
    assert "2 of 2 were right: you passed." in answer_quiz(ann, "dog")
    ann.complaints[:] = [text for text in ann.complaints if "404" not in text]


def test_a_reviewer_who_fails_the_quiz_continues_after_the_admin_allows_it(detected, visit):
    site = detected(**ask_quiz(questions=3))
    ann, boss = visit(site.join("ann")), visit(site.join("boss", admin=True))
    ann.stage("classification")
    answer_quiz(ann, "cat")
    proceed(ann)
    answer_quiz(ann, "cat")
    proceed(ann)
    why = "0 of 2 questions of the entry quiz of Objects were right; ask the admin"
    assert ann.text("#rest .headline") == f"You are paused: {why}"
    boss.page.goto(f"{site.base}/dashboard")
    assert why in boss.text("[data-label=State]")
    boss.page.get_by_role("button", name="Let ann continue").click()
    boss.page.get_by_role("button", name="Pause ann").wait_for()
    ann.stage("classification")
    assert ann.page.locator("#quiz").is_hidden()
    choose(ann, "dog")
    ann.decide("a")
    ann.saved()
    (only,) = site.list_decisions()
    assert only.answer == {**DOG, "listed": True}
    with site.db.reading() as c:
        assert [row.right for row in c.execute(quiz_answers.select())] == [False, False]
    (person,) = boss.json("dashboard")["reviewers"]
    assert (person["decisions"], tuple(person["gold"])) == (1, (0, 0))


def test_rejected_suggestions_are_seen_and_not_saved(detected, visit):
    site = detected(pictures=1, stages={"classification": 1, "boxes": 1})
    ann = visit(site.join("ann"), bypass_csp=True).stage("classification")
    while not ann.page.locator(REST).count():
        wide = ann.page.locator("rect.chosen").get_attribute("x") == "17"
        choose(ann, "dog", *("y", "y", "n", "n") if wide else ("a",))
        ann.saved()
        ann.page.wait_for_selector("#item[aria-busy=false]:not([hidden]), " + REST)
    ann.stage("boxes")
    assert boxes_on(ann) == [[2, 3, 16, 23]]
    assert ann.page.locator("rect.rejected").count() == 1
    assert ann.text("#rejected") == "Rejected suggestions (dotted, not saved): dog (blurry)"
    assert find_page_faults(ann.page) == []
    ann.decide("s")
    ann.saved()
    (answer,) = [outcome.answer for outcome in outcomes(site, "boxes").values()]
    assert answer == {"boxes": [{"box": [2.0, 3.0, 16.0, 23.0], "label": "dog"}]}
