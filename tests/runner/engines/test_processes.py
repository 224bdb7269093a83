"""Worker processes: the bytes of threads, whichever dies; unsendable models are refused."""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import s3_server
import torch
from bright_pictures import written
from forked import Command, steadyeye
from whole_runs import Watcher, tree

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place
from steadyeye.predictions.shard_store import begin
from steadyeye.runner import validate
from steadyeye.runner.engines import processes as engine
from steadyeye.runner.engines.driver import Driver, ShardComputer
from steadyeye.runner.engines.processes import Shards, list_gpus
from steadyeye.runner.engines.work_order import build_task, open_order
from steadyeye.runner.job import Cluster, Job, Processes, read_engine
from steadyeye.runner.run import run
from steadyeye.runner.threads import Turns, cores

MODEL = """
import json, os, signal, time
from pathlib import Path
import numpy as np

HERE = Path(__file__).parent

def light(images):
    (HERE / "began").mkdir(exist_ok=True)
    (HERE / "began" / str(os.getpid())).write_text(json.dumps(dict(os.environ)))
    mean = images.reshape(len(images), -1).mean(axis=1) / 255
    if (HERE / "slow").exists():
        time.sleep(0.02 * len(images))
    if (HERE / "deadly").exists() and mean.max() < 0.4:
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / "broken").exists():
        raise ZeroDivisionError("no light")
    return np.stack([mean, 1 - mean], axis=1).astype(np.float32)

light.fingerprint = "light 1"
"""
LIGHT = "callable(path='lit_toy:light')"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """128 pictures of rising brightness in two class folders: eight shards."""
    root = written(tmp_path_factory.mktemp("pictures"), count=128, step=2)
    return f"image_folder(root='{root}')"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The folder of a model that does what files beside it say."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "lit_toy.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "lit_toy", raising=False)
    return folder


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """What a run in threads leaves on the disk."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "lit_toy.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        compute(folder / "run", data, engine="local")
        patch.delitem(sys.modules, "lit_toy")
    return tree(folder / "run")


def compute(out, data, **options):
    watcher = Watcher()
    options = {"engine": "local(processes=2)", "batch": 4, **options}
    run(validate.check(Job(models=(LIGHT,), data=(data,), out=str(out), **options)), watcher)
    return watcher


def events(out):
    return {
        entry["event"]: entry
        for entry in map(json.loads, (out / "log.jsonl").read_text().splitlines())
    }


def workers(toy):
    return {int(path.name) for path in (toy / "began").glob("*")} - {os.getpid()}


def variables(toy, name):
    """What the environment of each worker says of a variable."""
    return [json.loads((toy / "began" / str(pid)).read_text()).get(name) for pid in workers(toy)]


def until(condition):
    deadline = time.monotonic() + 120
    while not (outcome := condition()):
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.01)
    return outcome


def gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_the_bytes_the_counts_and_the_cache_of_threads(data, toy, whole, tmp_path, monkeypatch):
    """Meanwhile several GPUs are taken in turn, and libraries share the processors."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, 3")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    first = compute(tmp_path / "first", data, cache=str(tmp_path / "kept"))
    assert tree(tmp_path / "first") == whole
    assert first.rows == 128
    (counts,) = first.counts.values()
    assert counts["hits"] == 0
    assert counts["decode"] > 0
    assert counts["write"] > 0
    assert len(workers(toy)) == 2
    assert events(tmp_path / "first")["processes"]["died"] == 0
    assert events(tmp_path / "first")["processes"]["written"] == 8
    assert events(tmp_path / "first")["processes"]["sent"] == 0
    assert sorted(variables(toy, "CUDA_VISIBLE_DEVICES")) == ["3", "GPU-a"]
    share = str(max(cores() // 2, 1))
    assert variables(toy, "OMP_NUM_THREADS") == variables(toy, "MKL_NUM_THREADS") == [share] * 2
    assert variables(toy, "OPENBLAS_NUM_THREADS") == ["7"] * 2
    again = compute(tmp_path / "again", data, cache=str(tmp_path / "kept"))
    assert tree(tmp_path / "again") == whole
    assert events(tmp_path / "again")["cell"]["hits"] == 128
    assert not first.said
    assert not again.said


def test_workers_take_consecutive_shards_and_first_those_whose_worker_died():
    shards = Shards(Turns(range(8), 2))
    assert [shards.next(worker) for worker in (0, 1, 0, 1)] == [0, 4, 1, 5]
    shards.put_back(4)
    assert shards.deaths == {4: 1}
    assert [shards.next(worker) for worker in (0, 0, 0)] == [4, 2, 3]
    assert sorted(iter(lambda: shards.next(0), None)) == [6, 7]


def test_a_worker_with_two_processors_works_ahead():
    assert Processes(1).prefetches == (cores() >= 2)
    assert not Processes(cores()).prefetches
    assert [Cluster(cpus=cpus).prefetches for cpus in (0.5, 1, 2)] == [False, False, True]


def test_the_gpus_that_may_be_used(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert len(list_gpus()) == torch.cuda.device_count()
    for text, expected in (("", []), ("2", ["2"]), ("1,GPU-b,", ["1", "GPU-b"])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
        assert list_gpus() == expected


def test_a_killed_worker_is_replaced_and_nothing_is_lost(data, toy, whole, tmp_path):
    (toy / "slow").touch()

    def kill():
        os.kill(min(until(lambda: workers(toy))), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    compute(tmp_path / "run", data)
    killer.join()
    assert tree(tmp_path / "run") == whole
    assert events(tmp_path / "run")["processes"]["died"] == 1
    assert len(workers(toy)) == 3


def test_a_shard_that_kills_its_workers_ends_in_one_line(data, toy, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "TRIES", 2)
    (toy / "deadly").touch()
    with pytest.raises(UsageError, match=r"signal 9 \(SIGKILL\), 2 times at the shard") as error:
        compute(tmp_path / "run", data, engine="local(processes=1)")
    assert "\n" not in str(error.value)
    assert len(workers(toy)) == 2
    (toy / "deadly").unlink()
    shards_found = compute(tmp_path / "run", data, engine="local").found
    assert list(shards_found.values()) == [4]  # the four shards of bright pictures come first
    assert tree(tmp_path / "run") == whole


def test_an_error_of_the_model_in_a_process_is_one_line(data, toy, tmp_path):
    (toy / "broken").touch()
    with pytest.raises(
        UsageError, match=r"light fails on images of shape .*DivisionError: no light"
    ) as error:
        compute(tmp_path / "run", data)
    assert "\n" not in str(error.value)
    until(lambda: all(map(gone, workers(toy))))


def test_an_interrupt_or_a_killed_driver_ends_the_workers(data, toy, whole, tmp_path):
    (toy / "slow").touch()
    words = ("run", "--model", LIGHT, "--data", data, "--batch", 4, "--no-cache", "--quiet")
    words += ("--engine", "local(processes=2)", "--out", "run")
    surroundings = {"PYTHONPATH": os.pathsep.join([str(toy), *sys.path])}
    for turn, sent in enumerate((signal.SIGINT, signal.SIGKILL)):
        driver = Command(*words, cwd=tmp_path, env=surroundings)
        until(lambda: len(list(tmp_path.glob("run/cells/*/*.arrow"))) > turn)  # noqa: B023
        # a terminal interrupts a whole group, and an interrupted worker would print a traceback
        groups = [os.getpgid(process) for process in workers(toy) if not gone(process)]
        assert os.getpgid(driver.pid) not in groups
        driver.send_signal(sent)
        _, stderr = driver.communicate()
        until(lambda: all(map(gone, workers(toy))))
        assert not list(tmp_path.glob("run/cells/*/seal.json")), "over before it could be stopped"
        if sent == signal.SIGINT:
            assert driver.returncode == 130, stderr
            assert stderr == "steadyeye: stopped; run the same command again to go on\n"
    (toy / "slow").unlink()
    assert next(iter(compute(tmp_path / "run", data).found.values())) >= 2
    own_files = {name: content for name, content in tree(tmp_path / "run").items() if name in whole}
    assert own_files == whole


class Interruption(Exception):
    """What a signal raises, wherever the main thread is."""


def test_a_worker_ends_whatever_an_interrupt_met():
    """One that met `Popen.poll` as it took its lock left it taken: the driver waited forever."""

    def interrupt(*_):
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    worker = engine._start_worker(0, 1)
    try:
        for turn in range(2_000):
            with suppress(Interruption):
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-7 * (turn % 100))
                while True:
                    worker.process.poll()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    worker.process.terminate()
    worker.process.wait(30)
    assert worker.process.returncode == -signal.SIGTERM
    engine._end(worker)


def test_objects_go_along_if_another_process_can_import_them(data, toy, tmp_path, monkeypatch):
    import lit_toy

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    done = se.evaluate(lit_toy.light, data, out=tmp_path / "two", engine="local(processes=2)")
    same = se.evaluate(lit_toy.light, data, out=tmp_path / "one")
    np.testing.assert_array_equal(done.predictions.scores, same.predictions.scores)
    assert events(tmp_path / "two")["processes"]["written"] == 8
    assert variables(toy, "CUDA_VISIBLE_DEVICES") == ["1", "1"], "they share the only GPU"


@pytest.mark.parametrize("engine", ["local(processes=2)", "ray"])
def test_a_lambda_is_refused_before_the_run(data, tmp_path, engine):
    with pytest.raises(UsageError, match="'<lambda>' cannot be sent to another process") as error:
        se.evaluate(lambda images: images, data, out=tmp_path / "run", engine=engine)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


SCRIPT = """
import sys
import lit_toy
import steadyeye as se

def mine(images):
    return lit_toy.light(images)

data, engine = sys.argv[1], "local(processes=1)"
try:
    se.evaluate(mine, data, out="mine", engine=engine)
except se.UsageError as error:
    print(error)
print(len(se.evaluate(lit_toy.light, data, out="run", engine=engine).predictions))
"""


def test_a_script_needs_no_guard_and_what_it_defines_itself_is_refused(data, toy, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    surroundings = {"PYTHONPATH": os.pathsep.join([str(toy), *sys.path])}
    done = steadyeye(data, script=tmp_path / "script.py", cwd=tmp_path, env=surroundings)
    refused, rows = done.stdout.splitlines()
    assert "'mine' cannot be sent to another process (it is defined in the script" in refused
    assert rows == "128"
    assert done.stderr == ""
    assert not (tmp_path / "mine").exists()


def test_workers_write_to_a_store_themselves(data, toy, whole, tmp_path):
    with s3_server.server() as url:
        out = f"{s3_server.bucket(url, 'processes')}/run"
        compute(out, data, engine="local(processes=1)")
        files = {
            str(file.relative_to(place(out))): file.read_bytes() for file in place(out).below()
        }
    log = [json.loads(line) for line in files["log.jsonl"].splitlines()]
    (process_entry,) = (entry for entry in log if entry["event"] == "processes")
    assert (process_entry["written"], process_entry["sent"]) == (8, 0)
    assert {name: files.get(name) for name in whole} == whole
    assert not [name for name in files if name.endswith(".tmp")]


def test_rows_come_through_the_driver_where_the_folder_is_not_reached(data, toy, whole, tmp_path):
    job = Job(models=(LIGHT,), data=(data,), out=str(tmp_path / "run"), batch=4)
    (task,) = validate.check(job).tasks
    cell = begin(tmp_path / "cell", task.identity)
    driver = Driver(cell, lambda rows: None, lambda took: None, print)
    with open_order(job, task, cell, Processes(1)) as order:
        assert ShardComputer(order).compute(0).content == b""
        for other in (replace(order, token=".a.tmp"), replace(order, out=str(tmp_path / "b"))):
            assert not other.is_reachable()
            sent = ShardComputer(other).compute(1)
        (cell.folder / order.token).write_bytes(b"of another driver")
        assert not order.is_reachable()
    assert not order.is_reachable()
    before = f"cells/{task.folder}/0000"
    assert sent.content == whole[f"{before}1.arrow"]
    driver.take(sent)
    assert (driver.written, driver.sent) == (0, len(sent.content))
    assert cell.path(0).read_bytes() == whole[f"{before}0.arrow"]
    assert cell.path(1).read_bytes() == whole[f"{before}1.arrow"]


def test_a_worker_that_finds_other_weights_or_code_refuses(data, toy, tmp_path):
    job = Job(models=(LIGHT,), data=(data,), out=str(tmp_path / "run"), batch=4)
    (task,) = validate.check(job).tasks
    with open_order(job, task, begin(tmp_path / "cell", task.identity), Processes(1)) as order:
        with pytest.raises(UsageError, match=r"has numpy .*, not 0\.1; install the same"):
            build_task(replace(order, provenance={**order.provenance, "numpy": "0.1"}))
        with pytest.raises(UsageError, match=r"another rows of .* same weights and data"):
            build_task(replace(order, identity={**order.identity, "rows": 1}))


def test_the_number_of_processes_is_read_from_the_spec():
    assert read_engine("local(processes=3)") == Processes(3)
    for text in ("local(processes=0)", "local(processes=True)", "local(processes='2')"):
        with pytest.raises(UsageError, match="a whole number of at least 1"):
            read_engine(text)
    with pytest.raises(UsageError, match="did you mean 'processes'"):
        read_engine("local(proceses=2)")
