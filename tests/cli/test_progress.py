"""Progress of every command that computes: JSON lines, nothing when quiet, one word for each."""

import json

import pytest
from progress_work import work
from typer.testing import CliRunner

from steadyeye import cli
from steadyeye.cli.options import app
from steadyeye.cli.progress import Lines
from steadyeye.core.errors import UsageError

__all__ = ["work"]


@pytest.fixture(scope="module")
def steadyeye():
    for name in cli.COMMANDS:
        cli.import_module(f"steadyeye.cli.{name}")

    def call(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


def lines(result):
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stderr.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "degrade", "score", "explain", "mine", "measure"])
def test_every_command_tells_its_progress_in_one_way(steadyeye, work, command):
    root, words = work
    out = root / f"{command}-run"
    if command == "measure":
        assert lines(steadyeye(*words["run"], "--out", out, "--progress", "none")) == []
        arguments = ("measure", out)
    else:
        arguments = (*words[command], "--out", out)
    result = steadyeye(*arguments, "--progress", "jsno")
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == "no progress named 'jsno'; did you mean 'json'?"
    events = lines(steadyeye(*arguments, "--progress", "json"))
    assert {line["event"] for line in events} >= {"begin", "progress"}
    for first in (line for line in events if line["event"] == "begin" and line["rows"]):
        last = [line for line in events if line.get("cell") == first["cell"]][-1]
        assert last["event"] == "progress"
        assert (last["done"], last["seconds_left"]) == (first["rows"], 0)
    quiet = steadyeye(*arguments, "--quiet", "--progress", "json")
    assert lines(quiet) == [], "the same once more, found finished"
    assert "report: " in quiet.stdout or command == "mine"


def test_progress_without_a_total_reports_the_count_at_the_end(capsys):
    with Lines() as watcher:
        watcher.begin("nothing", None)
        advance = watcher.begin("pictures", None)
        advance(2)
        advance(3)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in events] == ["begin", "begin", "progress"]
    assert events[1] == {"event": "begin", "cell": "pictures", "rows": None}
    last = events[2]
    assert (last["cell"], last["rows"], last["done"]) == ("pictures", None, 5)
    assert last["seconds_left"] is None
