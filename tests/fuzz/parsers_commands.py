"""Commands that resume over their own damaged files: refused, or the files of a whole run.

The outputs of a command are read by the same command, and by later ones.
"""

import hashlib
import json
import re
import shutil
import tempfile
from contextlib import chdir, contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import explain_toys  # noqa: F401 — the models that the commands name, imported before any case
import faulty_commands
import light_toys  # noqa: F401
import toy_networks  # noqa: F401
import typer
from fuzzing import FEW, Parser
from parsers_text import write

from steadyeye import cli
from steadyeye.cli import options

ENDS = "ends.json"
MAY_STAY = re.compile("/cells/|/set.json$")
UNFINISHED = ("model.json", "weights.pt", "report.html", "checkpoints/step-0000003.pt")
"""What a training that is stopped before its last step has not written yet."""
_place = tempfile.TemporaryDirectory(prefix="fuzz-")
WORK = Path(_place.name) / "work"
"""Where commands run: a run tells of the paths of its images."""
WORDS = {case.name: case.words for case in faulty_commands.CASES}


@contextmanager
def work_in(folder):
    """A block in which `folder` is the working folder, and has the path that it always has then."""
    shutil.rmtree(WORK, ignore_errors=True)  # of a case whose process was ended
    folder.rename(WORK)
    try:
        with chdir(WORK):
            yield
    finally:
        WORK.rename(folder)


def give(folder, words):
    """A command line in a folder; what is wrong with it is raised, not printed."""
    with work_in(folder):
        command()(list(words), standalone_mode=False)


@cache
def command():
    """The command line of `steadyeye`."""
    for name in cli.COMMANDS:
        import_module(f"steadyeye.cli.{name}")
    return typer.main.get_command(options.app)


def read_ends(folder):
    """The sum of every file that must be the same again, by path."""
    files = faulty_commands.snapshot(folder).items()
    return {name: hashlib.sha256(content).hexdigest() for name, content in files if name != ENDS}


def build_output(name, folder):
    faulty_commands.write_world(folder)
    give(folder, WORDS[name])
    write({ENDS: json.dumps(read_ends(folder))}, folder)


def build_stopped_training(folder):
    build_output("finetune", folder)
    for name in UNFINISHED:
        (folder / "tuned" / name).unlink()
    (folder / "tuned" / "checkpoints" / "step-0000003.pt.sha256").unlink()


def train_on(folder):
    """A stopped training goes on from its last whole checkpoint, to the same weights."""
    ends = json.loads((folder / ENDS).read_text())
    give(folder, WORDS["finetune"])
    now = read_ends(folder)
    assert not [
        name for name in ends if "/checkpoints/" not in name and now.get(name) != ends[name]
    ]


def go_on(name, folder):
    """The same command again: whatever it accepts, it ends with the files of a whole run.

    A file of a cell whose damage says the same (blanks, an entry that nobody reads) may stay; so
    may set.json, which people edit.
    """
    ends, before = json.loads((folder / ENDS).read_text()), read_ends(folder)
    give(folder, WORDS[name])
    now = read_ends(folder)
    differ = [file for file in ends if now.get(file) != ends[file]]
    wrong = [file for file in differ if not MAY_STAY.search(file) or now.get(file) != before[file]]
    assert not wrong, wrong


def report_again(output, folder):
    give(folder, ("report", output, "--format", "html,json,csv,md"))


def explain_again(folder):
    give(folder, ("view", ".", "--html", "list.html"))
    report_again("why", folder)


CELLS = {
    "{}/run.json": "json",
    "{}/cells/*/cell.json": "json",
    "{}/cells/*/seal.json": "json",
    "{}/cells/*/*.arrow": "bytes",
    "{}/cells/*/0*.seal": "json",
    "{}/data/*.contents": "bytes",
    "{}/log.jsonl": "lines",
}
MINED = {"{}/candidates.json": "json", "{}/set.json": "json", "{}/boxes.parquet": "bytes"}
TUNED = {
    "tuned/run.json": "json",
    "tuned/history.json": "json",
    "tuned/checkpoints/*": "bytes",
    "tuned/data/*.contents": "bytes",
}


def parse_output(name, case, output, files, read=None):
    """A parser of what a command wrote in `output`."""
    places = {glob.format(output): form for glob, form in files.items()}
    build = partial(build_output, case)
    return Parser(name, build, read or partial(go_on, case), places, cases=FEW)


PARSERS = [
    parse_output("degrade-continued", "degrade", "s", CELLS),
    parse_output("degrade-fast-continued", "degrade --fast", "f", CELLS),
    parse_output("degrade-reported", "degrade", "s", CELLS, partial(report_again, "s")),
    parse_output("mine-continued", "mine", "mined", CELLS | MINED),
    parse_output("explain-continued", "explain", "why", CELLS),
    parse_output("explain-reported", "explain", "why", CELLS, explain_again),
    Parser("finetune-continued", build_stopped_training, train_on, TUNED, cases=FEW),
]
