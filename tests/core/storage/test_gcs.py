"""Runs on Google Cloud Storage, as far as an emulator on loopback speaks its API."""

import json
from itertools import count

import gcs_server
import pytest
import s3_server
from bright_pictures import written
from forked import steadyeye
from packed_toys import build, picture, same, tar
from stored_runs import MODEL, Watcher, compute, shards

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import find_missing, place
from steadyeye.core.storage.run_lock import hold_run
from steadyeye.predictions.read import cells, read

NUMBERS = count()


@pytest.fixture(scope="module")
def url():
    with gcs_server.server() as address:
        yield address


@pytest.fixture
def bucket(url):
    return gcs_server.bucket(url, f"bucket-{next(NUMBERS)}")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """24 pictures of rising brightness in two class folders."""
    return written(tmp_path_factory.mktemp("pictures"), count=24, step=10)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy_light.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "callable(path='toy_light:light')"


def upload(folder, url):
    for file in folder.rglob("*"):
        if file.is_file():
            (place(url) / file.relative_to(folder).as_posix()).write_bytes(file.read_bytes())
    return url


@pytest.mark.slow
def test_a_run_is_sealed_read_and_continued(bucket, data, toy, tmp_path):
    """Pictures, shards, seals and report on the store: the same bytes as on a disk."""
    far = f"image_folder(root='{upload(data, f'{bucket}/pictures')}')"
    compute(tmp_path / "run", f"image_folder(root='{data}')", toy)
    compute(f"{bucket}/run", far, toy)
    whole = shards(tmp_path / "run")
    assert shards(f"{bucket}/run") == whole
    cell = cells(place(f"{bucket}/run"))[0]
    assert read(*cell).right.shape == (24,)
    first = sorted(whole)[0]
    (place(str(cell[0])) / first).write_bytes(b"altered")
    (place(str(cell[0])) / "seal.json").unlink()
    again = compute(f"{bucket}/run", far, toy)
    assert list(again.found.values()) == [len(whole) - 1]
    assert shards(f"{bucket}/run") == whole


@pytest.mark.slow
def test_the_command_line_and_reports(bucket, data, toy, tmp_path):
    words = ["--model", toy, "--data", f"image_folder(root='{data}')", "--out", f"{bucket}/run"]
    done = steadyeye("run", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"report: {bucket}/run/report.html" in done.stdout
    assert "<html" in place(f"{bucket}/run/report.html").read_text()
    stored_run = se.open_run(f"{bucket}/run")
    assert stored_run.accuracy().n == 24
    assert str(stored_run.report(f"{bucket}/copy.json")) == f"{bucket}/copy.json"
    assert json.loads(place(f"{bucket}/copy.json").read_text())


def test_tars_on_the_store(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for shard in range(2):
        names = [(f"{shard}{i}", picture(9 * i)) for i in range(10)]
        files = [
            entry for n, data in names for entry in ((f"{n}.jpg", data), (f"{n}.cls", b"dark"))
        ]
        tar(tmp_path / "tars" / f"t-{shard}.tar", files)
    url = upload(tmp_path / "tars", f"{bucket}/tars")
    far = build(f"webdataset(urls='{url}/t-{{0..1}}.tar')")
    same(build(f"webdataset(urls='{tmp_path}/tars')"), far)
    before = far[3].key()
    changed = (tmp_path / "tars" / "t-0.tar").read_bytes().replace(b"dark", b"dusk")
    place(f"{url}/t-0.tar").write_bytes(changed)
    after = build(f"webdataset(urls='{url}/t-{{0..1}}.tar')")
    assert after.classes.names == ("dark", "dusk")
    assert after[3].key() != before
    assert after[13].key() == far[13].key()


def test_files_on_gcs_are_found_listed_and_deleted(bucket):
    places = [place(f"{bucket}/a/{name}") for name in ("x", "b/y", "none")]
    for location in places[:2]:
        location.write_bytes(b"0123456789")
    assert find_missing(places) == [str(place) for place in places[2:]]
    assert sorted(str(entry) for entry in place(bucket).below()) == [
        f"{bucket}/a/b/y",
        f"{bucket}/a/x",
    ]
    assert places[0].read_range(3, 6) == b"345"
    assert places[0].stat().st_size == 10
    assert place(f"{bucket}/a").is_dir()
    assert not place(f"{bucket}/a").is_file()
    with places[0].open("rb") as file:
        file.seek(8)
        assert file.read() == b"89"
    places[0].unlink()
    places[0].unlink(missing_ok=True)
    assert not places[0].exists()


def test_a_second_writer_on_gcs_is_refused(bucket):
    out = place(f"{bucket}/run")
    second = hold_run(out, beat=1)
    with hold_run(out, beat=1), pytest.raises(UsageError, match="is writing to"):
        second.__enter__()
    with hold_run(out, beat=1) as check_lease:
        check_lease()


@pytest.mark.slow
def test_faults_that_pass_are_tried_again(url, bucket):
    """By gcsfs itself, up to six times, before one of our tries counts."""
    fates = iter((429, "drop", 503))
    with s3_server.failing(
        url, lambda m, p, n: None if n else next(fates), "STORAGE_EMULATOR_HOST"
    ) as requests:
        place(f"{bucket}/x").write_bytes(b"1")
        assert place(f"{bucket}/x").read_bytes() == b"1"
        place(f"{bucket}/x").unlink()
    assert list(requests.values()) == [1, 1, 1], "three requests, each of them made twice"


def test_an_absent_bucket_and_a_forbidden_one_are_refused(url, bucket, data, toy):
    with pytest.raises(UsageError, match="the bucket does not exist") as error:
        compute("gs://nowhere/run", f"image_folder(root='{data}')", toy, Watcher())
    assert "\n" not in str(error.value)
    refused = pytest.raises(UsageError, match="access denied")
    with s3_server.failing(url, lambda *_: 403, "STORAGE_EMULATOR_HOST") as counts, refused:
        place(f"{bucket}/x").read_bytes()
    assert list(counts.values()) == [0], "not tried again"
