"""Folders on a disk without locks, and leases that are damaged or from others."""

import errno
import json
import os

import pytest

from steadyeye.core.errors import UsageError
from steadyeye.core.storage import run_lock
from steadyeye.core.storage.run_lock import hold_run

FOREIGN = {"host": "far", "machine": "far", "pid": 1, "started": "1", "renewals": 0}
DAMAGED = {
    "empty": b"",
    "half": b'{"host": "far", "pi',
    "a list": b"[1]",
    "no text": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "words for numbers": json.dumps({**FOREIGN, "pid": "one", "beat": "often"}).encode(),
    "without end": json.dumps({**FOREIGN, "beat": float("inf")}).encode(),
    "no number": json.dumps({**FOREIGN, "beat": float("nan")}).encode(),
    "before": json.dumps({**FOREIGN, "beat": -5}).encode(),
    "an age": json.dumps({**FOREIGN, "beat": 1e300}).encode(),
    "from the future": json.dumps({**FOREIGN, "renewals": 10**30, "beat": 0.01}).encode(),
    "this machine": json.dumps({"machine": run_lock.identify_machine()}).encode(),
}


@pytest.fixture(params=[errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def no_locks(request, monkeypatch):
    def refuse(file, operation):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(run_lock.fcntl, "flock", refuse)


def test_one_writer_at_a_time_without_locks(no_locks, tmp_path):
    out = tmp_path / "runs" / "a"
    with hold_run(out, beat=0.05) as check:
        check()
        with pytest.raises(UsageError, match="is writing to"), hold_run(out):
            pass
    with hold_run(out) as check:
        check()
    assert json.loads((out / "lease" / "000002.json").read_bytes())["released"]


def test_the_lock_file_of_a_disk_that_had_locks_is_no_writer(no_locks, tmp_path):
    (tmp_path / ".lock").touch()
    with hold_run(tmp_path) as check:
        check()


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_lease_that_cannot_be_read_is_waited_for_and_taken(content, tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock, "_has_locks", lambda out: False)
    monkeypatch.setattr(run_lock, "BEAT", 0.01)
    (tmp_path / "lease").mkdir()
    (tmp_path / "lease" / "000007.json").write_bytes(content)
    with hold_run(tmp_path, beat=0.01) as check:
        check()
    assert json.loads((tmp_path / "lease" / "000008.json").read_bytes())["released"]


def test_only_files_that_are_named_as_leases_count(tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock, "_has_locks", lambda out: False)
    (tmp_path / "lease" / "000009").mkdir(parents=True)
    for name in ("²²²²²².json", "notes.txt", f"{'9' * 100}.json", "000009/000009.json"):
        (tmp_path / "lease" / name).write_bytes(b"")
    with hold_run(tmp_path):
        assert (tmp_path / "lease" / "000001.json").is_file()


def test_a_holder_whose_lease_is_damaged_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock, "_has_locks", lambda out: False)
    with hold_run(tmp_path, beat=0.01) as check:
        (tmp_path / "lease" / "000001.json").write_bytes(b"{")
        check()
    assert json.loads((tmp_path / "lease" / "000001.json").read_bytes())["released"]
