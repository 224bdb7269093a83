"""Runs on a real Ray cluster of this machine: the same bytes as without, after any failure."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import encoded
import numpy as np
import pytest
import ray_nodes
import s3_server
from forked import Command, steadyeye
from whole_runs import Watcher, shards, tree

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place
from steadyeye.data.images import image_file
from steadyeye.runner import job, validate
from steadyeye.runner.cache import lookup
from steadyeye.runner.engines import work_order
from steadyeye.runner.job import Cluster, read_engine
from steadyeye.runner.run import Silent, run

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

slow.fingerprint = "slow 1"

def deadly(images):
    if Path(__file__).with_name("deadly.on").exists() and (images == 240).all(axis=(1, 2, 3)).any():
        with Path(__file__).with_name("deaths").open("a") as deaths:
            deaths.write("x")
        os._exit(1)
    return slow(images)
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
def data(tmp_path_factory):
    """About 150 frames of a video that is entered at its key frames: ten shards."""
    path = tmp_path_factory.mktemp("videos") / "h264_444.mkv"
    encoded.write(path, "libx264", "yuv444p", {"crf": "10"})
    return f"video(path='{path}', anchors=15, k=5)"


def plan_of(data, out, engine="local", cache=""):
    flags = {"models": ["callable(path='py:slowly:slow')"], "data": [data], "out": str(out)}
    flags |= {"engine": engine, "workers": 2, "cache": cache}
    return validate.check(job.read(None, flags))


@pytest.fixture(scope="module")
def whole(model, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("local") / "run"
    run(plan_of(data, out), Silent())
    return out


@pytest.fixture(scope="module")
def bucket():
    with s3_server.server() as url:
        yield s3_server.bucket(url, "cluster")


@pytest.fixture(scope="module")
def engine():
    """The engine's module, imported when it is first asked for: Ray takes seconds."""
    pytest.importorskip("ray")
    from steadyeye.runner.engines import ray

    return ray


@pytest.fixture(scope="module")
def cluster(model, bucket, engine):
    """One cluster for all tests, as a start takes seconds.

    Its nodes find the model and the bucket by the environment that they are started in.
    """
    with ray_nodes.start_nodes() as nodes:
        yield nodes
    # they would read the environment while later tests change it, which ends the process
    assert not [name for name in name_threads() if name.startswith("client.poll")]


def name_threads():
    """The names of this process's threads, those of libraries too."""
    tasks = Path("/proc/self/task").iterdir()
    return [(task / "comm").read_text().strip() for task in tasks]


@pytest.fixture
def connected(cluster, engine):
    engine.ray.init(address=cluster.address, log_to_driver=False)
    yield
    engine.ray.shutdown()


def same(out, whole):
    assert shards(out) == shards(whole)
    record, before = ((folder / "run.json").read_text() for folder in (out, whole))
    assert record == before
    assert not list(out.rglob("*.tmp"))


def events(out):
    lines = (out / "log.jsonl").read_text().splitlines()
    return {entry["event"]: entry for entry in map(json.loads, lines)}


def begun(model, already=()):
    """Waits until a process infers that did not before; returns its number."""
    deadline = time.monotonic() + 180
    while not (new := processes(model) - set(already) - {os.getpid()}):
        assert time.monotonic() < deadline, "no actor began"
        time.sleep(0.05)
    return min(new)


def processes(model):
    return {int(path.name) for path in (model / "began").glob("*")}


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_actors_write_their_shards_and_keep_their_answers(model, bucket, data, whole, tmp_path):
    before = processes(model)
    run(plan_of(data, tmp_path / "run", "ray(least=2)", str(tmp_path / "kept")), Silent())
    same(tmp_path / "run", whole)
    assert len(processes(model) - before) == 2
    log_entries = events(tmp_path / "run")
    count = len(shards(whole))
    assert (log_entries["cluster"]["written"], log_entries["cluster"]["sent"]) == (count, 0)
    assert sum(log_entries["cluster"]["nodes"].values()) == count
    assert len(log_entries["cluster"]["nodes"]) == 2
    assert log_entries["cell"]["stages"]["infer"] > 0
    # again from what was kept, into a store that the actors write to themselves
    out, watcher = place(f"{bucket}/run"), Watcher()
    run(plan_of(data, out, "ray(most=1)", str(tmp_path / "kept")), watcher)
    files = {file.name: file.read_bytes() for file in out.below()}
    log = {entry["event"]: entry for entry in map(json.loads, files["log.jsonl"].splitlines())}
    assert (log["cluster"]["written"], log["cluster"]["sent"]) == (count, 0)
    assert log["cell"]["hits"] == log_entries["cell"]["rows"] == watcher.rows
    assert not watcher.said
    (cell,) = (whole / "cells").iterdir()
    assert {file.name: files[file.name] for file in cell.iterdir()} == {
        file.name: file.read_bytes() for file in cell.iterdir()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_from_another_machine_rows_come_through_the_driver_and_nothing_is_kept(
    model, data, whole, tmp_path, monkeypatch
):
    # what a worker looks for is not there, and the driver seems to be on another machine
    monkeypatch.setattr(work_order, "write_lightly", lambda path, content: None)
    monkeypatch.setattr(lookup, "identify_machine", lambda: "another")
    watcher = Watcher()
    run(plan_of(data, tmp_path / "run", "ray(most=1)", str(tmp_path / "kept")), watcher)
    same(tmp_path / "run", whole)
    log_entries = events(tmp_path / "run")
    size = sum(map(len, shards(whole).values()))
    assert (log_entries["cluster"]["written"], log_entries["cluster"]["sent"]) == (0, size)
    assert log_entries["cell"]["hits"] == 0
    assert watcher.said == [
        f"the cache '{tmp_path / 'kept'}' is a file of one machine: workers on other "
        "machines do not use it"
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_a_local_run_is_finished_on_the_cluster_though_an_actor_is_killed(
    model, data, whole, tmp_path
):
    out = tmp_path / "run"
    run(plan_of(data, out), Silent())
    (cell,) = (out / "cells").iterdir()
    (cell / "seal.json").unlink()
    shard_files = sorted(cell.glob("*.arrow"))
    for path in shard_files[2:]:
        path.unlink()
    before = processes(model)

    def kill():
        os.kill(begun(model, before), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    run(plan_of(data, out, "ray(most=1)"), Silent())
    killer.join()
    same(out, whole)
    assert sum(events(out)["cluster"]["nodes"].values()) == len(shard_files) - 2


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_an_error_of_a_ray_worker_is_one_line(model, tmp_path):
    broken = tmp_path / "a.jpg"
    broken.write_bytes(b"\xff\xd8 no picture")
    with pytest.raises(UsageError, match=r"cannot decode .*a\.jpg") as error:
        run(plan_of(f"image_folder(root='{tmp_path}')", tmp_path / "run", "ray(most=1)"), Silent())
    assert "\n" not in str(error.value)


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_a_shard_that_always_kills_its_actor_ends_the_run(engine, model, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "TRIES", 2)
    (tmp_path / "greys").mkdir()
    for i in range(48):
        png = image_file.encode(np.full((24, 24, 3), 240 if i == 40 else i, dtype=np.uint8), ".png")
        (tmp_path / "greys" / f"{i:02d}.png").write_bytes(png)
    source, out = f"image_folder(root='{tmp_path / 'greys'}')", tmp_path / "run"
    flags = {"models": ["callable(path='py:slowly:deadly')"], "data": [source], "cache": "off"}

    def computed(out, name):
        run(validate.check(job.read(None, flags | {"out": str(out), "engine": name})), Silent())

    (model / "deadly.on").touch()
    with pytest.raises(UsageError, match=f"an actor died {engine.TRIES} times at shard 2; if mem"):
        computed(out, "ray(most=1)")
    assert len((model / "deaths").read_text()) == engine.TRIES
    assert len(list(out.glob("cells/*/*.arrow"))) == 2
    (model / "deadly.on").unlink()
    computed(out, "local")
    computed(tmp_path / "alone", "local")
    assert shards(out) == shards(tmp_path / "alone")


@pytest.mark.slow
def test_a_killed_driver_continues_where_it_was(cluster, model, data, whole, tmp_path):
    words = ["run", "--model", "callable(path='py:slowly:slow')", "--data", data, "--quiet"]
    words += ["--engine", "ray(most=1)", "--out", "run", "--address", cluster.address]
    running = Command(*words, cwd=tmp_path)
    folder = tmp_path / "run" / "cells"
    deadline = time.monotonic() + 300
    while not list(folder.glob("*/*.arrow")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "no shard came"
        time.sleep(0.02)
    running.kill()
    running.wait()
    shard_count = len(list(folder.glob("*/*.arrow")))
    assert not list(folder.glob("*/seal.json")), "the run was over before it could be killed"
    assert steadyeye(*words, cwd=tmp_path, check=True).stderr == ""
    assert shard_count <= events(tmp_path / "run")["cell"]["found"]
    same(tmp_path / "run", whole)
    assert set(tree(tmp_path / "run")) > set(tree(whole))


def test_only_the_stray_line_of_ray_is_left_out(engine, capfd):
    stray = b"[2026-11-21 16:46:07,068 I 1 1] logging.cc:303: Set ray log level from environment "
    with engine._without_stray_lines():
        os.write(2, b"an error\n" + stray + b"variable RAY_BACKEND_LOG_LEVEL to 3\nand more")
    os.write(2, b", and after\n")
    assert capfd.readouterr().err == "an error\nand more, and after\n"


@pytest.mark.slow
@pytest.mark.usefixtures("connected")
def test_a_node_dies_and_the_other_finishes(cluster, model, data, whole, tmp_path):
    before = processes(model)

    def kill():
        first = begun(model, before)
        begun(model, {*before, first})
        cluster.kill_second()

    killer = threading.Thread(target=kill)
    killer.start()
    run(plan_of(data, tmp_path / "run", "ray(least=2)"), Silent())
    killer.join()
    same(tmp_path / "run", whole)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rey", "did you mean 'ray'"),
        ("ray(cpu=1)", "did you mean 'cpus'"),
        ("ray(cpus=0)", "needs a part of a CPU or of a GPU"),
        ("ray(gpus=-1)", "give a number of at least 0"),
        ("ray(least=3, most=2)", "most of no less than least"),
    ],
)
def test_impossible_engines_are_refused(text, why):
    with pytest.raises(UsageError, match=why):
        read_engine(text)


def test_the_resources_of_a_cluster_are_read_from_the_spec():
    assert read_engine("local") is None
    assert read_engine("ray(gpus=0.5, most=8)", "auto") == Cluster("auto", 1, 0.5, 1, 8)
    with pytest.raises(UsageError, match="add --engine ray"):
        read_engine("local", "auto")


@pytest.mark.usefixtures("engine")
def test_an_absent_cluster_is_an_error_in_one_line(model, data, tmp_path):
    checked = plan_of(data, tmp_path / "run", "ray(address='127.0.0.1:1')")
    with pytest.raises(UsageError, match=r"cannot reach the Ray cluster '127\.0\.0\.1:1'"):
        run(checked, Silent())


def test_a_machine_too_busy_for_ray_is_an_error_in_one_line(model, data, tmp_path, monkeypatch):
    starts = []

    def give_up(*_, **__):
        starts.append(1)
        raise Exception("The current node timed out during startup. This could")

    monkeypatch.setattr("ray.init", give_up)
    checked = plan_of(data, tmp_path / "run", "ray(most=1)")
    with pytest.raises(UsageError, match=r"cannot begin Ray: .*; .* run the same command again"):
        run(checked, Silent())
    assert len(starts) == 3


@pytest.mark.usefixtures("engine")
def test_ray_begins_again_on_a_machine_that_is_busy_for_a_while(monkeypatch):
    from steadyeye.runner.engines.ray import _begin

    starts = []

    def be_late_once(*_, **__):
        starts.append(1)
        if len(starts) == 1:
            raise Exception("The current node timed out during startup. This could")

    monkeypatch.setattr("ray.init", be_late_once)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    _begin("")
    assert len(starts) == 2
