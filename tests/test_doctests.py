"""The examples in docstrings print the output that they show."""

import ast
import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import steadyeye
from steadyeye import testing
from steadyeye.core import plugins
from steadyeye.core.spec import parse

SOURCE = Path(steadyeye.__file__).parent
MODULES = sorted(
    ".".join(("steadyeye", *file.relative_to(SOURCE).with_suffix("").parts))
    for file in SOURCE.rglob("*.py")
    if "    >>> " in file.read_text(encoding="utf-8") and file.stem != "__init__"
)


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_the_examples_print_what_they_say(module, request):
    if module == "steadyeye.torch_metrics":
        request.getfixturevalue("torchvision")  # torchmetrics imports it
    failed, tried = doctest.testmod(import_module(module))
    assert tried
    assert not failed


@pytest.mark.parametrize("folder", ["metrics", "degradation/operators"])
def test_every_plugin_that_users_call_has_an_example(folder):
    names = {f"steadyeye.{folder.replace('/', '.')}.{file.stem}" for file in
             (SOURCE / folder).glob("*.py") if file.stem != "__init__"}  # fmt: skip
    assert names <= set(MODULES)


@pytest.mark.parametrize("name", steadyeye.__all__)
def test_every_public_name_has_an_example(name):
    """Run by the test above, as its module is one of them."""
    public = getattr(steadyeye, name)
    assert "    >>> " in public.__doc__
    assert public.__module__ in MODULES


PUBLIC = [name for name in vars(testing) if getattr(vars(testing)[name], "__module__", "") ==
          testing.__name__ and name[0] != "_"]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_every_check_and_every_made_up_input_has_an_example(name):
    """Run by the first test, as `steadyeye.testing` is one of the modules."""
    assert "    >>> " in vars(testing)[name].__doc__


EXAMPLE = re.compile(r"^ *Example: `(.+)`$", re.MULTILINE)


@pytest.mark.parametrize("folder", ["data/sources", "models/backends", "explain/probes"])
def test_plugins_that_need_files_show_a_spec_that_they_take(folder):
    """Read without importing them, as some need packages that are not everywhere."""
    files = [file for file in (SOURCE / folder).glob("*.py") if file.stem != "__init__"]
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        examples = EXAMPLE.findall(text)
        assert len(examples) == 1, f"{file.name} has {len(examples)} examples"
        spec = parse(examples[0])
        assert spec.kwargs.get("probe", spec.name) == file.stem
        (function,) = (node for node in ast.parse(text).body
                       if isinstance(node, ast.FunctionDef) and node.name == file.stem)  # fmt: skip
        taken = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
        assert taken >= spec.kwargs.keys() - {"probe"}, f"{file.name} takes {taken}"


@pytest.mark.parametrize("kind", ["metrics", "operators", "sources", "models"])
def test_plugins_describe_each_of_their_parameters(kind):
    """Read without importing them, as some need packages that are not everywhere."""
    missing = []
    for name in plugins.own_names(kind):
        tree = ast.parse((plugins.folder(kind) / f"{name}.py").read_text(encoding="utf-8"))
        (plugin,) = (node for node in tree.body if getattr(node, "name", "") == name)
        text = ast.get_docstring(plugin) or ""
        arguments = (
            plugin.args
            if isinstance(plugin, ast.FunctionDef)
            else ast.arguments([], [], None, [], [], None, [])
        )
        names = {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}
        # what every metric takes is described once, by the interface
        own = sorted(names - {"predictions"})
        missing += [
            f"{name}: {parameter}"
            for parameter in own
            if not re.search(rf"`[^`]*\b{parameter}\b", text)
        ]
    assert not missing
