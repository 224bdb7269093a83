"""The main job without features of Unix: `fcntl` and others, /proc, synced folders."""

import json
import subprocess
import sys

import pytest
from tiny_files import FUNCTION, write_video

# what stands in for Windows: modules that cannot be imported, calls and files that are not there
WITHOUT_UNIX = """
import builtins, importlib.abc, io, os, pathlib, sys
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
for name in ("fcntl", "grp", "pwd", "resource"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocker())
for name in ("O_DIRECTORY", "sched_getaffinity", "getuid", "fork"):
    delattr(os, name)
opened = io.open
def without_proc(file, *args, **kwargs):
    if str(file).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file", str(file))
    return opened(file, *args, **kwargs)
io.open = builtins.open = without_proc
from steadyeye.cli import main
main()
"""


def run_without_unix(folder, *words):
    command = [sys.executable, "-c", WITHOUT_UNIX, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_the_main_job_runs_without_what_only_unix_has(tmp_path):
    write_video(tmp_path / "clip.mp4")
    (tmp_path / "mine.py").write_text(FUNCTION)
    words = ("run", "--model", "mine:predict", "--data", "clip.mp4", "--quiet", "--out", "a")
    done = run_without_unix(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "a" / "results.json").read_text())
    assert record
    assert (tmp_path / "a" / "report.html").is_file()
    again = run_without_unix(tmp_path, *words)
    assert again.returncode == 0, again.stderr
