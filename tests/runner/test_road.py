"""The way of one image: few files to its sealed shard, and no unneeded package."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

FILES = 15
"""Decoding and the model proper take six of them, and the progress that a command shows one."""
UNUSED = ("explain", "review", "training")


@pytest.mark.slow
def test_one_image_enters_few_files_and_loads_no_other_package(tmp_path):
    program = ROOT / "tools" / "trace_road.py"
    command = [sys.executable, str(program), "--out", str(tmp_path / "roads"), "image"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    road = json.loads((tmp_path / "roads" / "image.json").read_text())
    assert "runner/infer.py" in road["by file"]
    assert road["files"] <= FILES, list(road["by file"])
    packages = {name.split(".")[1] for name in road["modules"] if "." in name}
    assert "runner" in packages
    assert packages.isdisjoint(UNUSED)
