"""Runs on a real Ray cluster of this machine: the same bytes as without, whatever dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from test_runs import command, shards, tree

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.evaluation import job, plan
from steadyeye.evaluation.engines.choice import Cluster, choice
from steadyeye.evaluation.run import Silent, run

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster as Nodes  # noqa: E402

from steadyeye.evaluation.engines import ray as engine  # noqa: E402

SLOW_MODEL = """
import os, time
from pathlib import Path
import numpy as np

def slow(images):
    Path(__file__).with_name("began").mkdir(exist_ok=True)
    Path(__file__).with_name("began").joinpath(str(os.getpid())).touch()
    time.sleep(0.01 * len(images))
    bright = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([bright, 1 - bright], axis=1).astype(np.float32)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A module with a model slow enough for something to die meanwhile, importable everywhere."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "slowly.py").write_text(SLOW_MODEL)
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{before}"
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def data(test_data):
    return f"frames(path='{test_data / 'davis' / 'JPEGImages'}', anchors=3)"


def plan_of(data, out, engine="local"):
    flags = {"models": ["callable(path='py:slowly:slow')"], "data": [data], "out": str(out)}
    return plan.check(job.read(None, {**flags, "engine": engine, "workers": 2}))


@pytest.fixture(scope="module")
def whole(model, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("local") / "run"
    run(plan_of(data, out), Silent())
    return out


@pytest.fixture
def here(model):
    """A cluster of one node with two processors."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def same(out, whole):
    assert shards(out) == shards(whole)
    told, before = ((each / "run.json").read_text() for each in (out, whole))
    assert told == before


def begun(model, already=()):
    """Waits until a process infers that did not before; returns its number."""
    folder = model / "began"
    for _ in range(3600):
        new = {int(path.name) for path in folder.glob("*")} - set(already) - {os.getpid()}
        if new:
            return min(new)
        time.sleep(0.05)
    raise AssertionError("no actor began")


def processes(model):
    return {int(path.name) for path in (model / "began").glob("*")}


@pytest.mark.slow
def test_a_local_run_is_finished_on_the_cluster_though_an_actor_is_killed(
    here, model, data, whole, tmp_path
):
    out = tmp_path / "run"
    run(plan_of(data, out), Silent())
    (cell,) = (out / "cells").iterdir()
    (cell / "seal.json").unlink()
    kept = sorted(cell.glob("*.arrow"))
    for path in kept[2:]:
        path.unlink()
    before = processes(model)

    def kill():
        os.kill(begun(model, before), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    run(plan_of(data, out, "ray(most=2)"), Silent())
    killer.join()
    same(out, whole)
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    (cluster,) = (event for event in events if event["event"] == "cluster")
    assert sum(cluster["nodes"].values()) == len(kept) - 2


@pytest.mark.slow
def test_a_node_dies_and_the_others_finish(model, data, whole, tmp_path):
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    try:
        before = processes(model)
        out = tmp_path / "both"
        run(plan_of(data, out, "ray(least=2)"), Silent())
        same(out, whole)
        assert len(processes(model) - before) == 2

        before = processes(model)
        out = tmp_path / "one"

        def kill():
            first = begun(model, before)
            begun(model, {*before, first})
            nodes.remove_node(second, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        run(plan_of(data, out, "ray(least=2)"), Silent())
        killer.join()
        same(out, whole)
    finally:
        ray.shutdown()
        nodes.shutdown()


@pytest.mark.slow
def test_a_killed_driver_goes_on_where_it_was(model, data, whole, tmp_path):
    before = processes(model)
    words = ["run", "--model", "callable(path='py:slowly:slow')", "--data", data, "--quiet"]
    words += ["--engine", "ray(most=2)", "--out", "run"]
    running = subprocess.Popen(command(*words), cwd=tmp_path, stdout=subprocess.PIPE)
    begun(model, before)
    folder = tmp_path / "run" / "cells"
    while not list(folder.glob("*/*.arrow")):
        time.sleep(0.02)
    running.kill()
    running.wait()
    found = len(list(folder.glob("*/*.arrow")))
    assert not list(folder.glob("*/seal.json")), "the run was over before it could be killed"
    subprocess.run(command(*words), cwd=tmp_path, check=True, capture_output=True)
    events = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert found <= json.loads(events[-1])["found"] > 0
    same(tmp_path / "run", whole)
    assert set(tree(tmp_path / "run")) > set(tree(whole))


@pytest.mark.slow
def test_what_a_worker_cannot_do_is_one_line(here, model, tmp_path, test_data):
    broken = tmp_path / "a.jpg"
    broken.write_bytes(b"\xff\xd8 no picture")
    with pytest.raises(UsageError, match=r"cannot decode .*a\.jpg") as error:
        run(plan_of(f"image_folder(root='{tmp_path}')", tmp_path / "run", "ray"), Silent())
    assert "\n" not in str(error.value)


def test_a_node_with_other_code_weights_or_data_is_refused(model, data, tmp_path):
    task = plan_of(data, tmp_path).tasks[0]
    flags = {"models": ("callable(path='py:slowly:slow')",), "data": (data,)}
    made = {
        "job": flags,
        "identity": json.loads(json.dumps(task.identity)),
        "folder": str(tmp_path),
    }
    before = os.getcwd()
    try:
        with pytest.raises(UsageError, match=r"has numpy .*, not 0\.1; install the same"):
            engine.built({**made, "provenance": {**provenance(), "numpy": "0.1"}})
        other = {**made["identity"], "rows": 1}
        with pytest.raises(UsageError, match=r"another rows of .* same weights and data"):
            engine.built({**made, "provenance": provenance(), "identity": other})
    finally:
        os.chdir(before)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rey", "did you mean 'ray'"),
        ("ray(cpu=1)", "did you mean 'cpus'"),
        ("ray(cpus=0)", "needs a part of a CPU or of a GPU"),
        ("ray(gpus=-1)", "give a number of at least 0"),
        ("ray(least=3, most=2)", "no fewer at most than at least"),
    ],
)
def test_engines_that_cannot_be(text, why):
    with pytest.raises(UsageError, match=why):
        choice(text)


def test_what_a_cluster_is_asked_for():
    assert choice("local") is None
    assert choice("ray(gpus=0.5, most=8)", "auto") == Cluster("auto", 1, 0.5, 1, 8)
    with pytest.raises(UsageError, match="add --engine ray"):
        choice("local", "auto")


def test_a_cluster_that_is_not_there_is_one_line(model, data, tmp_path):
    checked = plan_of(data, tmp_path / "run", "ray(address='127.0.0.1:1')")
    with pytest.raises(UsageError, match=r"cannot reach the Ray cluster '127\.0\.0\.1:1'"):
        run(checked, Silent())
