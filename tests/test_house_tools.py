"""The tools that compare two states of the modules: golden runs, traces, figures."""

import importlib
import os
import re
import runpy
import signal
import sys
import threading
import time

import forked
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import check_tutorials
import golden_commands
import golden_runs
import measure_house
import trace_road


def write(folder, **files):
    """Files of a folder, `__` in a name for `/` and its last `_` for the dot."""
    for name, content in files.items():
        head, _, suffix = name.rpartition("_")
        path = folder / f"{head.replace('__', '/')}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def test_every_command_has_a_golden_run():
    words = {line.split()[0] for text in golden_commands.GROUPS.values() for line in lines(text)}
    words |= {line.split()[1] for text in golden_commands.GROUPS.values() for line in lines(text)}
    # reviews and labels are asked for over HTTP; importing needs a file of another tool; what a
    # watch writes holds the time of day
    by_people = {"review", "review-import", "label"} if "!review" in words else set()
    covered = words | by_people | {"watch"}
    assert set(check_tutorials.read_tree().commands) <= covered


def lines(text):
    return [f"{line} -" for line in text.strip().splitlines()]


def test_a_file_that_differs_is_named_with_its_first_difference(tmp_path):
    before = write(tmp_path / "a", g__a_csv="n,1\nm,2\n", g__old_bin="1", g__same_json='{"x": 1}')
    after = write(tmp_path / "b", g__a_csv="n,1\nm,3\n", g__new_bin="1", g__same_json='{"x": 1}')
    assert list(golden_runs.compare([before, after], "g")) == [
        "differs: g/a.csv\n    'n,1\\nm,2\\n'\n    'n,1\\nm,3\\n'",
        "only after: g/new.bin",
        "only before: g/old.bin",
    ]


def test_only_what_no_two_runs_share_is_masked(tmp_path):
    template = "at 2026-11-22 17:00:03, http://127.0.0.1:{}/r#{}, {} s, 12 images"
    before = write(tmp_path / "a", g__x_txt=template.format(8123, "Ab-1", "1.25"))
    after = write(tmp_path / "b", g__x_txt=template.format(9001, "Zz_9", "0.5"))
    assert list(golden_runs.compare([before, after], "g")) == []
    write(tmp_path / "b", g__x_txt=template.format(9001, "Zz_9", "0.5").replace("12", "13"))
    assert len(list(golden_runs.compare([before, after], "g"))) == 1


def test_inputs_behind_links_are_not_compared(tmp_path):
    before = write(tmp_path / "a", g__x_txt="same")
    after = write(tmp_path / "b", g__x_txt="same")
    (after / "g" / "input.csv").symlink_to(write(tmp_path, input_csv="1") / "input.csv")
    assert list(golden_runs.compare([before, after], "g")) == []


def test_shards_that_have_to_be_equal_are_compared_in_one_commit(tmp_path):
    first, second = golden_runs.SAME[-1]
    write(tmp_path / first / "cells", m__00000_arrow="a", m__00001_arrow="b")
    write(tmp_path / second / "cells", m__00000_arrow="a", m__00001_arrow="c")
    (line,) = golden_runs.find_unequal(tmp_path)
    assert line.startswith(f"{tmp_path.name}: m/00001.arrow differs")


def test_a_broken_run_lacks_the_last_shard_of_each_cell(tmp_path):
    files = {f"run__cell__0000{n}_{suffix}": "" for n in range(2) for suffix in ("arrow", "seal")}
    write(tmp_path, run__cell__seal_json="{}", **files)
    golden_runs.break_run(tmp_path, ["!break", "run"], {})
    assert sorted(os.listdir(tmp_path / "run" / "cell")) == ["00000.arrow", "00000.seal"]


A = """
from package_{0}.b import second
def first():
    return [second(n) for n in range(2)]
"""
B = """
def built():
    return 1
ONE = built()
def second(n):
    return n + ONE
def never():
    return 0
"""


@pytest.mark.parametrize("threaded", [False, True])
def test_a_trace_counts_files_entered_and_turns_in_every_thread(threaded, tmp_path, monkeypatch):
    package = f"package_{threaded}"
    write(tmp_path / package, a_py=A.format(threaded), b_py=B, c_py="VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tracer = trace_road.Tracer(tmp_path / package)
    tracer.install()
    try:
        tracer.on = True
        first = importlib.import_module(f"{package}.a").first
        importlib.import_module(f"{package}.c")
        if threaded:
            thread = threading.Thread(target=first)
            thread.start()
            thread.join()
        else:
            first()
    finally:
        tracer.on = False
        tracer.remove()
    summary = tracer.summarize()
    assert summary["by file"]["b.py"] == {"functions": 1, "calls": 2}
    assert set(summary["by file"]) == {"a.py", "b.py"}
    # there and back, twice
    assert summary["turns"] == 4


def test_calls_of_a_main_module_are_no_imports(tmp_path, monkeypatch):
    package = write(tmp_path / "package_main", b_py=B)
    (package / "__main__.py").write_text("from package_main.b import second\nsecond(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    tracer = trace_road.Tracer(tmp_path / "package_main")
    tracer.install()
    try:
        tracer.on = True
        runpy.run_module("package_main", run_name="__main__")
    finally:
        tracer.on = False
        tracer.remove()
    assert tracer.summarize()["by file"] == {"b.py": {"functions": 1, "calls": 1}}


def test_the_house_is_measured_from_its_files(tmp_path):
    source = write(
        tmp_path / "src" / "steadyeye",
        a__x_py="from steadyeye.b import y\ndef told():\n    found = 1\n    return found\n",
        b__y_py="from steadyeye.c.z import w\nclass Row: ...\ndef _opened(): ...\ndef feed(): 0\n",
        c__z_py="def read_rows():\n    from steadyeye.b.y import Row\n    return Row\nw = 1\n",
        c__y_py="class Row: ...\n",
    )
    description = "\n".join(measure_house.describe(source))
    assert description.startswith("4 files, 13 lines; 4 files under 60 lines")
    assert "3 arrows between packages\n    a → b\n    b → c\n    c → b\n" in description
    assert "loops of packages: 1\n    b, c\n" in description
    assert (
        "loops of files and folders of a folder: 1\n    steadyeye.b, steadyeye.c\n" in description
    )
    assert "loops of files: 1\n    steadyeye.b.y, steadyeye.c.z\n" in description
    assert "loops of files, at import: 0" in description
    assert "2 functions named by a bare participle, most often: told 1, _opened 1" in description
    assert "`found` stands as a name 2 times" in description
    assert "1 public class names in more than one file: Row" in description
    assert "1 file names that recur: y" in description


def test_roads_use_no_module_that_a_move_could_rename():
    tools = ("golden_runs", "golden_commands", "golden_inputs", "golden_process", "golden_review")
    for name in (*tools, "trace_road"):
        text = (ROOT / "tools" / f"{name}.py").read_text()
        assert not re.findall(r"(?:from|import) steadyeye\.", text), name


def test_a_command_that_hangs_is_ended_and_says_where(tmp_path):
    script = (
        write(
            tmp_path,
            hang_py="import threading\nprint('begun', flush=True)\nthreading.Event().wait()",
        )
        / "hang.py"
    )
    running = forked.Command("now", script=script)
    while not os.fstat(running.files[0].fileno()).st_size:
        assert running.poll() is None
        time.sleep(0.01)
    with pytest.raises(
        TimeoutError, match=r"hang.py now\nbegun\n(.|\n)*hang.py\", line 3"
    ) as error:
        running.wait(limit=0.1)
    assert "threading.py" in str(error.value)
    assert running.returncode == -signal.SIGABRT
