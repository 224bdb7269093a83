"""The house of DESIGN.md: arrows point down only, files and functions stay small."""

import ast
from pathlib import Path

import pytest

from steadyeye.core import plugins

SOURCE = Path(__file__).resolve().parent.parent / "src" / "steadyeye"
# a package may import those on lower floors and itself; plugins import nothing of their own floor
FLOORS = [
    {"core"},
    {"storage"},
    {"classes", "charts", "images"},
    {
        "footage",
        "inference",
        "degradation",
        "detection",
        "mining",
        "comparison",
        "measurement",
        "sequences",
        "subsets",
    },
    {"embedding", "probing"},
    {"sources", "models", "metrics", "analyses", "degrade", "probes"},
    {"cache"},
    {"predictions", "report", "training"},
    {"evaluation", "review"},
    {"api"},
    {"cli"},
]
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
PLUGINS = ("sources", "models", "metrics", "analyses", "degrade", "probes")
FILES = sorted(file for file in SOURCE.rglob("*.py") if file.parent != SOURCE or file.stem == "api")


def imported(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    modules = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {module for module in modules if module.startswith("steadyeye.")}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_arrows_point_down(file):
    package = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    for module in imported(file):
        target = module.split(".")[1]
        if target not in FLOOR:
            continue
        assert FLOOR[target] < FLOOR[package] or target == package, f"{file} imports {module}"
        if package in PLUGINS:
            assert target != package, f"the plugin {file} imports its sibling {module}"


def test_every_package_has_a_floor():
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert packages <= set(FLOOR)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SOURCE)))
def test_files_and_functions_stay_small(file):
    text = file.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 50, f"{node.name} in {file}"


@pytest.mark.parametrize("kind", PLUGINS)
def test_every_plugin_has_one_line_and_is_named_as_its_file(kind):
    described = plugins.describe(kind)
    assert described
    for name, line in described.items():
        assert line, f"{kind}/{name}.py has no docstring"
        tree = ast.parse((plugins.folder(kind) / f"{name}.py").read_text())
        top = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert name in top, f"{kind}/{name}.py defines no '{name}'"
