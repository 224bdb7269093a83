"""The way of one image: few files to its sealed shard, and no unneeded package."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

from steadyeye.data.images.image_file import encode

FILES = 15
"""Decoding and the model proper take six of them, and the progress that a command shows one."""
UNUSED = ("explain", "review", "training")


@pytest.mark.slow
def test_one_image_enters_few_files_and_loads_no_other_package(tmp_path):
    folder = tmp_path / "one" / "jinrikisha"
    folder.mkdir(parents=True)
    (folder / "photo.png").write_bytes(encode(np.zeros((48, 64, 3), np.uint8), ".png"))
    program = ROOT / "tools" / "trace_road.py"
    command = [sys.executable, str(program), "--out", str(tmp_path), "--here", "image"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    road = json.loads((tmp_path / "image.json").read_text())
    assert "runner/infer.py" in road["by file"]
    assert road["files"] <= FILES, list(road["by file"])
    packages = {name.split(".")[1] for name in road["modules"] if "." in name}
    assert "runner" in packages
    assert packages.isdisjoint(UNUSED)
