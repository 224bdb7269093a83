"""The GitHub action: its own scripts, run as by a runner, with its inputs."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from conftest import ROOT
from forked import write_command
from two_class_pictures import DATA, name_model, write_pictures

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_action(folder, commands, **inputs):
    """The exit code and output of the steps, up to the first that fails.

    `commands`: the folder of the `steadyeye` that they call.
    """
    assert set(inputs) <= {name.replace("-", "_") for name in ACTION["inputs"]}
    values = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): text for name, text in inputs.items()}
    output = ""
    for step in ACTION["runs"]["steps"]:
        variables = {key: fill(text, values) for key, text in step.get("env", {}).items()}
        environment = {**os.environ, **variables}
        environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
        # as a runner calls bash for `shell: bash`
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        output += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, output
    return 0, output


def fill(text, values):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)


@pytest.fixture
def folder(tmp_path):
    """A job on twelve pictures, one of which is of the other class."""
    model, data = name_model("by_brightness"), DATA
    (tmp_path / "job.toml").write_text(f'models = ["{model}"]\ndata = ["{data}"]\n')
    return write_pictures(tmp_path)


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    """A folder with a `steadyeye` whose start takes no imports."""
    folder = tmp_path_factory.mktemp("commands")
    write_command(folder)
    return folder


@pytest.mark.slow
def test_the_action_computes_a_run_and_judges_it(folder, forks):
    required = "accuracy >= 50%\n\n  accuracy <= 100%\n"
    code, output = run_action(folder, forks, job="job.toml", require=required, install="")
    assert code == 0, output
    assert "2 of 2 hold" in output
    assert output.count("::notice title=accuracy") == 2
    root = ElementTree.parse(folder / "runs" / "gate" / "gate.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "0")
    assert "steadyeye_gate_holds{" in (folder / "runs" / "gate" / "gate.txt").read_text()
    code, output = run_action(folder, forks, require="accuracy >= 99%", install="")
    assert code == 1, "a finished run is judged without its job"
    assert "::error title=accuracy >= 99%25 does not hold" in output


def test_a_base_is_compared_with(folder, forks):
    again = {"commands": forks, "require": "accuracy >= 50%", "install": "", "max_drop": "90%"}
    assert run_action(folder, job="job.toml", run="runs/base", **again)[0] == 0
    code, output = run_action(folder, job="job.toml", against="runs/base", **again)
    assert code == 0, output
    assert "2 of 2 hold" in output


def test_inputs_are_never_read_as_code(folder, forks):
    """What somebody writes into a requirement is text of that requirement."""
    harm = "$(touch harm) `touch harm`; touch harm"
    code, output = run_action(folder, forks, require=harm, install="")
    assert code == 2, output
    assert not (folder / "harm").exists()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], "an input within a script is read as code"


def test_the_hook_for_pre_commit_names_a_command_that_there_is():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    words = [str(Path(sys.executable).parent / "steadyeye"), *hook["entry"].split()[1:], "--help"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    assert hook["language"] == "python"
