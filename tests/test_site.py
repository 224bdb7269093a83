"""The pages of the site that are written from the code, and the notebooks."""

import re
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

pytest.importorskip("mkdocs", reason="the site is built with steadyeye[docs]")

import check_tutorials as tutorials
import page_landmarks
import reference_pages as reference

from steadyeye.core import plugins

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))


@pytest.fixture(scope="module")
def pages():
    return dict(reference.write_pages())


@pytest.mark.parametrize("kind", reference.KINDS)
def test_every_plugin_has_a_page_and_a_line(kind, pages):
    for name in plugins.names(kind):
        assert f"::: {plugins.module(kind, name)}.{name}" in pages[f"reference/{kind}/{name}.md"]
        assert re.search(rf"\[`{name}`\]\({name}\.md\) \| \w", pages[f"reference/{kind}/index.md"])


def test_every_option_of_every_command_is_on_the_page(pages):
    text = pages["reference/cli.md"]
    for words, command in reference.walk_commands(tutorials.read_tree(), ("steadyeye",)):
        section = text.split(f"\n## {' '.join(words[1:])}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert all(f"`{name}`" in section for name in parameter.opts), (words, parameter)


def test_every_page_of_the_navigation_is_written(pages):
    entries = str(list(reference.list_entries()))
    generated = set(re.findall(r"'(reference/[^']+\.md)'", entries))
    assert generated == set(pages)


def test_every_main_job_has_a_notebook():
    jobs = {"label-free", "pm-k", "degradation", "detectors", "mining", "explain", "finetune"}
    assert {path.stem for path in NOTEBOOKS} == jobs | {"compare", "review"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_the_python_interface_and_holds_no_output(path):
    text = path.read_text()
    assert "import steadyeye as se" in text
    assert "se." in text.replace("import steadyeye as se", "")
    assert not re.search(r"^```(?!python)\w", text, re.MULTILINE)
    for line in re.findall(r"^!(steadyeye (?:.*\\\n)*.*)", text, re.MULTILINE):
        assert tutorials.find_fault(line.replace("\\\n", " ")) == ""


def test_a_percentage_stays_on_one_line_and_code_is_unchanged():
    code = "<pre><code>right on 5 % of 9</code></pre><p><code>a >= 5 %</code>"
    content = page_landmarks.on_page_content(f"{code} 12.5 % of 10 or 5 of 6 frames</p>")
    assert content == f"{code} 12.5\u202f% of 10 or 5 of 6 frames</p>"
