"""Names in the docs are those of the code: metrics, sources, options, variables, scripts."""

import ast
import inspect
import re
import sys
from functools import cache
from importlib import import_module

import pytest
from conftest import ROOT

from steadyeye.core import plugins

sys.path.insert(0, str(ROOT / "tools"))

import check_tutorials as tutorials

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCRIPT = re.compile(r"\b(?:benchmarks|tools|tests)/[\w/]+\.py\b")
OF_OTHERS = {"--end2end", "--max-wh", "--nproc-per-node", "--now", "--hook-stage", "--no-deps"}
"""Options of other programs that the docs name."""


def read_spans(page):
    """What stands in backticks within the sentences of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.findall(r"`([^`\n]+)`", text)


def read_parameters(kind, name):
    """The parameters of a plugin's function."""
    function = inspect.unwrap(getattr(import_module(plugins.module(kind, name)), name))
    return list(inspect.signature(function).parameters.values())


def list_options(command):
    """The options of a command and of all below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for subcommand in getattr(command, "commands", {}).values():
        yield from list_options(subcommand)


@pytest.mark.parametrize("name", plugins.names("metrics"))
def test_every_metric_is_defined_with_its_parameters(name):
    page = (ROOT / "docs" / "explanation" / "definitions.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(`.+)\n(?:: |\n: )", page, re.MULTILINE)
    defined = [span for term in terms for span in re.findall(r"`([^`]+)`", term)]
    parameters = ", ".join(parameter.name for parameter in read_parameters("metrics", name)[1:])
    assert (f"{name}({parameters})" if parameters else name) in defined


@pytest.mark.parametrize("name", plugins.names("sources"))
def test_every_source_has_a_row_with_its_defaults(name):
    page = (ROOT / "docs" / "how-to" / "data.md").read_text(encoding="utf-8")
    row = re.search(rf"^\|[^|]*`{name}\(([^`]*)\)`", page, re.MULTILINE)
    empty = inspect.Parameter.empty
    expected = [
        key.name if key.default is empty else f"{key.name}={key.default!r}".removesuffix(".0")
        for key in read_parameters("sources", name)
    ]
    assert row is not None
    assert [part.removesuffix(".0") for part in row[1].split(", ")] == expected


@pytest.mark.parametrize("name", plugins.names("sources"))
def test_every_source_has_an_example_with_its_parameters(name):
    """A spec with the parameters that it needs and no others, outside the table of all sources."""
    page = (ROOT / "docs" / "how-to" / "data.md").read_text(encoding="utf-8")
    texts = re.findall(rf"\b{name}\([^()]*=[^()]*\)", page.partition("## All sources")[0])
    calls = [ast.parse(text, mode="eval").body for text in texts if "…" not in text]
    assert calls
    empty = inspect.Parameter.empty
    parameters = {key.name: key.default is empty for key in read_parameters("sources", name)}
    for call in calls:
        keys = {keyword.arg for keyword in call.keywords}
        assert keys <= parameters.keys()
        assert {key for key, is_needed in parameters.items() if is_needed} <= keys


@cache
def read_source():
    """The source as one text."""
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scripts_options_and_variables_of_sentences_exist(page):
    spans = read_spans(page)
    scripts = {name for span in spans for name in SCRIPT.findall(span)}
    of_scripts = "".join((ROOT / name).read_text(encoding="utf-8") for name in scripts)
    options = {*list_options(tutorials.read_tree()), *OF_OTHERS, "--help"}
    for span in spans:
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span):
            assert option in options or re.search(rf"{option}\b", of_scripts), (span, option)
        for variable in re.findall(r"\bSTEADYEYE_\w+", span):
            assert f'"{variable}"' in read_source(), (span, variable)
