"""The docs on the source tree: every path exists, every folder has its line."""

import re
import sys

import pytest
from conftest import ROOT
from test_architecture import FLOOR

sys.path.insert(0, str(ROOT / "tools"))

import draw_house

SOURCE = ROOT / "src" / "steadyeye"
PAGES = ("CONTRIBUTING.md", "docs/explanation/architecture.md", "docs/how-to/extending.md")
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")


def paths_of(text):
    """The paths in backticks, without those of examples in fenced blocks."""
    return PATH.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page):
    paths = paths_of((ROOT / page).read_text())
    assert len(paths) > 5
    missing = [path for path in paths if not any((top / path).exists() for top in (ROOT, SOURCE))]
    assert missing == []


def test_paths_are_found_in_sentences_alone():
    text = "`metrics/pm_k.py` and `runs/a --out b`\n\n```\n`a/b.py`\n```\n\n`core/` `a b/c` `k=1`\n"
    assert paths_of(text) == ["metrics/pm_k.py", "core/"]


def find_loose_rows(text):
    """First lines of the blocks of table rows that have no line of dashes as their second line."""
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return [block.splitlines()[0] for block in blocks if not re.match(r".*\n[|:\- ]+\n", block)]


def test_every_row_is_part_of_a_table():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    assert len(pages) > 20
    rows = {str(page): find_loose_rows(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: loose for page, loose in rows.items() if loose} == {}


def test_a_row_after_an_empty_line_is_loose():
    table = "| a | b |\n|---|--:|\n| 1 | 2 |\n"
    assert find_loose_rows(table) == []
    assert find_loose_rows(f"{table}\n| 3 | 4 |\n| 5 | 6 |\n") == ["| 3 | 4 |"]


def test_every_folder_has_its_line():
    text = draw_house.PAGE.read_text()
    rows = re.findall(r"^\| `([\w/]+)/` \| (\S.*\S) \|$", text, re.MULTILINE)
    packages = {file.parent.relative_to(SOURCE) for file in SOURCE.rglob("*/__init__.py")}
    assert {str(package) for package in packages if package.name} <= {folder for folder, _ in rows}
    assert len(rows) == len(dict(rows))
    assert draw_house.fill_page(text) == text, "run `python tools/draw_house.py`"


def test_contributing_has_a_line_for_every_package():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `src/steadyeye/(\w+)` \| \S", text, re.MULTILINE)
    assert sorted(rows) == sorted(draw_house.BOXES)


@pytest.mark.slow
def test_the_picture_shows_the_imports():
    assert draw_house.PICTURE.read_text() == draw_house.draw(), "run `python tools/draw_house.py`"
    arrows = draw_house.read_arrows()
    assert set(arrows) == set(draw_house.BOXES) == set(FLOOR) - {"api"}
    drawn_arrows = {package: set() for package in arrows}
    for package, name in draw_house.reduce_arrows(arrows):
        drawn_arrows[package].add(name)
        # no arrow points up
        assert draw_house.BOXES[package][1] < draw_house.BOXES[name][1]
    for package in arrows:
        reached = draw_house.list_reached(drawn_arrows, package)
        assert reached == draw_house.list_reached(arrows, package)


def test_an_arrow_that_follows_from_others_is_left_out():
    arrows = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert draw_house.reduce_arrows(arrows) == [("a", "b"), ("b", "c"), ("c", "d")]
