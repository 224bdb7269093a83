"""The Python interface at a prompt: output, lists, completion and types."""

import ast
import inspect
import os
import pydoc
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np
import pytest
from typed_example import light, steady

import steadyeye as se
from steadyeye.core import notebook, plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Result
from steadyeye.predictions.json_record import read_record, write_record
from steadyeye.report.comparison.leaderboards import boards
from steadyeye.runner.collect import evaluate_metrics

HERE = Path(__file__).resolve().parent.parent
VOID = {"line", "circle"}  # of SVG, closed in themselves here


class Balanced(HTMLParser):
    """Takes in HTML and fails where a tag is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    """The texts of HTML that is well formed and holds nothing that runs or is fetched."""
    page = Balanced()
    page.feed(html)
    page.close()
    assert not page.open
    assert not re.search("<script|http|onerror", html)
    return page.text


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python") / "clip <b>"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(6):
        cv2.imwrite(str(folder / f"{i:03d}.png"), rng.integers(0, 255, (32, 48, 3), np.uint8))
    return f"frames(path={str(folder)!r}, anchors=2, k=1)"


@pytest.fixture(scope="module")
def run(clip, tmp_path_factory):
    return se.evaluate(light, clip, out=tmp_path_factory.mktemp("run") / "a")


def test_a_result_is_one_line():
    share = Result("accuracy", 0.832, 0.791, 0.868, 512, "Clopper–Pearson, n = 512", classes=1000)
    line = "accuracy 83.2 % (95 % interval 79.1–86.8 %, n = 512, among 1,000 classes)"
    assert str(share) == line
    assert repr(share) == "<Result accuracy 83.2 % (79.1–86.8 %), n = 512>"
    within = Result("drop", 0.1, 0.0, 0.3, 8, "Clopper–Pearson, n = 8, within this one video only")
    ends = "n = 8, within this one video only)"
    assert str(within) == f"drop 10.0 pp (95 % interval 0.0–30.0 pp, {ends}"
    assert str(Result("pm_k(k=1)", None, None, None, 0, "none")) == "pm_k(k=1) — (n = 0)"
    seconds = Result("dwell_time", 0.14, 0.1, None, 7, "x", unit="seconds")
    assert str(seconds) == "dwell_time 0.14 s (95 % interval ≥ 0.10 s, n = 7)"


def test_every_object_is_one_short_line(run, clip):
    built = plugins.build("sources", parse(clip))
    section = run.analyses.flips()
    objects = [run, run.predictions, run.flip_rate(), built, section]
    for value in objects:
        assert "\n" not in repr(value)
        assert len(repr(value)) <= notebook.LONGEST
        assert repr(value).startswith("<")
    assert repr(run).startswith("<Run light on clip")
    assert repr(run.predictions).startswith("<Predictions light on clip <b>, 6 rows, 2 classes")
    assert repr(built).startswith("<Source clip <b>, 6 samples, no labels, columns group")
    assert "no finished run" in repr(se.open_run("nowhere"))
    # a reader of notebooks must not be fooled by what a folder is called
    for value in objects:
        read(value._repr_html_())
    assert "clip <b>" in "".join(read(run._repr_html_()))


def test_models_and_comparisons_are_short_too(run, clip, tmp_path):
    model = plugins.build("models", parse("efficientnet_lite0"))
    assert repr(model) == "<Model efficientnet_lite0, classifier, 1,000 classes>"
    read(model._repr_html_())
    other = evaluate_metrics(run.predictions)
    other_predictions = type(run.predictions)(
        **{**vars_of(run.predictions), "model": "<i>other</i>"}
    )
    leaderboards = boards([other, evaluate_metrics(other_predictions)])
    assert repr(leaderboards).startswith("<Boards 2 models on clip <b>: ")
    board = leaderboards.boards[0]
    assert repr(board).startswith(f"<Leaderboard {board.metric}: 1 ")
    assert repr(board.pairs[0]).startswith("<Pair ")
    assert any("<i>other</i>" in text for text in read(leaderboards._repr_html_()))


def vars_of(table):
    return {name: getattr(table, name) for name in table.__dataclass_fields__}


def test_dir_lists_the_public_names_and_metrics(run):
    assert {"evaluate", "open_run", "compare", "ls", "Run", "Result", "Source"} <= set(dir(se))
    assert all(hasattr(se, name) for name in dir(se))
    assert set(plugins.names("metrics")) <= set(dir(run))
    assert {"measure", "report", "results", "analyses", "predictions"} <= set(dir(run))
    assert set(plugins.names("analyses")) <= set(dir(run.analyses))
    assert set(se.ls("operators")) == set(plugins.names("operators"))
    with pytest.raises(se.UsageError, match="no kind named 'metric'; did you mean 'metrics'"):
        se.ls("metric")


def test_a_metric_of_a_run_tells_what_it_is(run):
    help_text = pydoc.plain(pydoc.render_doc(run.pm_k))
    assert "pm_k(k: int | None = None)" in help_text
    assert "a right prediction on every frame within ±k" in help_text
    assert "predictions" not in inspect.signature(run.pm_k).parameters
    with pytest.raises(AttributeError, match=r"a run has no 'pmk'.*did you mean 'pm_k'"):
        run.pmk  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'failures'"):
        run.analyses.failure  # noqa: B018


def test_the_methods_that_type_checkers_see_are_the_metrics():
    """Names, parameters with types and defaults, docstrings: all that the tool would write."""
    tool = runpy.run_path(str(HERE.parent / "tools" / "write_metric_methods.py"))
    # trees, since how lines are broken is for the formatter to say
    trees = map(ast.parse, (tool["FILE"].read_text(encoding="utf-8"), tool["write_methods"]()))
    present, written = (ast.dump(tree, indent=1).splitlines() for tree in trees)
    assert present == written, "run tools/write_metric_methods.py"


@pytest.mark.slow
def test_a_users_script_is_typed(clip, tmp_path):
    words = [sys.executable, "-m", "mypy", "--strict"]
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import steadyeye as se\nrun = se.open_run('x')\nrun.pmk(3)\nrun.pm_k(k='a')\n"
        "number: int = run.pm_k(3)\n"
    )
    words += ["tests/fixtures/typed_example.py", str(wrong)]
    done = subprocess.run(words, cwd=HERE.parent, capture_output=True)
    output = done.stdout.decode()
    places = [line.split(":")[:2] for line in output.splitlines() if ": error:" in line]
    # of a file that has not changed mypy's cache names the path of an earlier run of the tests
    assert [(Path(path).name, line) for path, line in places] == [
        (wrong.name, number) for number in "345"
    ], output
    assert all(isinstance(result, Result) for result in steady(clip, str(tmp_path / "run")))


PROGRAM = """
import os, sys
import steadyeye as se
from steadyeye.testing import example_source, tell_example_classes

runs = [se.evaluate(tell_example_classes, example_source()) for _ in range(2)]
if not os.fork():
    sys.exit()
os.wait()
print(*(run.folder for run in runs), sep="\\n")
assert se.open_run(runs[0].folder).accuracy().value == 1
{end}
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "1 / 0"])
def test_a_run_without_a_folder_leaves_none_behind(end, tmp_path):
    words = [sys.executable, "-c", PROGRAM.format(end=end)]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert bool(done.returncode) == bool(end), done.stderr
    assert {Path(line).parent for line in done.stdout.splitlines()} == {tmp_path}
    assert not list(tmp_path.glob("steadyeye-*"))


def test_a_run_of_several_models_needs_the_name_of_one(run, tmp_path):
    """The numbers were those of the first model, and nothing said so."""
    folder = tmp_path / "two"
    shutil.copytree(run.folder, folder)
    (first,) = (folder / "cells").iterdir()
    second = first.with_name("other@data")
    shutil.copytree(first, second)
    record = read_record(folder / "run.json", "")
    write_record(folder / "run.json", {**record, "cells": [first.name, second.name]})
    both = se.open_run(folder)
    for refused in (both.accuracy, both.rows, both.results, both.analyses.flips):
        with pytest.raises(UsageError) as error:
            refused()
        assert str(error.value) == (
            f"'{folder}' has the predictions {first.name}, {second.name}; "
            f"name one: open_run('{folder}', '{second.name}')"
        )
    assert "light on clip" in repr(both)
    assert "other on data" in repr(both)
    assert both._repr_html_() is None
    assert se.open_run(folder, first.name).flip_rate() == run.flip_rate()
    with pytest.raises(UsageError, match=r"no prediction named 'othr@data'; did you mean 'other@d"):
        se.open_run(folder, "othr@data").flip_rate()
