"""The first screen of a report, and the order of the sections below it."""

import re
from dataclasses import replace

import numpy as np
import pytest
import simplejpeg
from hand_tables import HAND, evaluated, table

from steadyeye.core.report_types import Exhibit, Picture, Section, Topic
from steadyeye.core.result_lookup import limit
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.render.document import Document, grids, interval_of, title, value_of
from steadyeye.report.render.formats import render_markdown
from steadyeye.report.render.headline import headline
from steadyeye.report.render.html import render_html
from steadyeye.report.sections import sections


def document(cells, **more):
    """The report of evaluated models; `more` replaces its parts."""
    report = Document(
        title=title(cells),
        headline=headline(cells),
        evaluated=cells,
        sections=sections(cells),
        provenance={},
        commands=(),
    )
    return replace(report, **more)


@pytest.fixture(scope="module")
def three():
    """The report of three models on two sets of one video."""
    ids = [f"s{i}" for i in range(8)]
    return document([evaluated(table(**HAND, ids=ids), model=f"model_{i}") for i in range(3)])


def picture(data, shot):
    return simplejpeg.encode_jpeg(np.full((54, 96, 3), 90, dtype=np.uint8))


def test_models_are_rows_and_their_main_numbers_columns(three):
    (grid,) = three.grids
    assert grid.heads == ("accuracy", "pm-2", "drop ±2", "flip rate")
    assert [row.entry.predictions.model for row in grid.rows] == ["model_0", "model_1", "model_2"]
    accuracy, steady, drop, _ = grid.rows[0].results
    assert value_of(drop) == f"{(accuracy.value - steady.value) * 100:.1f}\u202fpp"
    assert interval_of(drop).endswith("\u202fpp")


@pytest.fixture(scope="module")
def two_sets():
    """The report of two models on two data sets whose neighbours reach differently far."""
    more = {"stored": {}, "data": "other", "fingerprint": "other"}
    near = {**HAND, "offsets": [-1, 0, 1, 0, 1, 1, 0, 1]}
    ids = [f"s{i}" for i in range(8)]
    cells = [evaluated(table(**HAND, ids=ids), model=f"model_{i}") for i in range(2)]
    cells += [evaluated(table(**near, ids=ids), model=f"model_{i}", **more) for i in range(2)]
    return document(cells)


def test_numbers_of_several_k_share_a_column_and_say_their_own(two_sets):
    (grid,) = two_sets.grids
    assert grid.heads == ("accuracy", "pm-k", "drop ±k", "flip rate")
    assert len(grid.rows) == 4
    page = render_html(two_sets, picture)
    assert (page.count("pm-2: n = "), page.count("pm-1: n = ")) == (2, 2)
    assert "; pm-2 |" in render_markdown(two_sets).replace("\\", "")


def test_models_with_other_numbers_stand_in_a_table_of_their_own():
    predictions = table(**HAND)
    share = Result("map(iou=0.5)", 0.5, 0.4, 0.6, 9, "by videos")
    flips = Result("flip_rate", 0.1, 0.0, 0.2, 9, "by videos")
    both = [Evaluated(predictions, {r.name: r}) for r in (share, flips)]
    assert [grid.heads for grid in grids(both)] == [("mAP",), ("flip rate",)]
    points = Result("failure_points", None, None, None, 2, "search", cells=(share,))
    assert grids([Evaluated(predictions, {"failure_points": points})]) == ()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("Clopper–Pearson, n = 40, within this one video only", "within this one video only"),
        ("bootstrap over images of this one video only", "within this one video only"),
        ("none: too few images: only 1 image with objects", "no interval: too few images"),
        ("none: 3 in one video are too few", "no interval: 3 in one video are too few"),
        ("Clopper–Pearson, n = 40", ""),
    ],
)
def test_the_limit_of_an_interval_has_a_short_form(method, words):
    assert limit(method) == words


def test_a_limit_of_an_interval_is_shown_with_its_number():
    """What all intervals of a model share is said once, beside its name, another at its number."""
    within = "Clopper–Pearson, n = 9, within this one video only"
    whole, drop = Result("accuracy", 0.5, 0.2, 0.8, 9, within), "none: too few videos"
    same = {"accuracy": whole, "flip_rate": replace(whole, name="flip_rate")}
    other = {"accuracy": whole, "flip_rate": Result("flip_rate", 0.5, None, None, 9, drop)}
    (first_row, second_row) = grids([Evaluated(table(**HAND), r) for r in (same, other)])[0].rows
    assert (first_row.limit, second_row.limit) == ("within this one video only", "")
    page = render_html(document([second_row.entry], sections=()), picture)
    first = page[page.index('<div id="first">') : page.index("<nav")]
    assert "<small>no interval: too few videos</small>" in first
    assert "<small>within this one video only</small>" in first
    assert first.count("one video only") == 2, "in the sentence, and at the number"
    none = Evaluated(
        table(**HAND), {"accuracy": replace(whole, low=None, high=None, interval=drop)}
    )
    page = render_html(document([none], sections=()), picture)
    assert "<small>no interval: too few videos</small></th>" in page


@pytest.mark.parametrize(
    ("columns", "question"),
    [
        (("truth", "operator", "level"), "How steady are the predictions under degradation?"),
        (("truth", "group", "offset"), "How steady are the predictions?"),
        (("group", "frame", "seconds"), "How steady are the predictions?"),
        (("boxes", "detections"), "How good are the detections?"),
        (("truth",), "How often are the predictions right?"),
    ],
)
def test_only_what_is_about_video_has_a_title_about_video(columns, question):
    predictions = replace(table(**HAND), columns=columns)
    assert title([Evaluated(predictions, {})]) == question


def test_the_terms_of_still_images_are_not_of_video():
    accuracy = {"accuracy": Result("accuracy", 0.5, 0.2, 0.8, 9, "Clopper–Pearson, n = 9")}
    terms = document([Evaluated(table(**HAND), accuracy)], sections=()).reading
    assert [term for term, _ in terms] == ["accuracy", "n", "classes", "95\u202f% interval"]
    assert not any(word in meaning for _, meaning in terms for word in ("frame", "video", "anchor"))


def test_sections_stand_in_the_order_of_the_questions(three):
    order = list(Topic)
    section_topics = [section.topic for section in three.sections]
    assert section_topics == sorted(section_topics, key=order.index)
    assert Topic.MORE not in section_topics, "every analysis says which question it answers"
    topics = [topic for topic, _ in three.topics]
    assert topics[:3] == [Topic.WHAT, Topic.WHEN, Topic.SURE]
    page = render_html(three, picture)
    places = [page.index(f'id="{topic.name.lower()}"') for topic in topics]
    assert places == sorted(places)
    assert page.index('class="main"') < places[0] < page.index('class="numbers"')


def test_a_section_without_content_is_left_out(three):
    nothing = Section("Nothing here", Topic.WHAT, method=("for a reason",))
    page = render_html(replace(three, sections=(*three.sections, nothing)), picture)
    assert "Nothing here" not in page
    assert "Nothing here" not in render_markdown(replace(three, sections=(nothing,)))


def test_the_clearest_break_stands_first_where_its_pictures_are_kept(three):
    (lead,) = [section.lead for section in three.sections if section.topic is Topic.WHAT][:1]
    assert lead.title.startswith("The clearest break: ")
    assert [shot.right for shot in lead.pictures] == [True, False]
    assert 'class="lead"' in render_html(three, picture)
    gone = {shot.sample for section in three.sections if section.lead for shot in
            section.lead.pictures}  # fmt: skip
    without = render_html(
        three, lambda data, shot: None if shot.sample in gone else picture(data, shot)
    )
    assert 'class="lead"' not in without


def test_markdown_says_the_same_first(three):
    text = render_markdown(three).replace("\\", "")
    assert all(sentence in text for sentence in three.headline)
    grid, _, rest = text.partition("## Where the model fails")
    assert "| model | data | accuracy | pm-2 | drop ±2 | flip rate |" in grid
    assert "### All numbers" in rest
    assert rest.index("## Steadiness over frames and levels") < rest.index(
        "## How certain the numbers are"
    )


@pytest.fixture(scope="module", params=["three", "two_sets"])
def report_page(all_windows, request, tmp_path_factory):
    report = request.getfixturevalue(request.param)
    shots = tuple(Picture(f"s{i}", f"{i}", ("a line",) * 3, right=i == 0) for i in (0, 1))
    first = replace(report.sections[0], lead=Exhibit("break", "model_0", "data", shots))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(replace(report, sections=(first, *report.sections[1:])), picture))
    return all_windows.open(path.as_uri(), offline=True).page


def ends(page, selector):
    """The right and lower edges of an element on the screen."""
    return page.locator(selector).last.evaluate(
        "each => { const box = each.getBoundingClientRect(); return [box.right, box.bottom]; }"
    )


@pytest.mark.slow
def test_the_first_screen_fits(report_page):
    report_page.set_viewport_size({"width": 1280, "height": 800})
    for selector in (".headline", ".lead", ".main"):
        right, bottom = ends(report_page, selector)
        assert right <= 1280
        assert bottom <= 800, selector
    report_page.set_viewport_size({"width": 390, "height": 844})
    assert report_page.evaluate("document.documentElement.scrollWidth") == 390
    assert ends(report_page, ".lead .shot")[1] <= 844
    for cell in report_page.locator(".main td b").all():
        assert cell.evaluate("each => each.getBoundingClientRect().right") <= 390


@pytest.mark.slow
def test_folded_parts_of_a_report_are_printed(report_page):
    assert report_page.locator("details:not([open])").count()
    report_page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not report_page.locator("details:not([open])").count()
    report_page.emulate_media(media="print")
    assert not report_page.locator("nav").is_visible()
    assert not report_page.locator(".save").first.is_visible()
    report_page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert report_page.locator("details:not([open])").count()


@pytest.mark.parametrize(
    ("sentences", "folded"), [(4, None), (5, "1 more sentence"), (6, "2 more sentences")]
)
def test_sentences_that_have_no_room_are_folded_and_counted(three, sentences, folded):
    headline = tuple(f"Sentence {i}." for i in range(sentences))
    text = render_html(replace(three, headline=headline), picture)
    first = text.partition('<div id="first"')[2].partition("<nav")[0]
    assert all(sentence in first for sentence in headline)
    assert (re.findall(r"<summary>(\d+ more .*)</summary>", first) or [None]) == [folded]
