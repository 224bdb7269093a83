"""A report on a phone: long names in legends, and long cells of tables."""

import page_checks
import pytest
from hand_tables import HAND, evaluated, table

from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.report.charts.specs import chart, dot
from steadyeye.report.render.document import Document
from steadyeye.report.render.html import render_html

PHONE, DESK = page_checks.LOOKS[0], page_checks.LOOKS[2]
WORDS = (
    "anchors",
    "worst for the other models of the same family",
    "a model with pretraining and augmentation and distillation and other things beside it",
    "supercalifragilistic convolutional transformer",
)
UNBROKEN = "efficientnet_lite0_with_a_name_without_any_space_x"
RECORD = {"provenance": {"steadyeye": "1", "commit": "c", "python": "3"}}
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
    document = Document("Title", ("Headline.",), [entry], [section], {"run": RECORD}, ())
    path = folder / "report.html"
    path.write_text(render_html(document, lambda data, shot: None), encoding="utf-8")
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
