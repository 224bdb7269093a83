"""The examples in docstrings print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import steadyeye

SOURCE = Path(steadyeye.__file__).parent
MODULES = sorted(
    ".".join(("steadyeye", *file.relative_to(SOURCE).with_suffix("").parts))
    for file in SOURCE.rglob("*.py")
    if "    >>> " in file.read_text(encoding="utf-8") and file.stem != "__init__"
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_print_what_they_say(module):
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
