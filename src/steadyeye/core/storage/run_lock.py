"""One writer at a time: a lock on a disk, a lease on a store.

A lease is an object `lease/000007.json`, made only if there is none of that number. Its holder
renews it every 5 seconds by counting up a number in it. Who wants to write looks at the latest
lease: where it was given back, or does not count up for four times as long *by the waiter's own
monotonic clock*, the next number is taken; of several waiters one gets it. No two machines' clocks
are ever compared. A holder that was only asleep sees the higher number at its next renewal and
stops; what it wrote meanwhile is the same bytes, as shards are.

The lock is `filelock`'s. The lease is hand-written, as that package locks disks only, and an object
made if absent and never renewed would outlive a writer that was killed.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from filelock import FileLock, Timeout

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.storage.retry import StorageError

BEAT = 5.0
"""Seconds between renewals; also how long a command may wait to be told that another one runs."""
PATIENCE = 4
"""Renewals that a holder may miss."""

_own_nonces: set[str] = set()
"""The leases of this process: one that it could not give back is no other writer."""

Check = Callable[[], None]
"""Raises `UsageError` once another writer has taken over."""


@contextmanager
def hold_run(out: Place, beat: float = BEAT) -> Iterator[Check | None]:
    """Holds a run's folder for this process; raises `UsageError` where another one holds it.

    `beat`: seconds between the renewals of a lease. What is yielded is to be called as work goes
    on; None for a lock on a disk, which is not lost.
    """
    if isinstance(out, Path):
        with _lock_folder(out):
            yield None
        return
    lease, nonce = _take_lease(out, beat)
    lost, over = Event(), Event()
    renewing = Thread(target=_renew, args=(lease, beat, lost, over), daemon=True)
    renewing.start()

    def check() -> None:
        if lost.is_set():
            raise UsageError(
                f"another process took '{out}' over, as this one had not renewed its lease; "
                "what is finished is kept"
            )

    try:
        yield check
    finally:
        over.set()
        renewing.join()
        _own_nonces.discard(nonce)
        if not lost.is_set():
            _give_back(lease)


@contextmanager
def _lock_folder(out: Path) -> Iterator[None]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise _busy_error(out, "") from None
    except OSError as error:
        raise UsageError(
            f"cannot write to '{out}': {error.strerror}; choose another --out"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _take_lease(out: Remote, beat: float) -> tuple[Remote, str]:
    """The lease of this process, waited for if need be, and its nonce."""
    owner = {**_describe_self(), "nonce": secrets.token_hex(8), "beat": beat}
    while True:
        number, latest = _find_latest(out)
        if latest is not None:
            _wait(out, latest)
        lease = _lease_path(out, number + 1)
        if lease.create(_content(owner, 0)) and _read(lease).get("nonce") == owner["nonce"]:
            _own_nonces.add(owner["nonce"])
            for older in range(max(number - 8, 1), number):
                _lease_path(out, older).unlink(missing_ok=True)
            return lease, str(owner["nonce"])


def _wait(out: Remote, lease: Remote) -> None:
    """Returns once the lease is free; raises where its holder lives."""
    first = _read(lease)
    if first.get("released") or _died_here(first):
        return
    where = f" ({first.get('host')}, process {first.get('pid')})"
    if _lives_here(first):
        raise _busy_error(out, where)
    patience = PATIENCE * float(first.get("beat", BEAT))
    started = time.monotonic()
    while time.monotonic() - started < patience:
        time.sleep(min(0.5, patience / 20))
        now = _read(lease)
        if now.get("released"):
            return
        if now != first:
            raise _busy_error(out, where)


def _renew(lease: Remote, beat: float, lost: Event, over: Event) -> None:
    owner, count = _read(lease), 0
    while not over.wait(beat):
        count += 1
        try:
            if _find_latest(lease.parent.parent)[0] > int(lease.stem):
                lost.set()
                return
            lease.write_bytes(_content(owner, count))
        except (StorageError, OSError):
            # the work itself is told of a store that is gone; until then the next beat may pass
            continue


def _give_back(lease: Remote) -> None:
    try:
        owner = _read(lease)
        lease.write_bytes(_content({**owner, "released": True}, -1))
    except (StorageError, OSError):
        # it then counts as not renewed, and is free a little later
        return


def _find_latest(out: Remote) -> tuple[int, Remote | None]:
    leases = [file for file in (out / "lease").below() if file.stem.isdigit()]
    if not leases:
        return 0, None
    latest = max(leases, key=lambda file: int(file.stem))
    return int(latest.stem), latest


def _lease_path(out: Remote, number: int) -> Remote:
    return out / "lease" / f"{number:06d}.json"


def _content(owner: dict[str, Any], count: int) -> bytes:
    return json.dumps({**owner, "renewals": count}).encode()


def _read(lease: Remote) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(lease.read_bytes())
    except FileNotFoundError:
        return {"released": True}
    return content


def _describe_self() -> dict[str, Any]:
    """The facts by which another process on the same machine can tell whether this one lives."""
    return {"host": socket.gethostname(), "machine": identify_machine(), **_process(os.getpid())}


def identify_machine() -> str:
    """The id of the running machine and the container; empty: not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _process(pid: int) -> dict[str, Any]:
    """The process with when it started, as numbers of processes come again."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return {"pid": pid, "started": ""}
    # a process that was killed and not yet waited for does nothing more
    return {"pid": pid, "started": "" if fields[0] == "Z" else fields[19]}


def _same_machine(owner: dict[str, Any]) -> bool:
    return bool(owner.get("machine")) and owner["machine"] == identify_machine()


def _lives_here(owner: dict[str, Any]) -> bool:
    if owner.get("pid") == os.getpid() and owner.get("nonce") not in _own_nonces:
        return False
    return _same_machine(owner) and _process(owner["pid"])["started"] == owner["started"]


def _died_here(owner: dict[str, Any]) -> bool:
    return _same_machine(owner) and not _lives_here(owner)


def _busy_error(out: Place, who: str) -> UsageError:
    return UsageError(f"another process{who} is writing to '{out}'; wait for it or stop it")
