"""The report in its forms, and in a browser."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import page_checks
import pytest
import simplejpeg
from hand_tables import HAND, evaluated, table
from scipy.stats import binomtest

from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.charts.specs import chart, dot
from steadyeye.report.render.document import Document
from steadyeye.report.render.formats import render_csv, render_json, render_markdown
from steadyeye.report.render.headline import headline
from steadyeye.report.render.html import render_html
from steadyeye.report.sections import sections
from steadyeye.runner.collect import results

EVIL = "<script>alert(1)</script>"
RECORD = {"provenance": {"steadyeye": "1", "commit": "c", "python": "3"}}


@pytest.fixture(scope="module")
def document():
    ids = [f"s{i}{EVIL}" for i in range(8)]
    names = {"classes": (EVIL, "cat"), "model_classes": (EVIL, "cat"), "data": f"data {EVIL}"}
    cells = [evaluated(table(**HAND, ids=ids), model=m, **names) for m in ("one", f"two {EVIL}")]
    record = {**RECORD, "job": {"x": EVIL}}
    return Document(
        title="How steady are the predictions?",
        headline=headline(cells),
        evaluated=cells,
        sections=sections(cells),
        provenance={"runs/a": record},
        commands=(f"steadyeye run --model '{EVIL}'",),
    )


def charts(document):
    """How many figures a report has; pm-k against k, published models and classes at least."""
    count = sum(len(section.figures) for section in document.sections)
    assert count >= 3
    return count


def picture(data, shot):
    """A grey picture for every sample but one."""
    if shot.sample.startswith("s5"):
        return None
    return simplejpeg.encode_jpeg(np.full((54, 96, 3), 90, dtype=np.uint8))


class Page(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def test_a_percent_sign_stays_in_the_line_of_its_number(document):
    html = render_html(replace(document, headline=("right in 95 % of 5 frames, 5%",)), picture)
    assert "right in 95\u202f% of 5 frames, 5%" in html
    captions = re.findall(r"<figcaption.*?</figcaption>", html, re.DOTALL)
    assert any("95\u202f% intervals" in caption for caption in captions)
    assert not any(re.search(r"\d %", caption) for caption in captions)


def test_methods_that_models_share_are_stated_once(document):
    (data,) = {entry.predictions.data for entry in document.evaluated}
    assert len(document.methods) == len(document.evaluated[0].results)
    assert all(line.startswith(f"all models, {data}, ") for line in document.methods)


def test_a_topic_may_lead(document):
    topics = [topic for topic, _ in document.topics]
    led = [topic for topic, _ in replace(document, leading=Topic.COMPARED).topics]
    assert topics[0] is not Topic.COMPARED
    assert led == [Topic.COMPARED, *(topic for topic in topics if topic is not Topic.COMPARED)]


def test_the_page_asks_no_network_and_escapes_what_it_is_given(document):
    html = render_html(document, picture)
    page = Page(html)
    for tag, attrs in page.tags:
        for key in ("src", "href"):
            assert not (attrs.get(key) or "#").startswith(("http", "//")), (tag, attrs)
    policy = [
        a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy[0].startswith("default-src 'none'")
    assert "alert(1)" in html
    assert EVIL not in html
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert len(scripts) == charts(document) + 3  # Vega, the page, its viewer
    titles = "".join(page.texts)
    assert all(section.title in titles for section in document.sections)
    assert "no picture stored" in titles


def test_same_input_same_bytes(document):
    assert render_html(document, picture) == render_html(document, picture)


def test_csv_and_json_hold_every_number(document):
    rows = list(csv.DictReader(io.StringIO(render_csv(document))))
    rows_by_name = {(row["model"], row["metric"]): row for row in rows}
    for entry in document.evaluated:
        for result in entry.results.values():
            row = rows_by_name[entry.predictions.model, result.name]
            assert float(row["value"]) == result.value
            assert float(row["low"]) == result.low
            assert int(row["n"]) == result.n
    content = json.loads(render_json(document))
    assert content["results"][0]["metrics"]["pm_k(k=2)"]["cells"][2]["value"] == 1 / 3


def test_markdown_escapes_tables(document):
    text = render_markdown(document)
    assert "| one |" in text
    assert EVIL not in text.split("## How to reproduce the report")[0]


def sentence(right, steady, n):
    """The headline of n anchors, `right` of them right, `steady` of these with their neighbour."""
    keys = [(i, o) for i in range(n) for o in (0, 1)]
    hit = [i < right if o == 0 else i < steady for i, o in keys]
    predictions = table(
        [[1, 0] if is_right else [0, 1] for is_right in hit],
        [[0]] * len(keys),
        [f"g{i}" for i, _ in keys],
        [o for _, o in keys],
    )
    return headline([Evaluated(predictions, results(predictions))])[0].replace("\u202f", " ")


@pytest.mark.parametrize(
    ("right", "steady", "end"),
    [
        (22, 17, "22.7 % of the 22 right ones (7.8–45.4 %) break within ±1 frames."),
        (26, 15, "42.3 % of the 26 right ones (23.4–63.1 %) break within ±1 frames."),
        (26, 26, "0.0 % of the 26 right ones (0.0–13.2 %) break within ±1 frames."),
        (26, 0, "100.0 % of the 26 right ones (86.8–100.0 %) break within ±1 frames."),
        (0, 0, "none is right, so none can break."),
    ],
)
def test_the_headline_says_percent_of_what_with_n_and_interval(right, steady, end):
    """42.3 % of 26 was "one in two"; the intervals are Clopper–Pearson's, by scipy's binomtest."""
    text = sentence(right, steady, 40)
    assert text.endswith(end)
    ends = binomtest(right, 40).proportion_ci()
    interval = f"{ends.low * 100:.1f}–{ends.high * 100:.1f} %"
    assert text.startswith(f"m is right on {right / 40 * 100:.1f} % of 40 anchors")
    assert f"(95 % interval {interval})" in text


def test_the_headline_without_labels_tells_of_flips():
    predictions = table([[1, 0], [0, 1]], [[], []], ["a", "a"], [0, 1])
    flip_rate = {"flip_rate": results(predictions)["flip_rate"]}
    (text,) = headline([Evaluated(predictions, flip_rate)])
    assert text.replace("\u202f", " ") == (
        "m changes its prediction in 100.0 % of 1 pair of consecutive frames, among 2 classes "
        "(95 % interval 2.5–100.0 %, within this one video only)."
    )


def test_a_headline_without_an_interval_says_so():
    cells = {"accuracy": Result("accuracy", 0.5, None, None, 2, "too few videos")}
    predictions = table(**HAND)
    (text,) = headline([Evaluated(predictions, cells)])
    assert text == "m is right on 50.0\u202f% of 2 images (no interval)."
    few = "none: too few images: the median class has objects in 1 video; more"
    cells = {"map": Result("map", 0.5, None, None, 1, few)}
    (text,) = headline([Evaluated(predictions, cells)])
    assert text == "m has an mAP of 50.0\u202f% on 1 image (no interval: too few images)."


def test_a_search_that_ended_early_does_not_say_that_nothing_fails():
    """A point without a level whose interval begins at one may lie there; `None` is beyond all."""
    predictions = table(**HAND)
    open_ = "the level at which accuracy falls below 50\u202f% for 1 of 1 operator"
    for low, words in ((5, open_), (None, "falls below 50\u202f% under none of 1 operator")):
        point = Result("below 0.5", None, low, None, 2, "search", unit="level")
        jpeg = Result("jpeg", None, None, None, 2, "search", cells=(point,), unit="level")
        failure_points = Result(
            "failure_points", None, None, None, 2, "search", ("4 passes",), (jpeg,)
        )
        (sentence_,) = headline([Evaluated(predictions, {"failure_points": failure_points})])
        assert words in sentence_


@pytest.fixture(scope="module")
def page_and_complaints(all_windows, document, tmp_path_factory):
    """The report in a browser without a network, and what it complained of."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(document, picture))
    window = all_windows.open(
        path.as_uri(), page_checks.Look(375, "light"), height=800, offline=True
    )
    page = window.page
    page.wait_for_function(f"document.documentElement.dataset.drawn === '{charts(document)}'")
    return page, window.complaints


@pytest.mark.slow
def test_in_a_browser_all_charts_draw_and_nothing_complains(page_and_complaints, document):
    page, complaints = page_and_complaints
    assert page.locator("figure.chart svg").count() == charts(document)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    before = page.evaluate("document.documentElement.dataset.theme")
    page.evaluate("delete document.documentElement.dataset.drawn")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") != before
    page.wait_for_function(f"document.documentElement.dataset.drawn === '{charts(document)}'")
    assert page.locator("figure.chart svg").count() == charts(document)
    assert complaints == []


@pytest.mark.slow
def test_the_tables_of_numbers_need_no_scrolling(page_and_complaints):
    page, _ = page_and_complaints
    right = "each => each.getBoundingClientRect().right"
    for width in (375, 1100, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        edge = page.locator("main").evaluate(right)
        assert page.locator(".numbers").evaluate(right) <= edge
        cells = page.locator(".main td").evaluate_all(f"all => all.map({right})")
        assert cells
        assert max(cells) <= edge
        assert page.locator(".numbers thead th").last.is_visible()


@pytest.mark.slow
def test_the_gallery_works_with_the_keyboard(page_and_complaints):
    page, _ = page_and_complaints
    page.locator(".card .pair").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('large').open")
    count = page.locator(".gallery").first.locator(".card").count()
    assert page.locator(".steps span").inner_text() == f"1 of {count}"
    page.keyboard.press("ArrowRight")
    assert page.locator(".steps span").inner_text() == f"{2 % count or count} of {count}"
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('large').open")
    assert page.evaluate("document.activeElement.className") == "pair"


@pytest.mark.slow
def test_figures_are_saved(page_and_complaints):
    page, _ = page_and_complaints
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.locator(f"[data-name=pm_curve] [data-save={kind}]").click()
        assert download.value.suggested_filename == f"pm_curve.{kind}"
        assert Path(download.value.path()).read_bytes().startswith(start)


# ---- on a phone: long names in legends, and long cells of tables


PHONE, DESK = page_checks.LOOKS[0], page_checks.LOOKS[2]
WORDS = (
    "anchors",
    "worst for the other models of the same family",
    "a model with pretraining and augmentation and distillation and other things beside it",
    "supercalifragilistic convolutional transformer",
)
UNBROKEN = "efficientnet_lite0_with_a_name_without_any_space_x"
HEADER = ("metric", "pair", "difference", "p", "method")
ROW = ("pm-10", "one", "3.0 pp", "0.020", "exact permutation test over 8 videos; Gaffke's bounds")
WITHOUT_P = ("mAP", "two", "4.0 pp", "", "none")


def draw_names(names):
    """A chart with a legend that has the names."""
    values = [{"name": name, "at": place} for place, name in enumerate(names)]
    color = {"field": "name", "type": "nominal", "scale": {"domain": names}}
    encoding = {
        "x": {"field": "at", "type": "quantitative"},
        "color": {**color, "legend": {"orient": "bottom", "title": None}},
    }
    spec = {**chart([dot(encoding)], 60), "data": {"values": values}}
    return Figure(name="names", caption="Names.", alt="Names.", spec=spec)


def open_section(windows, folder, look, **content):
    """The page of a report with one section, opened."""
    section = Section(topic=Topic.COMPARED, title="Section", text=("Text.",), **content)
    entry = evaluated(table(**HAND))
    report = Document("Title", ("Headline.",), [entry], [section], {"run": RECORD}, ())
    path = folder / "report.html"
    path.write_text(render_html(report, lambda data, shot: None), encoding="utf-8")
    window = windows.open(path.as_uri(), look, offline=True)
    page_checks.wait_drawn(window.page)
    return window


@pytest.mark.slow
def test_names_in_a_legend_break_between_words_and_lose_no_letter(windows, tmp_path):
    names = (*WORDS, UNBROKEN)
    window = open_section(windows, tmp_path, PHONE, figures=(draw_names(names),))
    labels = window.page.evaluate(
        "[...document.querySelectorAll('.plot .role-legend-label text')].map((one) =>"
        " one.children.length ? [...one.children].map((line) => line.textContent)"
        " : [one.textContent])"
    )
    lines = {"".join(parts).replace(" ", ""): parts for parts in labels}
    assert sorted(lines) == sorted(name.replace(" ", "") for name in names)
    for name in WORDS:
        parts = lines[name.replace(" ", "")]
        assert " ".join(parts) == name
        assert len(parts) == {WORDS[0]: 1, WORDS[2]: 3}.get(name, 2)
    assert len(lines[UNBROKEN]) > 1
    assert page_checks.find_faults(window) == []


@pytest.mark.slow
@pytest.mark.parametrize(("look", "whole"), [(PHONE, True), (DESK, False)])
def test_a_long_cell_takes_a_row_of_its_own_on_a_phone(windows, tmp_path, look, whole):
    window = open_section(windows, tmp_path, look, tables=(Table("Table", HEADER, (ROW,)),))
    widths = window.page.evaluate(
        "[...document.querySelectorAll('.cells td')].map((one) => one.getBoundingClientRect()"
        ".width / one.parentElement.getBoundingClientRect().width)"
    )
    assert len(widths) == 4
    assert (widths[-1] > 0.95) == whole
    assert max(widths[:-1]) < 0.4
    assert page_checks.find_faults(window) == []


@pytest.mark.slow
@pytest.mark.parametrize(("look", "cells"), [(PHONE, 3), (DESK, 4)])
def test_a_phone_leaves_out_a_cell_without_a_value(windows, tmp_path, look, cells):
    tables = (Table("Table", HEADER, (WITHOUT_P,)),)
    page = open_section(windows, tmp_path, look, tables=tables).page
    assert len([1 for cell in page.locator(".cells td").all() if cell.is_visible()]) == cells
