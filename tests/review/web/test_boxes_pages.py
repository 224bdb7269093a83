"""Boxes in a real browser: classes by search, edges and view by key, tracks through a video."""

import json
import re

import numpy as np
import pytest
from page_checks import LOOKS, Look, find_page_faults, show_as
from playwright.sync_api import expect
from test_review_pages import READY, SMALL, Site, boxes_on, outcomes, visit

from steadyeye.data.annotations import review_set
from steadyeye.data.images import image_file
from steadyeye.review.sampling.sampling import sample_boxes

__all__ = ["visit"]

SIZE = (320, 240)
FRAMES = 6
CLASSES = ("car", "truck", *(f"thing {n}" for n in range(1, 598)), "Zamboni")


def move(frame):
    """Where the object is on a frame: it goes right by 20 pixels, and down by 5, a frame."""
    x, y = 30 + 20 * frame, 40 + 5 * frame
    return [x, y, x + 60, y + 50]


def film(root, video, frames=FRAMES):
    """The files of a video of a bright rectangle that moves; its boxes as COCO's annotations."""
    rng = np.random.default_rng(len(video))
    files = []
    for frame in range(frames):
        picture = rng.integers(40, 70, (SIZE[1], SIZE[0], 3), np.uint8)
        x0, y0, x1, y1 = move(frame)
        picture[y0:y1, x0:x1] = (200, 180, 40)
        path = root / "images" / video / f"{frame}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image_file.encode(picture, ".jpg"))
        files.append(f"{video}/{frame}.jpg")
    return files


@pytest.fixture
def filmed(tmp_path):
    """Starts a site over one video, of whose frames a suggestion misses the object by far."""
    started = []

    def start(**settings):
        files = film(tmp_path, "clip")
        content = {
            "images": [{"id": n, "file_name": file} for n, file in enumerate(files)],
            "categories": [{"id": n, "name": name} for n, name in enumerate(CLASSES, start=1)],
            "annotations": [
                {"id": n, "image_id": n, "category_id": 2, "bbox": [2, 150, 40, 30]}
                for n in range(len(files))
            ],
        }
        (tmp_path / "boxes.json").write_text(json.dumps(content))
        out = tmp_path / "set"
        sample_boxes(tmp_path / "boxes.json", tmp_path / "images", out, lambda done: None)
        started.append(Site(review_set.read(out), **{"stages": {"boxes": 1}, **settings}))
        return started[-1]

    yield start
    for site in started:
        site.stop()


def entries(person):
    return person.page.locator("#boxes button").all_inner_texts()


def focus(person):
    return person.page.evaluate("document.activeElement.innerText")


def drag(person, corners):
    """Draws a box by pointer, wherever the view is."""
    place = person.page.locator(".over").bounding_box()
    spots = np.array(corners).reshape(2, 2) * place["width"] / SIZE[0] + (place["x"], place["y"])
    person.page.mouse.move(*spots[0])
    person.page.mouse.down()
    person.page.mouse.move(*spots[1], steps=2)
    person.page.mouse.up()


def test_a_class_among_600_is_found_by_typing_and_keeps_its_digit(filmed, visit):
    ann = visit(filmed().join("ann")).stage("boxes")
    assert ann.text("#quick").split() == ["truck", "1"]
    ann.press("Tab", "l")
    box = ann.page.get_by_role("combobox", name=re.compile("Class"))
    assert box.get_attribute("aria-expanded") == "false"
    ann.page.keyboard.type("zam")
    assert box.get_attribute("aria-expanded") == "true"
    options = ann.page.get_by_role("listbox").get_by_role("option")
    assert options.all_inner_texts() == ["Zamboni"]
    active = ann.page.locator(f"#{box.get_attribute('aria-activedescendant')}")
    assert active.get_attribute("aria-selected") == "true"
    assert ann.text("#now") == "1 class"
    ann.press("Enter")
    assert focus(ann).startswith("1. Zamboni, 40 × 30")
    assert not options.first.is_visible()
    # used once, it has a digit; Escape leaves all as it was
    ann.press("1")
    assert entries(ann)[0].startswith("1. truck")
    ann.press("2", "l")
    ann.page.keyboard.type("thing 59")
    class_names = options.all_inner_texts()
    assert class_names == ["thing 59", *(f"thing {n}" for n in range(590, 598))]
    ann.press("ArrowDown", "ArrowDown", "Escape")
    assert entries(ann)[0].startswith("1. Zamboni")
    assert box.input_value() == "Zamboni"
    ann.press("l", "ArrowDown", "ArrowDown", "Enter")
    assert entries(ann)[0].startswith("1. truck")
    ann.page.get_by_role("combobox").click()
    assert "541 more" in options.last.inner_text()
    options.nth(3).click()
    assert entries(ann)[0].startswith("1. thing 1,")


def test_edges_and_the_view_by_keyboard_and_what_was_taken_back(filmed, visit):
    ann = visit(filmed().join("ann")).stage("boxes")
    first = ann.page.get_attribute("#item", "data-assignment")
    ann.press("Tab", "Alt+ArrowRight", "Alt+ArrowUp", "Shift+ArrowRight")
    assert boxes_on(ann) == [[3, 149, 43, 180]]
    ann.press("Control+Alt+ArrowRight", "Control+z", "ArrowLeft")
    assert boxes_on(ann) == [[2, 149, 42, 180]]
    transform = "getComputedStyle(document.querySelector('.layer')).transform"
    ann.press("x")
    zoomed = ann.page.evaluate(transform)
    scale = float(ann.page.get_attribute(".frames", "data-scale"))
    assert scale == pytest.approx(0.6 / (31 / SIZE[1]), abs=0.01)
    ann.press("v", "ArrowDown")
    panned = ann.page.evaluate(transform)
    assert panned != zoomed
    assert boxes_on(ann) == [[2, 149, 42, 180]]
    ann.press("v")
    # drawn where the view is, and moved by the middle button
    drag(ann, (20, 190, 60, 215))
    assert boxes_on(ann)[1] == pytest.approx([20, 190, 60, 215], abs=0.5)
    place = ann.page.locator(".canvas").bounding_box()
    ann.page.mouse.move(place["x"] + 200, place["y"] + 100)
    ann.page.mouse.down(button="middle")
    ann.page.mouse.move(place["x"] + 100, place["y"] + 150, steps=3)
    ann.page.mouse.up(button="middle")
    assert ann.page.evaluate(transform) != panned
    assert len(boxes_on(ann)) == 2
    boxes = boxes_on(ann)
    ann.decide("s")
    ann.press("z")
    ann.page.wait_for_selector(f"{READY}[data-assignment='{first}']")
    assert boxes_on(ann) == boxes


def test_a_video_by_keyboard_from_key_frame_to_key_frame(filmed, visit):
    site = filmed(key_frames=5)
    ann = visit(site.join("ann")).stage("boxes")
    assert ann.text("#away") == "320 × 240 pixels · clip, frame 1 of 6, key frame"
    ann.press("p")
    ann.wait_text("#between", "No frame to take boxes from has an answer yet")
    ann.press("Tab", "Delete")
    drag(ann, move(0))
    ann.press("l")
    ann.page.keyboard.type("car")
    ann.press("Enter")
    assert entries(ann)[0].startswith("1. car, new track")
    ann.decide("s")
    # the last frame; copied from the first, the box keeps its track and is moved to where it is
    assert "frame 6 of 6, key frame" in ann.text("#away")
    ann.press("Tab", "Delete", "p")
    ann.wait_text("#between", "From frame 1: 1 added")
    assert entries(ann)[0].startswith("1. car, track 1,")
    ann.press("Tab", *["Control+ArrowRight"] * 10, *["Control+ArrowDown"] * 2, *["ArrowDown"] * 5)
    ann.decide("s")
    for frame in range(1, 5):
        assert f"frame {frame + 1} of 6" in ann.text("#away")
        # filled in without a key; of what was taken back i fills it in again
        ann.wait_text("#between", "1 added")
        if frame == 1:
            ann.press("e")
            assert len(boxes_on(ann)) == 1
            ann.press("i")
            expect(ann.page.locator("#boxes li")).to_have_count(2)
        ann.press("Tab", "Delete")
        assert boxes_on(ann)[0] == pytest.approx(move(frame), abs=1)
        ann.press("t")
        assert ann.page.evaluate("document.activeElement.value") == "1"
        ann.press("Escape")
        ann.decide("s")
    ann.saved()
    saved_boxes = [outcome.answer["boxes"] for outcome in outcomes(site, "boxes").values()]
    assert [{(b["track"], b["label"]) for b in boxes} for boxes in saved_boxes] == [
        {(1, "car")}
    ] * FRAMES


def test_boxes_that_nobody_saw_are_not_saved(filmed, visit):
    site = filmed(key_frames=5)
    ann = visit(site.join("ann")).stage("boxes")
    routes = []

    def hold(route):
        routes.append(route)

    ann.decide("s")
    ann.press("p")
    ann.wait_text("#between", "boxes of this frame joined to a track: 1")
    ann.page.route("**/nearby.json", hold)
    ann.decide("s")
    # between two key frames: saved before what lies between them is here
    ann.press("s")
    while not routes:  # what was decided before is sent first
        ann.page.wait_for_timeout(10)
    assert "frame 2 of 6" in ann.text("#away")
    routes[0].continue_()
    ann.wait_text("#trouble", "Boxes were filled in just now")
    ann.page.unroute("**/nearby.json")
    ann.decide("s")
    assert ann.text("#trouble") == ""
    ann.saved()
    assert [row.answer["boxes"][0]["track"] for row in site.list_decisions()] == [1, 1, 1]


def test_corners_of_any_box_are_dragged_and_boxes_begin_next_to_others(filmed, visit):
    ann = visit(filmed().join("ann")).stage("boxes")
    drag(ann, (100, 20, 160, 60))
    drag(ann, (45, 183, 60, 200))  # the suggestion ends at 42, 180
    assert boxes_on(ann)[0] == pytest.approx([2, 150, 57, 197], abs=1)
    drag(ann, (70, 160, 90, 190))
    assert len(boxes_on(ann)) == 3


def test_a_suggestion_near_a_track_continues_it_and_a_number_corrects_it(filmed, visit):
    ann = visit(filmed(key_frames=1).join("ann")).stage("boxes")
    ann.decide("s")
    assert entries(ann)[0].startswith("1. truck, new track")
    ann.press("p")
    ann.wait_text("#between", "0 added, boxes of this frame joined to a track: 1")
    assert entries(ann)[0].startswith("1. truck, track 1,")
    ann.press("n", "t")
    ann.page.keyboard.type("1")
    ann.press("Enter")
    ann.wait_text("#now", "Box 1 is of track 1 already")
    ann.press("t")
    ann.page.keyboard.type("77")
    ann.press("Enter")
    assert focus(ann).startswith("2. truck, track 77")


@pytest.mark.slow
def test_no_page_of_boxes_is_cut_or_refused_by_axe(filmed, visit):
    # axe is put into the page, which its policy does not allow
    look = {"has_touch": True, "bypass_csp": True}
    ann = visit(filmed(key_frames=2).join("ann"), **look).stage("boxes")
    assert find_page_faults(ann.page) == []
    ann.press("l")
    ann.page.keyboard.type("thing")
    assert find_page_faults(ann.page) == []
    ann.press("Escape")
    for look in (LOOKS[0], LOOKS[3]):
        show_as(ann.page, look)
        controls = ann.page.locator("#item button:visible, #item input:visible")
        assert controls.evaluate_all(SMALL) == []


def test_boxes_are_drawn_by_touch(filmed, visit):
    ann = visit(filmed().join("ann"), Look(390, "light"), has_touch=True).stage("boxes")
    fingers = ann.page.context.new_cdp_session(ann.page)
    place = ann.page.locator(".over").bounding_box()
    scale = place["width"] / SIZE[0]

    def touch(kind, *points):
        spots = [
            {"x": place["x"] + x * scale, "y": place["y"] + y * scale, "id": number}
            for number, (x, y) in enumerate(points)
        ]
        fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": spots})

    touch("Start", (100, 40))
    touch("Move", (150, 80))
    touch("Move", (200, 120))
    touch("End")
    assert boxes_on(ann)[1] == pytest.approx([100, 40, 200, 120], abs=1)
    # a second finger zooms, and what the first began to draw is dropped
    touch("Start", (220, 150))
    touch("Move", (225, 155))
    touch("Start", (225, 155), (265, 155))
    touch("Move", (205, 155), (285, 155))
    touch("End")
    assert len(boxes_on(ann)) == 2
    assert float(ann.page.get_attribute(".frames", "data-scale")) == pytest.approx(2, abs=0.2)
    ann.page.get_by_role("combobox").tap()
    ann.page.get_by_role("option", name="thing 2", exact=True).tap()
    assert entries(ann)[1].startswith("2. thing 2,")
