"""Runs on a store: a real S3 server, one that fails on purpose, one that disappears."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from itertools import count, cycle, product
from pathlib import Path

import numpy as np
import pytest
import s3_server
import simplejpeg
from bright_pictures import written
from forked import Command, steadyeye, steadyeye_each
from stored_runs import MODEL, Watcher, _below, compute, shards

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.storage import retry
from steadyeye.core.storage.files import find_missing, place
from steadyeye.core.storage.run_lock import hold_run
from steadyeye.predictions.covariate_table import state
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import mend, open_cell
from steadyeye.runner import threads, validate
from steadyeye.runner.job import Job
from steadyeye.runner.measure import measure
from steadyeye.runner.run import run

NUMBERS = count(100)


@pytest.fixture(scope="module")
def url():
    with s3_server.server() as address:
        yield address


@pytest.fixture
def bucket(url):
    return s3_server.bucket(url, f"bucket-{next(NUMBERS)}")


@pytest.fixture
def _no_pause(monkeypatch):
    monkeypatch.setattr(retry, "draw_pause", lambda turn: 0.0)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """96 pictures of rising brightness in two class folders."""
    return written(tmp_path_factory.mktemp("pictures"), count=96, step=2)


@pytest.fixture(scope="module")
def whole(pictures, tmp_path_factory):
    """A finished run on a disk."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "toy_light.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        data, model = f"image_folder(root='{pictures}')", "callable(path='toy_light:light')"
        compute(folder / "run", data, model)
    return folder / "run"


def copy_run(whole, out):
    """The finished run in another place, on a disk or a store."""
    for file in _below(whole):
        target = out / str(file.relative_to(whole))
        if isinstance(target, Path):
            target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())


@pytest.fixture
def toy(tmp_path, monkeypatch):
    def write_toy():
        (tmp_path / "toy_light.py").write_text(MODEL)
        monkeypatch.syspath_prepend(str(tmp_path))
        return "callable(path='toy_light:light')"

    return write_toy


@pytest.fixture
def inputs(pictures, toy):
    return f"image_folder(root='{pictures}')", toy()


def test_a_run_on_a_store_has_the_bytes_of_one_on_a_disk(bucket, pictures, toy, whole):
    data = f"image_folder(root='{pictures}')"
    compute(f"{bucket}/run", data, toy())
    assert len(shards(f"{bucket}/run")) == 6
    assert shards(f"{bucket}/run") == shards(whole)
    near, far = (
        {file.name: file.read_bytes() for file in _below(place(str(out)) / "cells")}
        for out in (whole, f"{bucket}/run")
    )
    assert near == far
    predictions = read(*cells(place(f"{bucket}/run"))[0])
    assert predictions.right.mean() == read(*cells(whole)[0]).right.mean()
    again = compute(f"{bucket}/run", data, toy())
    assert list(again.found.values()) == [6]


def test_pictures_of_a_store_are_known_without_being_read(url, bucket, pictures, toy, tmp_path):
    for file in pictures.rglob("*[05].jpg"):
        place(f"{bucket}/pictures/{file.relative_to(pictures)}").write_bytes(file.read_bytes())
    toy()
    # a module of its own: one that was imported before keeps what it had
    (tmp_path / "toy_known.py").write_text(f"{MODEL}\nlight.fingerprint = 'light'\n")
    data, model = f"image_folder(root='{bucket}/pictures')", "callable(path='toy_known:light')"
    gets = []

    def fails(method, path, _):
        if method == "GET" and path.endswith(".jpg"):
            gets.append(path)

    def count_gets(name):
        gets.clear()
        job = Job(models=(model,), data=(data,), out=str(tmp_path / name), cache=f"{tmp_path}/kept")
        run(validate.check(job), Watcher())
        return len(gets)

    with s3_server.failing(url, fails):
        assert count_gets("cold") == 20
        assert count_gets("warm") == 0
        # another picture in the place of one
        other = (pictures / "dark" / "047.jpg").read_bytes()
        place(f"{bucket}/pictures/dark/000.jpg").write_bytes(other)
        assert count_gets("other") == 1
    assert shards(tmp_path / "cold") == shards(tmp_path / "warm") != shards(tmp_path / "other")


def test_python_and_the_command_line_on_a_store(bucket, pictures, toy, tmp_path):
    model, data = toy(), f"image_folder(root='{pictures}')"
    commands = (
        ("run", "--model", model, "--data", data, "--out", f"{bucket}/run"),
        ("report", f"{bucket}/run", "--out", f"{bucket}/copy.json"),
        ("gate", f"{bucket}/run", "--require", "accuracy >= 0.1"),
    )
    for done, says in zip(
        steadyeye_each(commands, tmp_path),
        (f"report: {bucket}/run/report.html", f"{bucket}/copy.json", "1 of 1 hold"),
        strict=True,
    ):
        assert done.returncode == 0, done.stderr
        assert says in done.stdout
    html = place(f"{bucket}/run/report.html").read_text()
    assert "<html" in html
    assert json.loads(place(f"{bucket}/copy.json").read_text())
    log = place(f"{bucket}/run/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in log] == ["run", "cell"]
    stored_run = se.open_run(f"{bucket}/run")
    assert stored_run.accuracy().n == 96
    assert str(stored_run.report(f"{bucket}/again.md")) == f"{bucket}/again.md"


def test_measurements_on_a_store_equal_those_on_a_disk(bucket, toy, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clip").mkdir()
    for i in range(12):
        noise = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        (tmp_path / "clip" / f"{i:03d}.jpg").write_bytes(simplejpeg.encode_jpeg(noise))
    data, measurements = f"frames(path='{tmp_path / 'clip'}', anchors=3, k=2)", []
    for out in (tmp_path / "run", place(f"{bucket}/run")):
        compute(out, data, toy())
        measure(out, Watcher(), 2)
        assert state(out)
        measurements.append({file.name: file.read_bytes() for file in _below(out / "measurements")})
    assert measurements[0] == measurements[1]
    assert "seal.json" in measurements[0]


@pytest.mark.usefixtures("_no_pause")
def test_faults_that_pass_are_tried_again(url, bucket, pictures, toy, whole):
    """The first two requests of each kind for an object fail, in each way somewhere."""
    fates, met = defaultdict(lambda: cycle((500, "drop", 503))), set()
    fates["GET"] = cycle(("half", 500, 503, "drop"))

    def fails(method, path, n):
        if n >= 2:
            return None
        fate = next(fates[method])
        met.add((method, fate))
        return fate

    data = f"image_folder(root='{pictures}')"
    with s3_server.failing(url, fails) as counts:
        compute(f"{bucket}/run", data, toy())
        read(*cells(place(f"{bucket}/run"))[0])
    assert max(counts.values()) >= 2
    assert {("GET", fate) for fate in ("half", 500, 503, "drop")} <= met
    assert {("PUT", fate) for fate in (500, 503, "drop")} <= met
    assert shards(f"{bucket}/run") == shards(whole)


@pytest.mark.usefixtures("_no_pause")
def test_a_store_that_never_answers_is_one_line_after_eight_tries(url, bucket):
    refused = pytest.raises(UsageError, match="SlowDown: on purpose, 8 times over")
    with s3_server.failing(url, lambda *_: 503) as counts, refused as error:
        place(f"{bucket}/x").write_bytes(b"1")
    assert "\n" not in str(error.value)
    assert list(counts.values()) == [7]


@pytest.mark.parametrize(("status", "text"), [(403, "access denied"), (None, "no such object")])
def test_a_permanent_failure_is_not_retried(url, bucket, status, text):
    refused = pytest.raises((UsageError, FileNotFoundError), match=text)
    with s3_server.failing(url, lambda *_: status) as counts, refused:
        place(f"{bucket}/x").read_bytes()
    assert list(counts.values()) == [0]


def test_pauses_double_and_are_drawn():
    pauses_by_turn = [[retry.draw_pause(turn) for _ in range(50)] for turn in range(8)]
    for turn, pauses in enumerate(pauses_by_turn):
        longest = min(0.2 * 2**turn, 8)
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


def test_a_bucket_that_vanishes_ends_the_run_which_continues_when_it_is_back(
    url, bucket, pictures, toy, whole, monkeypatch
):
    # one shard on its way at a time, as so small a run would else be over before the bucket is gone
    monkeypatch.setattr(threads, "BEHIND", 1)
    data, name = f"image_folder(root='{pictures}')", bucket.removeprefix("s3://")
    objects, lock = {}, threading.Lock()

    def vanish(rows):
        with lock:
            if rows >= 32 and not objects:
                objects.update(s3_server.drop(url, name))

    with pytest.raises(UsageError, match="the bucket does not exist; what is finished is kept"):
        compute(f"{bucket}/run", data, toy(), Watcher(vanish))
    s3_server.bucket(url, name)
    for key, body in objects.items():
        place(f"{bucket}/{key}").write_bytes(body)
    done = sum(key.endswith(".arrow") for key in objects)
    again = compute(f"{bucket}/run", data, toy())
    assert 2 <= done < 6
    assert 1 <= next(iter(again.found.values())) <= done
    assert shards(f"{bucket}/run") == shards(whole)


def test_frames_of_a_vanished_bucket_are_no_faults_of_samples(url, bucket, pictures, toy, tmp_path):
    for i in range(20):
        data = (pictures / "dark" / f"{i:03d}.jpg").read_bytes()
        place(f"{bucket}/frames/{i:03d}.jpg").write_bytes(data)
    job = Job(
        models=(toy(),),
        data=(f"image_folder(root='{bucket}/frames')",),
        out=str(tmp_path / "run"),
        on_error="skip",
    )
    checked = validate.check(job)
    s3_server.drop(url, bucket.removeprefix("s3://"))
    with pytest.raises(UsageError, match="the bucket does not exist"):
        run(checked, Watcher())


def test_wrong_credentials_are_errors_in_one_line(url, bucket):
    import requests

    requests.post(f"{url}/moto-api/reset-auth", data="0", timeout=60)
    try:
        with pytest.raises(UsageError, match=r"access denied \(.*check the credentials") as error:
            place(f"{bucket}/x").read_bytes()
    finally:
        requests.post(f"{url}/moto-api/reset-auth", data="inf", timeout=60)
    assert "\n" not in str(error.value)


def test_a_killed_driver_on_a_store_is_as_if_nothing_happened(
    bucket, pictures, toy, whole, tmp_path
):
    model, data = toy(), f"image_folder(root='{pictures}')"
    (tmp_path / "slow").touch()
    words = ["run", "--model", model, "--data", data, "--batch", "4", "--workers", "1"]
    words += ["--out", f"{bucket}/run"]
    victim = Command(*words, cwd=tmp_path)
    deadline = time.monotonic() + 600
    while len(shards(f"{bucket}/run")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    refused = steadyeye(*words, cwd=tmp_path)
    victim.kill()
    victim.wait()
    assert refused.returncode != 0
    assert "another process" in refused.stderr
    assert f"process {victim.pid}" in refused.stderr
    left = [file.name for file in _below(place(f"{bucket}/run"))]
    assert "seal.json" not in left, "the run was over before it could be killed"
    (tmp_path / "slow").unlink()
    done = steadyeye(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shards(f"{bucket}/run") == shards(whole)
    log = json.loads(place(f"{bucket}/run/log.jsonl").read_text().splitlines()[-1])
    assert log["found"] >= 2


@pytest.mark.parametrize(
    "case",
    [
        *product(["flipped", "short", "unmarked", "empty mark"], [True, False], ["disk"]),
        ("flipped", True, "store"),
        ("unmarked", False, "store"),
    ],
)
def test_an_altered_shard_is_found_and_computed_again(bucket, inputs, whole, tmp_path, case):
    damage, sealed, where = case
    out = place(f"{bucket}/run") if where == "store" else tmp_path / "run"
    copy_run(whole, out)
    cell = open_cell(cells(out)[0][0])
    if not sealed:
        (cell.folder / "seal.json").unlink()
    content = bytearray(cell.path(2).read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "flipped":
        cell.path(2).write_bytes(bytes(content))
    elif damage == "short":
        cell.path(2).write_bytes(bytes(content[:99]))
    elif damage == "unmarked":
        cell.mark(2).unlink()
    else:
        cell.mark(2).write_bytes(b"")
    if sealed and damage in {"flipped", "short"}:
        with pytest.raises(UsageError, match=r"00002\.arrow' was changed after it was written"):
            read(cell.folder)
    harmless = sealed and "mark" in damage
    again = compute(out, *inputs)
    assert list(again.found.values()) == [6 if harmless else 5]
    assert shards(out) == shards(whole)
    assert mend(cell) == []
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    altered = [event["shards"] for event in events if event["event"] == "altered"]
    assert altered == ([] if harmless else [["00002.arrow"]])


def other_machine(out, number, content):
    lease = place(f"{out}/lease/{number:06d}.json")
    lease.write_bytes(json.dumps({"host": "far", "machine": "far", "pid": 1, **content}).encode())
    return lease


def test_a_lease_that_is_renewed_is_refused_and_one_that_is_not_is_taken(bucket):
    out = place(f"{bucket}/run")
    with hold_run(out, beat=100):
        own = json.loads((out / "lease" / "000001.json").read_bytes())
        assert own["pid"] == os.getpid()
        with pytest.raises(UsageError, match=f"process {os.getpid()}"), hold_run(out, beat=1):
            pass
    started = time.monotonic()
    with hold_run(out, beat=10):
        pass
    assert time.monotonic() - started < 100, "what was given back is free at once"
    other_machine(out, 3, {"beat": 0.1, "renewals": 0, "released": False})
    started = time.monotonic()
    with hold_run(out, beat=0.2):
        assert time.monotonic() - started > 0.3
        assert (out / "lease" / "000004.json").is_file()


def test_clocks_do_not_matter_to_a_lease(bucket, monkeypatch):
    out = place(f"{bucket}/run")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with hold_run(out, beat=0.1) as check_lease:
        monkeypatch.setattr(time, "time", lambda: -1e9)
        deadline = time.monotonic() + 300
        while not json.loads((out / "lease" / "000001.json").read_bytes())["renewals"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        check_lease()


def test_a_writer_that_slept_through_its_lease_stops(bucket, pictures, toy):
    out, data = f"{bucket}/run", f"image_folder(root='{pictures}')"
    with hold_run(place(out), beat=0.1) as check_lease:
        taken = other_machine(out, 2, {"beat": 0.1, "renewals": 0})
        deadline = time.monotonic() + 300

        def go_on():
            while time.monotonic() < deadline:
                check_lease()
                time.sleep(0.05)

        with pytest.raises(UsageError, match=r"took 's3://.* over"):
            go_on()
    assert taken.is_file()
    compute(out, data, toy())
    assert len(shards(out)) == 6


def test_only_one_of_two_waiting_writers_gets_the_lease(bucket):
    from concurrent.futures import ThreadPoolExecutor

    out = place(f"{bucket}/run")
    other_machine(out, 1, {"beat": 0.05, "renewals": 0})
    refused = threading.Semaphore(0)

    def want(_):
        try:
            with hold_run(out, beat=1) as check_lease:
                for _ in range(3):  # it keeps the lease until the others have asked for it
                    assert refused.acquire(timeout=300)
                check_lease()
        except UsageError as error:
            refused.release()
            return str(error)
        return "held"

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(want, range(4)))
    assert answers.count("held") == 1
    assert all("is writing" in text for text in answers if text != "held")


def test_an_object_is_made_once(bucket):
    assert place(f"{bucket}/a").create(b"first")
    assert not place(f"{bucket}/a").create(b"second")
    assert place(f"{bucket}/a").read_bytes() == b"first"


def test_paths_and_addresses_are_parsed_and_listed(bucket, tmp_path):
    assert place(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert isinstance(place("runs/one"), Path)
    assert str(place(f"{bucket}/a/") / "b.json") == f"{bucket}/a/b.json"
    assert (place(f"{bucket}/a") / "b.tar").with_suffix(".md").name == "b.md"
    names = ["a/x", "a-b/x", "a/b/x"]
    for name in names:
        (place(bucket) / name).write_bytes(b"1")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    near = [str(file.relative_to(tmp_path)) for file in _below(tmp_path)]
    assert [str(file.relative_to(place(bucket))) for file in _below(place(bucket))] == near
    places = [place(bucket) / name for name in (*names, "a/none")]
    assert find_missing(places) == [str(places[-1])]
    with pytest.raises(UsageError, match="no kind of storage named 'ftp'; known: file, gs, hf, s3"):
        place("ftp://host/x")
    with pytest.raises(UsageError, match="read only here"):
        place("hf://datasets/x/y").write_bytes(b"")


def test_a_missing_package_is_an_error_in_one_line():
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from steadyeye.core.storage.files import place\n"
        "place('s3://bucket/x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs the package 's3fs'; pip install \"steadyeye[s3]\"" in done.stderr
