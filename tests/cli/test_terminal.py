"""The output on terminals of 80, fewer and more columns, and in a pipe."""

import os
import subprocess
import sys
from pathlib import Path

import explain_toys
import pytest
from forked import drawn_lines, find_wide_lines, on_terminal, steadyeye
from progress_work import work

from steadyeye.cli.progress import _Cell, bar
from steadyeye.cli.terminal import console, progress_console, show, table_lines, wrap_sentence

__all__ = ["work"]

FIXTURES = Path(__file__).parent.parent / "fixtures"
TITLES = ("value", "95 % interval", "n", "classes", "metric")
METRICS = ("flip_rate", "self_consistency(k=1)", "confidence_jump")


@pytest.fixture(scope="module")
def commands(work):
    """The arguments of a run with a long name, and of commands that read it."""
    root, words = work
    out = root / "a-run-with-a-long-name"
    steadyeye(*words["run"], "--out", out, cwd=FIXTURES, check=True)
    squares, mined, explained = (root / name for name in ("squares", "mined", "explained"))
    explain_toys.write(squares, 3)
    model = f"callable_detector(path='explain_toys:detector', classes='{squares}/classes.json')"
    data = f"coco(annotations='{squares}/boxes.json', images='{squares}/images')"
    detector = ("--model", model, "--data", data, "--score", "0.5", "--no-cache")
    steadyeye("mine", *detector, "--out", mined, cwd=FIXTURES, check=True)
    return {
        "mine": ("mine", *detector, "--out", mined),
        "explain": ("explain", *detector, "--limit", "2", "--out", explained),
        "review-status": ("review-status", mined, "--database", f"sqlite:///{root}/review.sqlite"),
        "cache": ("cache", "ls", "--cache", root),
        "run": (*words["run"], "--out", str(out)),
        "measure": ("measure", str(out)),
        "gate": ("gate", str(out), "--require", "flip_rate <= 0.5"),
        "check": ("check", *words["run"][1:]),
        "ls": ("ls", "metrics"),
    }


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize(
    "command",
    ["run", "measure", "gate", "check", "ls", "mine", "explain", "review-status", "cache"],
)
def test_nothing_is_wider_than_the_terminal(commands, command, columns):
    code, output = on_terminal(columns, *commands[command], cwd=FIXTURES)
    assert code in (0, 1), output
    assert "Traceback" not in output
    assert find_wide_lines(output, columns) == []
    lines = drawn_lines(output)
    if command == "run":
        at = next(i for i, line in enumerate(lines) if line == "light on clip")
        assert lines[at + 1].split() == " ".join(TITLES if columns > 50 else TITLES[:-1]).split()
        assert {line.split()[-1] for line in lines[at + 2 :] if line} >= set(METRICS)


def test_a_pipe_gets_whole_lines_without_escape_codes(commands):
    done = steadyeye(*commands["run"], cwd=FIXTURES, env={"COLUMNS": "40"}, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202f" not in done.stdout
    sentence, _, heading, titles, *rows = done.stdout.splitlines()
    assert sentence.startswith("light ")
    assert len(sentence) > 80
    assert heading == "light on clip"
    assert titles.endswith("classes  metric")
    assert [row.split()[-1] for row in rows[:3]] == list(METRICS)
    assert done.stderr.splitlines()[-1].startswith("light@clip: ")


def test_words_that_do_not_fit_next_to_the_numbers_are_printed_below():
    columns, rows = ("n", "share", "model"), [("7", "25.0 %", "one"), ("12", "5.0 %", "a-long-one")]
    assert table_lines(columns, rows, 2, None) == [
        " n   share  model",
        " 7  25.0 %  one",
        "12   5.0 %  a-long-one",
    ]
    assert table_lines(columns, rows, 2, 17) == [
        " n   share  model",
        " 7  25.0 %  one",
        "12   5.0 %\n  a-long-one",
    ]
    assert table_lines(columns, rows, 2, 12)[1] == " 7  25.0 %\n  one"


def test_sentences_break_between_words_only():
    line = "  efficientnet_lite0-of-a-long-name is right on 47.5\u202f% of 40"
    assert wrap_sentence(line, None) == [line]
    assert wrap_sentence(line, 26) == [
        "  efficientnet_lite0-of-a-long-name",
        "    is right on 47.5\u202f% of",
        "    40",
    ]


@pytest.mark.parametrize("columns", [30, 59, 79, 199])
def test_the_bar_gives_way_before_the_name(columns):
    cell = _Cell("a-model-with-a-name@data-with-one", 1000, began=0.0, done=500, hits=20, earlier=0)
    lines = bar(cell, columns)
    assert lines[0].startswith(cell.name)
    assert "500/1,000" in lines[-1]
    assert "20 from the cache" in lines[-1]
    drawn_one = [line for line in lines if "━" in line]
    if drawn_one:
        (line,) = drawn_one
        assert len(line) <= columns
        assert line.count("━") == pytest.approx(line.count("─"), abs=1)


def test_a_command_that_cannot_start_ends(tmp_path):
    code, output = on_terminal(80, "ls", cwd=tmp_path / "absent")
    assert code == 1
    assert "FileNotFoundError" in output


def test_a_module_between_colons_is_printed_as_it_is(capsys):
    """`py:fire:detect` is a function of a module, which Rich would show as a flame."""
    for to in (console, progress_console):
        show("run --model py:fire:detect", to=to)
    assert capsys.readouterr() == ("run --model py:fire:detect\n",) * 2


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("iso8859-1", "é ± - >= x \\u03c4"), ("ascii", "\\xe9 +/- - >= x \\u03c4")],
)
def test_an_encoding_without_our_signs_prints_every_line(encoding, expected):
    lines = "from steadyeye.cli.terminal import say, spell_signs; spell_signs(); say('é ± − ≥ ✗ τ')"
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", lines], env=env, capture_output=True, check=False)
    assert done.stdout.decode(encoding).strip() == expected, done.stderr
