"""Ctrl-C, SIGTERM and SIGHUP: one line, the exit code of shells, and finished shards are kept."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import explain_toys
import psutil
import pytest
from conftest import TESTS
from forked import Command, reset_signals, steadyeye
from whole_runs import tree

from steadyeye.core.storage import files

LINE = "steadyeye: stopped; run the same command again to go on"
SHARDS = 7
"""The shards of a run, enough for three runs that are stopped in turn."""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SQUARES = "callable_detector(path='py:explain_toys:slow', classes='classes.json')"
STUCK = SQUARES.replace("explain_toys:slow", "explain_toys:stuck")
BOXES = "coco(annotations='boxes.json', images='images')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("interrupts") / "squares"
    explain_toys.write(root, images=16 * SHARDS)
    return root


def words(out, *more):
    return [
        "run",
        "--model",
        SQUARES,
        "--data",
        BOXES,
        "--no-cache",
        "--quiet",
        "--out",
        out,
        *more,
    ]


def environment(pause):
    path = os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "STEADYEYE_TOY_PAUSE": str(pause)}


def wait_for(running, condition):
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(folder):
    done = steadyeye(*words("whole"), cwd=folder, env=environment(0))
    assert done.returncode == 0, done.stderr
    return tree(folder / "whole")


def find_shards(out):
    """The finished shards of a run, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*.arrow")}


def has_more(out, shards):
    return find_shards(out).keys() > shards.keys()


RAY = pytest.param(("--engine", "ray(most=1)"), marks=pytest.mark.slow, id="ray")
ENGINES = [
    pytest.param((), id="threads"),
    pytest.param(("--engine", "local(processes=1)"), id="processes"),
    RAY,
]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_is_one_line_and_what_is_finished_stays(folder, whole, engine):
    """One after the other: each stops the run that the same command resumed."""
    out = folder / f"stopped{len(''.join(engine))}"
    arguments = words(out.name, "--workers", "1", *engine)
    shards = {}
    # how a command ends does not depend on the engine, how the engine ends does
    codes = CODES if not engine else {signal.SIGINT: 130}
    for sent, code in codes.items():
        running = Command(*arguments, cwd=folder, env=environment(0.02))
        wait_for(running, partial(has_more, out, shards))
        running.send_signal(sent)
        _, stderr = running.communicate()
        assert running.returncode == code, stderr
        assert stderr.splitlines() == [LINE]
        assert not list(out.rglob("*.tmp"))
        before, shards = shards, find_shards(out)
        assert {path: shards[path] for path in before} == before
        assert len(before) < len(shards) < SHARDS
    # test_ray continues runs on a cluster; another start of Ray takes ten seconds
    arguments = words(out.name, "--workers", "1") if "ray(most=1)" in engine else arguments
    done = steadyeye(*arguments, cwd=folder, env=environment(0))
    assert done.returncode == 0, done.stderr
    ended = find_shards(out)
    assert {path: ended[path] for path in shards} == shards
    assert len(ended) == SHARDS
    ended = {name: data for name, data in tree(out).items() if name.startswith("cells")}
    assert ended == {name: data for name, data in whole.items() if name.startswith("cells")}


@pytest.mark.slow
@pytest.mark.parametrize("process", ["gcs_server", "raylet"])
def test_a_sigterm_while_ray_begins_is_as_any_other(folder, process):
    arguments = words(f"begins-{process}", "--workers", "1", "--engine", "ray(most=1)")
    running = Command(*arguments, cwd=folder, env=environment(0.02))
    begun = []

    def has_begun():
        begun[:] = psutil.Process(running.pid).children(recursive=True)
        # where one has ended since it was listed, they are listed again
        with suppress(psutil.NoSuchProcess):
            return any(process in child.name() for child in begun)
        return False

    wait_for(running, has_begun)
    running.send_signal(signal.SIGTERM)
    _, stderr = running.communicate()
    assert running.returncode == CODES[signal.SIGTERM], stderr
    assert stderr.splitlines() == [LINE]
    # Ray's own agents look for a minute for what they belong to before they end
    _, left = psutil.wait_procs(begun, timeout=120)
    assert not left


@pytest.mark.slow
@pytest.mark.parametrize("form", ["none", "json"])
def test_a_second_interrupt_ends_the_command_at_once(folder, form, tmp_path):
    arguments = [
        "run",
        "--model",
        STUCK,
        "--data",
        BOXES,
        "--no-cache",
        "--out",
        str(tmp_path / "run"),
    ]
    env = {**environment(0), "ASKED": str(tmp_path / "asked")}
    running = Command(*arguments, "--progress", form, cwd=folder, env=env)
    wait_for(running, (tmp_path / "asked").exists)
    while running.poll() is None:  # two that come at once are one
        with suppress(ProcessLookupError):
            running.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, stderr = running.communicate()
    assert running.returncode == 130, stderr
    *_, last = stderr.splitlines()
    if form == "json":
        assert json.loads(last) == {"event": "stopped", "message": LINE.removeprefix("steadyeye: ")}
    else:
        assert stderr.splitlines() == [LINE]
    assert not list(tmp_path.rglob("*.tmp"))


def test_an_immediate_exit_removes_the_temporary_file_of_a_write(tmp_path, monkeypatch):
    entries = []
    monkeypatch.setattr(files, "_ending", threading.Event())

    def end_at_once(_):
        entries.extend(path.name for path in tmp_path.iterdir())
        files.remove_temporaries()
        entries.append(len(list(tmp_path.iterdir())))
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", end_at_once)
    with pytest.raises(KeyboardInterrupt):
        files.write_file(tmp_path / "a", b"text")
    assert entries[0].startswith(".a.")
    assert entries[1] == 0
    # whoever begins to write now waits for the end
    late = threading.Thread(target=files.write_file, args=(tmp_path / "b", b""), daemon=True)
    late.start()
    late.join(0.2)
    assert not list(tmp_path.iterdir())
    with files.temporary_folder() as folder:
        files.remove_temporaries()
        assert not folder.exists()


@pytest.mark.slow
def test_a_terminal_that_is_closed_stops_the_command(folder, whole):
    out = folder / "closed"
    main, terminal = os.openpty()
    arguments = [word for word in words(out.name, "--workers", "1") if word != "--quiet"]
    with open(terminal, "wb", closefd=False) as stream:
        running = Command(*arguments, cwd=folder, env=environment(0.02), files=[stream, stream])
    os.close(terminal)
    wait_for(running, lambda: list(out.glob("cells/*/*.arrow")))
    os.close(main)
    running.send_signal(signal.SIGHUP)
    assert running.wait() == 129
    assert not list(out.rglob("*.tmp"))
    done = steadyeye(*arguments, cwd=folder, env=environment(0))
    assert done.returncode == 0, done.stderr
    ended = {name: data for name, data in tree(out).items() if name.startswith("cells")}
    assert ended == {name: data for name, data in whole.items() if name.startswith("cells")}


def start_check(folder):
    """`steadyeye check` of `slow_model.py`, which it imports."""
    model = "callable(path='py:slow_model:f', classes='imagenet1k')"
    words = ["check", "--model", model, "--data", "video(path='a.mp4')"]
    paths = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    how = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": reset_signals}
    return subprocess.Popen([sys.executable, "-m", "steadyeye", *words], cwd=folder, env=env, **how)


SWALLOWED = """
import os, signal, time

class Item:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)  # the signal is received here

Item()
time.sleep(60)
"""


@pytest.mark.slow
def test_an_interrupt_within_a_finalizer_is_not_lost(tmp_path):
    (tmp_path / "slow_model.py").write_text(SWALLOWED)
    running = start_check(tmp_path)
    _, stderr = running.communicate(timeout=50)
    assert (running.returncode, stderr.splitlines()) == (143, [LINE])


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_an_interrupt_within_an_exec_has_the_same_exit_code(sent, tmp_path):
    # Python remembers such a one, and would end itself by SIGINT whatever was asked of it
    (tmp_path / "slow_model.py").write_text(
        "open('begun', 'w').close()\nexec('import time; time.sleep(60)')"
    )
    running = start_check(tmp_path)
    wait_for(running, (tmp_path / "begun").exists)
    running.send_signal(sent)
    _, stderr = running.communicate()
    assert (running.returncode, stderr.splitlines()) == (CODES[sent], [LINE])


WHILE_LOADING = """
import os, signal, sys

class Stop:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Stop())
from steadyeye.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line"),
    [("typer", "steadyeye: stopped before it started"), ("steadyeye.cli.mine", LINE)],
)
def test_an_interrupt_while_a_command_loads_is_one_line(module, line):
    command = [sys.executable, "-c", WHILE_LOADING, module]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", line)
