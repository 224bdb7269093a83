"""Commands stopped by signals at random moments: exit code, message, and remaining files.

Whole processes, as a shell starts them: each leads its own session, and a signal of the terminal
goes to the whole session.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import faulty_commands
import forked
import psutil
from conftest import TESTS

LINE = "steadyeye: stopped; run the same command again to go on"
WAYS = {
    "Ctrl-C": (signal.SIGINT, True),
    "SIGTERM": (signal.SIGTERM, False),
    "SIGHUP": (signal.SIGHUP, True),
    "Ctrl-C twice": (signal.SIGINT, True),
}
"""What is sent, and whether to all processes of the session, as a terminal does."""
SOON = 15.0
"""Seconds after the end of a command in which what it began has to end."""
SPARE = ("torchinductor", "ray", ".ses")
"""Beginnings of what torch, Ray and ONNX Runtime keep in the folder for temporary files."""
LONGEST = 60.0
"""Seconds in which a command has to end."""


def start(world, words, **more):
    """The command as a shell starts it, whose calls that change files are counted."""
    temporary = world.root / "temporary"
    temporary.mkdir(exist_ok=True)
    (world.root / "state").write_bytes(bytes(8))
    env = os.environ | {
        **forked.preload_faults(str(temporary.parent)),
        "PYTHONPATH": TESTS + os.pathsep + os.environ.get("PYTHONPATH", ""),
        "XDG_CACHE_HOME": str(world.root / "home"),
        "FAULT_STATE": str(world.root / "state"),
        "FAULT_BELOW": str(world.work),
        "TMPDIR": str(temporary),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "steadyeye", *words],
        cwd=world.work,
        env=env,
        start_new_session=True,
        text=True,
        **{
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **more,
        },
    )


def stop(running, number, everyone, twice=False):
    """Sends the signal; the processes below that were there, those of other sessions too."""
    below = []
    with suppress(psutil.NoSuchProcess):
        below = psutil.Process(running.pid).children(recursive=True)
    send = os.killpg if everyone else os.kill
    with suppress(ProcessLookupError):
        send(running.pid, number)
        if twice:
            time.sleep(0.05)
            send(running.pid, number)
    return below


def try_signal(world, case, way, random):
    """Whether a case was stopped that way at a random moment, and what is wrong after it."""
    number, everyone = WAYS[way]
    world.renew(case)
    at = random.randint(1, len(world.calls[case.name]))
    running = start(world, case.words)
    while running.poll() is None and world.count() < at:
        time.sleep(0.001)
    below = stop(running, number, everyone, twice=way.endswith("twice"))
    try:
        _, stderr = running.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        running.kill()
        return True, f"call {at}: did not end: {running.communicate()[1]}"
    stopped = running.returncode != 0
    wrong = judge_stop(running.returncode, stderr, number) if stopped else ""
    wrong = wrong or find_orphans(below) or find_leftovers(world)
    return stopped, f"call {at}: {wrong}" if wrong else faulty_commands.finish(world, case)


def judge_stop(code, stderr, number):
    """What is wrong with how a stopped command ended."""
    if code != 128 + number or stderr.splitlines() != [LINE]:
        return f"code {code}: {stderr}"
    return ""


def find_orphans(below):
    """The processes that a command began and that outlive it."""
    _, left = psutil.wait_procs(below, SOON)
    # one that was killed and that nobody has waited for does nothing more
    living = [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
    commands = [" ".join(process.cmdline())[:100] for process in living]
    for process in living:
        process.kill()
    return f"left behind: {commands}" if commands else ""


def find_leftovers(world):
    """The files and folders for a while that a stopped command has left."""
    left = [*(world.root / "temporary").iterdir(), *world.work.rglob(".*.tmp")]
    # other packages keep these for later
    paths = [str(path) for path in left if not path.name.startswith(SPARE)]
    for path in left:
        if path.is_dir():
            faulty_commands.shutil.rmtree(path)
        else:
            Path(path).unlink()
    return f"files left behind: {paths}" if paths else ""
