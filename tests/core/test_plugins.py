"""Declarations of plugins compared with their imports."""

import json
import subprocess
import sys

import pytest

from steadyeye.core import plugins

KINDS = ("models", "sources", "metrics", "analyses", "operators", "probes")
EVERY = [(kind, name) for kind in KINDS for name in plugins.names(kind)]
EXTRA_PACKAGES = sorted({*plugins.EXTRAS, "PIL", "datasets", "matplotlib", "pandas", "safetensors"})
IMPORTED_WHEN_USED = {"hota", "idf1"}
"""Plugins that are read, listed and checked without their package, which no extra brings."""
# every plugin is loaded where nothing beyond the core install can be imported
LOAD_ALL = """
import importlib.abc, json, sys
blocked = set(json.loads(sys.argv[1]))
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
failed = {}
for kind, name in json.loads(sys.argv[2]):
    try:
        plugins.load(kind, name)
    except UsageError as error:
        failed[f"{kind}/{name}"] = str(error)
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def failed_without_extras():
    command = [sys.executable, "-c", LOAD_ALL, json.dumps(EXTRA_PACKAGES), json.dumps(EVERY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_plugin_that_declares_no_package_loads_in_the_core_install(
    kind, name, failed_without_extras
):
    declared = plugins.declaration(kind, name)
    failure = failed_without_extras.get(f"{kind}/{name}")
    assert bool(declared.packages and name not in IMPORTED_WHEN_USED) == bool(failure), failure
    if failure:
        extras, others = ([declared.extra], ()) if declared.extra else ([], declared.packages)
        assert plugins.install_line(extras, others) in failure


@pytest.mark.parametrize(("kind", "name"), [e for e in EVERY if e[0] in {"metrics", "analyses"}])
def test_columns_read_from_the_file_are_those_of_the_decorator(kind, name):
    assert plugins.declaration(kind, name).columns == plugins.load(kind, name).needs


def test_install_line_names_what_is_installed_not_what_is_imported():
    assert plugins.install_line([], ["PIL"]) == "pip install pillow"
    assert plugins.install_line(["hf"]) == 'pip install "steadyeye[hf]"'
    assert plugins.install_line(["hf"], ["sklearn"]) == 'pip install "steadyeye[explain,hf]"'


@pytest.mark.parametrize("name", [name for kind, name in EVERY if kind == "models"])
def test_models_say_what_they_answer_with(name):
    assert plugins.declaration("models", name).answers


def test_reach_is_read_from_the_file():
    assert plugins.declaration("metrics", "effective_robustness").largest_offset == 10
    assert plugins.load("metrics", "effective_robustness").largest_offset == 10
