"""Tools and benchmarks, which no other test runs, use names that exist.

A function that was renamed or moved breaks a script without a word until somebody starts it.
"""

import ast
import importlib
import importlib.util
from functools import cache
from types import ModuleType

import pytest
from conftest import ROOT

from steadyeye.core import plugins
from steadyeye.core.spec import Spec

FOLDERS = (ROOT / "tools", ROOT / "benchmarks", ROOT / "tests" / "fixtures", ROOT / "tests")
SCRIPTS = sorted(
    file.relative_to(ROOT).as_posix()
    for folder in ("tools", "benchmarks", "tests/faults", "tests/fuzz")
    for file in (ROOT / folder).glob("*.py")
    if not file.name.startswith("test_")
)


@pytest.fixture(autouse=True)
def paths(monkeypatch):
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(folder))


@cache
def load(name):
    """A module of ours by its name; None for others."""
    own = name.split(".")[0] == "steadyeye" or any((f / f"{name}.py").is_file() for f in FOLDERS)
    return importlib.import_module(name) if own else None


def find(module, name):
    """What a module has by a name, a module below it too; None if nothing."""
    if not hasattr(module, name):
        try:
            importlib.import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            return None
    return getattr(module, name, None)


def list_unknown(file):
    """Names that a script takes from modules of ours and that these do not have."""
    tree = ast.parse(file.read_text())
    modules: dict[str, ModuleType] = {}
    unknown = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases = {alias.asname or alias.name: load(alias.name) for alias in node.names}
            modules |= {name: module for name, module in aliases.items() if module}
        if isinstance(node, ast.ImportFrom) and (module := load(node.module)):
            for alias in node.names:
                value = find(module, alias.name)
                if value is None:
                    unknown.append(f"{node.module}.{alias.name}")
                if isinstance(value, ModuleType):
                    modules[alias.asname or alias.name] = value
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                unknown.append(f"{module.__name__}.{node.attr}")
    return unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_use_names_that_exist(name):
    assert list_unknown(ROOT / name) == []


def test_a_name_that_is_gone_is_reported(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import measure_house\n"
        "from steadyeye.core import format\n"
        "from steadyeye.core.format import percent, per_mille\n"
        "import numpy as np\n"
        "np.nothing\n"
        "format.percent(1)\n"
        "measure_house.count_nothing()\n"
    )
    assert list_unknown(script) == [
        "steadyeye.core.format.per_mille",
        "measure_house.count_nothing",
    ]


@pytest.mark.slow
def test_rows_of_the_coverage_of_single_images_have_a_cell_for_each_column(monkeypatch, capsys):
    import coverage_statistics

    name = "difference of mAP, 4 × as many single images"
    words = ["coverage_statistics.py", "--tries", "2", "--videos", "10", "--only", name]
    monkeypatch.setattr("sys.argv", words)
    coverage_statistics.main()
    head, _, row = (line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines())
    assert len(row) == len(head)
    assert row[head.index("correlation 0.3")] == "–"
    assert row[head.index("worst end")].endswith("%")


@pytest.mark.slow
def test_the_sweep_of_the_benchmark_has_the_operators_that_need_no_gradient():
    import operators
    import sweep

    assert sorted(sweep.list_operators()) == sorted(operators.LIMITS)


@pytest.mark.slow
def test_no_job_beside_other_tools_answers_from_the_cache(tmp_path, monkeypatch):
    import peers

    monkeypatch.setenv("STEADYEYE_CACHE", str(tmp_path / "earlier"))
    script = "from steadyeye.runner.cache import settings; print(int(settings.folder() is None))"
    assert peers.run_job(script, [], tmp_path / "run")[2] == "1"


@pytest.mark.slow
def test_trackers_of_a_package_that_is_not_installed_are_left_out():
    import blink_scores
    from object_steadiness import TRACKERS

    others = TRACKERS if importlib.util.find_spec("trackers") else ()
    assert list(blink_scores.list_linkers()) == ["steadyeye", *others]


@pytest.mark.slow
def test_real_images_are_judged_among_the_thirty_classes_alone(tmp_path, test_data):
    import real_images

    folder = real_images.collect(test_data, tmp_path)
    settings = {"path": f"{folder}/frames", "anchors": 21, "k": 0}
    source = plugins.build(
        "sources", Spec("frames", settings | {"labels": f"{folder}/labels.json"})
    )
    assert len(source) == 252
    assert len(source.classes.names) == 30
    assert source.classes.closed
