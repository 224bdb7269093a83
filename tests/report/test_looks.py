"""Real reports as readers see them: on a phone and a desktop, light and dark, and on paper."""

import sys

import page_checks
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import look_at_reports

KINDS = ("one", "degrade", "toys")
"""A classifier on sets, a sweep and a search, a detector with explanations: real, and small."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The reports of `KINDS`: name → file."""
    at = look_at_reports.Place(tmp_path_factory.mktemp("looks"), ROOT)
    paths = [page for kind in KINDS for page in look_at_reports.KINDS[kind](at)]
    return {page.removesuffix("/report.html"): at.out / page for page in paths}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one", "sweep", "search", "explain", "toys"])
def test_nothing_is_cut_empty_or_refused_by_axe(browser, pages, name):
    faults = look_at_reports.look_at_page(browser, pages[name])
    if name == "explain":
        # two shuffles of a square of one colour can be one picture
        faults = {line: looks for line, looks in faults.items() if "one picture twice" not in line}
    assert faults == {}


@pytest.fixture(scope="module")
def tab(browser):
    """An empty page, which others take the place of."""
    window = page_checks.open_page(browser, "about:blank", page_checks.LOOKS[0])
    yield window
    window.page.context.close()


CUT = """<!doctype html><html lang="en"><title>x</title><style>.x {{ overflow: hidden; width: 9rem;
white-space: nowrap }}</style><main><h1>x</h1>{body}</main>"""


FAULTS = [
    ("<p class=x>a line that is longer than the room it has</p>", "cut or scrolls sideways"),
    ("<p style='width: 90rem; background: red'>too wide</p>", "the page scrolls sideways"),
    ("<section id=s><h2>nothing below</h2></section>", "section without content"),
    ("<p id=a>one</p><p id=a>two</p>", "one id twice: #a"),
    ("<a href='#gone'>x</a>", "link to nowhere"),
    (
        "<nav aria-label=x><ul><li><a class=topic href='#t'>t</a></li></ul></nav><p id=t>x</p>",
        "heading without links",
    ),
    ("<table><thead><tr><th>a</th></tr></thead><tbody></tbody></table>", "table without rows"),
    ("<img src='http://127.0.0.1:9/x.png' alt='x'>", "asks for http://127.0.0.1:9/x.png"),
    (
        "<div class='card wide'><p class=pair><img src='data:image/gif;base64,R0lGODlhAQABAAAAA"
        "CwAAAAAAQABAAAC' alt='a'><img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABA"
        "AAC' alt='b'></p></div>",
        "one picture twice in a strip",
    ),
    ("<img src='data:,'>", "axe image-alt"),
    ("<p style='color: #ccc'>pale on white</p>", "axe color-contrast"),
]
"""(part of a page, the fault that it has)."""


@pytest.mark.slow
def test_the_page_checks_detect_every_fault(tab, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(CUT.format(body="".join(body for body, _ in FAULTS)))
    tab.page.goto(path.as_uri())
    page_checks.reopen(tab, page_checks.LOOKS[0])
    lines = [*page_checks.find_faults(tab), *page_checks.find_violations(tab.page)]
    unseen = [fault for _, fault in FAULTS if not any(line.startswith(fault) for line in lines)]
    assert unseen == [], lines


@pytest.mark.slow
def test_pale_text_is_found_in_another_theme_and_where_it_came_later(tab, tmp_path):
    path = tmp_path / "page.html"
    style = "<style>@media (prefers-color-scheme: dark) { .b { color: #ccc } }</style>"
    body = "<p>black on white</p>" * 50 + "<p class=b>the same</p>" * 50
    path.write_text(CUT.format(body=style + body))
    tab.page.goto(path.as_uri())
    page_checks.reopen(tab, page_checks.LOOKS[0])
    assert page_checks.find_violations(tab.page) == []
    page_checks.show_as(tab.page, page_checks.LOOKS[1])
    (alike,) = page_checks.find_violations(tab.page)
    assert alike.startswith("axe color-contrast (serious): .b")
    page_checks.show_as(tab.page, page_checks.LOOKS[0])
    assert page_checks.find_violations(tab.page) == []
    add = "(color) => { const one = document.querySelector('.b').cloneNode(true);"
    add += "one.style.color = color; document.querySelector('main').append(one); }"
    for color in ("#ccc", "#111", "#ccc"):
        tab.page.evaluate(add, color)
    later = page_checks.find_violations(tab.page)
    assert len(later) == 2
    assert all("color-contrast" in line for line in later)
