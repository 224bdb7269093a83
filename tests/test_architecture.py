"""The architecture of DESIGN.md: arrows point down only, files and functions stay small.

In the docs on the source tree every path exists, and every folder has its line.
"""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from conftest import ROOT

from steadyeye.core import plugins

sys.path.insert(0, str(ROOT / "tools"))

import draw_house
import measure_house

SOURCE = ROOT / "src" / "steadyeye"
# a package may import those on lower floors and itself; plugins import nothing of their own floor
FLOORS = [
    {"core"},
    {"data", "degradation"},
    {"metrics", "models"},
    {"predictions"},
    {"runner"},
    {"explain"},
    {"report"},
    {"review", "training", "watch"},
    {"api"},
    {"cli"},
]
# the same inside a package, for its folders
INSIDE = {
    "core": [{"stats"}, {"storage"}],
    "data": [{"classes", "images"}, {"video"}, {"annotations"}, {"open_images"}, {"sources"}],
    "degradation": [{"operators"}],
    "explain": [{"mining"}, {"embedding"}, {"probes"}],
    "metrics": [{"covariates", "detection", "testbed"}, {"sequences"}, {"label_studies"}],
    "models": [
        {"preprocessing"},
        {"runtimes"},
        {"introspection"},
        {"detectors"},
        {"finetuned"},
        {"backends"},
    ],
    "report": [{"charts"}, {"comparison"}, {"render"}, {"analyses"}],
    "review": [
        {"sampling"},
        {"protocol"},
        {"bulk"},
        {"workflow"},
        {"results"},
        {"studies"},
        {"interchange"},
        {"web"},
    ],
    "runner": [{"cache"}, {"engines"}],
}
APART = tuple(name for name in INSIDE if name not in ("report", "runner"))
"""Packages whose own files and subfolders import each other one way only."""
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
PLUGINS = ("sources", "models", "metrics", "analyses", "operators", "probes")
FILES = sorted(file for file in SOURCE.rglob("*.py") if file.parent != SOURCE or file.stem == "api")
FOLDERS = sorted({file.parent for file in FILES})
in_each_folder = pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: folder.relative_to(SOURCE).as_posix()
)


@cache
def imported(file: Path) -> set[str]:
    modules = set()
    for node in measure_house.list_nodes(file):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {module for module in modules if module.startswith("steadyeye.")}


@in_each_folder
def test_packages_import_only_packages_below_them(folder):
    of_plugins = folder in map(plugins.folder, PLUGINS)
    for file in (file for file in FILES if file.parent == folder):
        package = measure_house.package_of(SOURCE, file)
        for module in imported(file):
            target = module.split(".")[1]
            if target not in FLOOR:
                continue
            assert FLOOR[target] < FLOOR[package] or target == package, f"{file} imports {module}"
            if of_plugins:
                sibling = SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")
                assert sibling.parent != folder or not sibling.is_file(), (
                    f"the plugin {file} imports its sibling {module}"
                )


def test_every_package_has_a_floor():
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert packages <= set(FLOOR)


@in_each_folder
def test_files_and_functions_stay_small(folder):
    for file in (file for file in FILES if file.parent == folder):
        assert len(measure_house.read(file).splitlines()) <= 400, file
        for node in measure_house.list_nodes(file):
            if isinstance(node, ast.FunctionDef):
                described = ast.get_docstring(node) is not None
                documented = node.body[0].end_lineno - node.body[0].lineno + 1 if described else 0
                lines = node.end_lineno - node.lineno + 1 - documented
                assert lines <= 45, f"{node.name} in {file} has {lines} lines without its docstring"


@pytest.mark.parametrize("kind", PLUGINS)
def test_every_plugin_has_one_line_and_is_named_as_its_file(kind):
    described = plugins.describe(kind)
    assert described
    for name, line in described.items():
        assert line, f"{kind}/{name}.py has no docstring"
        tree = measure_house.parse(plugins.folder(kind) / f"{name}.py")
        top = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert name in top, f"{kind}/{name}.py defines no '{name}'"


@cache
def resolved(module: str) -> tuple[str, ...]:
    """The parts of a module or package that is there, below `steadyeye`; () for another name."""
    parts = tuple(module.split(".")[1:])
    path = SOURCE.joinpath(*parts)
    return parts if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() else ()


@pytest.mark.parametrize("package", INSIDE)
def test_folders_of_a_package_point_down_too(package):
    floor = {name: level for level, names in enumerate(INSIDE[package]) for name in names}
    folders = {f.parent.name for f in (SOURCE / package).glob("*/__init__.py")}
    assert folders == set(floor)
    for file in (SOURCE / package).rglob("*.py"):
        own = file.relative_to(SOURCE).parts[1]
        for module in imported(file):
            _, target, inner, *_ = (*module.split("."), "")
            if own in floor and target == package and inner in floor and inner != own:
                assert floor[inner] < floor[own], f"{file} imports {module}"


@pytest.mark.parametrize("package", APART)
def test_files_and_subfolders_import_each_other_one_way(package):
    """Taken as a whole, the files beside the subfolders are no loop with any of these."""
    graph: dict[str, set[str]] = {}
    for file in (SOURCE / package).rglob("*.py"):
        own = file.relative_to(SOURCE).parts[1:-1]
        for other in filter(None, map(resolved, imported(file))):
            folder = (
                other[1:-1] if SOURCE.joinpath(*other).with_suffix(".py").is_file() else other[1:]
            )
            if other[0] == package and folder[:1] != own[:1]:
                graph.setdefault("".join(own[:1]), set()).add("".join(folder[:1]))
    assert graph
    TopologicalSorter(graph).prepare()


def test_no_loops_between_the_files_and_folders_of_a_folder():
    """Taken as wholes, the files and folders of every folder import each other one way only."""
    graphs: dict[tuple[str, ...], dict[str, set[str]]] = {}
    for file in FILES:
        own = file.relative_to(SOURCE).with_suffix("").parts
        for other in filter(None, map(resolved, imported(file))):
            shared = 0
            while own[: shared + 1] == other[: shared + 1] and shared < len(other):
                shared += 1
            if shared < min(len(own), len(other)):
                graph = graphs.setdefault(own[:shared], {})
                graph.setdefault(own[shared], set()).add(other[shared])
    assert len(graphs) > 20
    for graph in graphs.values():
        TopologicalSorter(graph).prepare()  # raises CycleError, which names the loop


PLUGIN_NAMES = {"model", "source", "metric", "plugin", "analysis", "operator", "probe", "detector"}


def asks_a_plugin(node):
    """Whether a call reads an optional attribute of a plugin."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    if node.func.id not in ("getattr", "hasattr") or not isinstance(node.args[1], ast.Constant):
        return False
    subject, name = node.args[0], node.args[1].value
    called = subject.attr if isinstance(subject, ast.Attribute) else getattr(subject, "id", "")
    return called in PLUGIN_NAMES and not name.startswith("__")


def test_optional_abilities_are_asked_with_isinstance():
    calls = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in sorted(SOURCE.rglob("*.py"))
        for node in measure_house.list_nodes(file)
        if asks_a_plugin(node)
    ]
    assert not calls, "make it a Protocol of core/abilities.py"
    assert asks_a_plugin(ast.parse("getattr(task.model, 'device', '')").body[0].value)


# ---------------------------------------------------------------- the docs on the source tree


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
