"""One writer at a time: a lock on a disk, a lease on a store and on a disk without locks.

A lease is an object `lease/000007.json`, created only if that number does not exist. Its holder
renews it every 5 seconds by incrementing a number in it. A new writer reads the latest lease: if it
was released, or was not incremented for four times as long *by the waiter's own monotonic clock*,
the next number is free; of several waiters one gets it. Clocks of two machines are never compared.
A holder that was suspended sees the higher number at its next renewal and stops; its last writes
are the same bytes, because shards are deterministic. A lease that cannot be read, or without a
holder, counts as not renewed.

The lock is `filelock`'s. The lease is hand-written, because that package locks disks only, and an
object that is created if absent and never renewed would outlive a killed writer.
"""

import errno
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from filelock import FileLock, Timeout

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import (
    Place,
    explain_failure,
    make_folder,
    walk_files,
    write_lightly,
)

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

BEAT = 5.0
"""Seconds between renewals; also the longest wait of a command until it reports another one."""
PATIENCE = 4
"""Renewals that a holder may miss."""

LONGEST = 60.0
"""The longest plausible time between renewals, in seconds."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""The errors of file systems without locks."""
LEASE = re.compile(r"[0-9]{1,18}\.json")
FACTS: Mapping[str, type | tuple[type, ...]] = {
    "host": str,
    "machine": str,
    "pid": int,
    "started": str,
    "beat": (int, float),
}
"""The facts in a lease about its holder; some may be missing."""

_own_nonces: set[str] = set()
"""The leases of this process: one that it could not release is no other writer."""

Check = Callable[[], None]
"""Raises `UsageError` after another writer has taken over."""


@contextmanager
def hold_run(out: Place, beat: float = BEAT) -> Iterator[Check | None]:
    """Holds a run's folder for this process; raises `UsageError` if another process holds it.

    `beat`: seconds between the renewals of a lease. The yielded function is to be called during the
    work; None for a lock, which cannot be lost.
    """
    if isinstance(out, Path) and _has_locks(out):
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


def check_out(out: Place) -> None:
    """Raises `UsageError` where a folder cannot be made or written; to be called before long work.

    Creates nothing. Stores, and what a disk says only of a write itself, pass.
    """
    if not isinstance(out, Path):
        return
    try:
        existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        if not existing.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _refusal(out, error) from error


def _has_locks(out: Path) -> bool:
    """Whether files in a folder, which is created, can be locked: on some networks not."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            return True
        with (out / ".lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                return error.errno not in NO_LOCKS
    except OSError as error:
        raise _refusal(out, error) from error
    return True


def _refusal(out: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write to '{out}': {error.strerror}; choose another --out")


@contextmanager
def _lock_folder(out: Path) -> Iterator[None]:
    try:
        lock = FileLock(out / ".lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise _busy_error(out, "") from None
    except OSError as error:
        raise _refusal(out, error) from error
    try:
        yield
    finally:
        lock.release()


def _take_lease(out: Place, beat: float) -> tuple[Place, str]:
    """The lease of this process, after a wait if necessary, and its nonce."""
    owner = {**_describe_self(), "nonce": secrets.token_hex(8), "beat": beat}
    while True:
        number, latest = _find_latest(out)
        if latest is not None:
            _wait(out, latest)
        lease = _lease_path(out, number + 1)
        if _create(lease, _content(owner, 0)) and _read(lease).get("nonce") == owner["nonce"]:
            _own_nonces.add(owner["nonce"])
            for older in range(max(number - 8, 1), number):
                _lease_path(out, older).unlink(missing_ok=True)
            return lease, str(owner["nonce"])


def _wait(out: Place, lease: Place) -> None:
    """Returns once the lease is free; raises if its holder is alive."""
    first = _read(lease)
    if first.get("released") or _died_here(first):
        return
    where = f" ({first['host']}, process {first['pid']})" if {"host", "pid"} <= first.keys() else ""
    if _lives_here(first):
        raise _busy_error(out, where)
    beat = float(first.get("beat", BEAT))
    # that of another holder may be any value
    patience = PATIENCE * (beat if 0 <= beat <= LONGEST else BEAT)
    started = time.monotonic()
    while time.monotonic() - started < patience:
        time.sleep(min(0.5, patience / 20))
        now = _read(lease)
        if now.get("released"):
            return
        if now != first:
            raise _busy_error(out, where)


def _renew(lease: Place, beat: float, lost: Event, over: Event) -> None:
    owner, count = _read(lease), 0
    while not over.wait(beat):
        count += 1
        try:
            if _find_latest(lease.parent.parent)[0] > int(lease.stem):
                lost.set()
                return
            write_lightly(lease, _content(owner, count))
        except (UsageError, OSError):
            # the work itself reports a store that is gone; a single beat may fail
            continue


def _give_back(lease: Place) -> None:
    try:
        owner = _read(lease)
        write_lightly(lease, _content({**owner, "released": True}, -1))
    except (UsageError, OSError):
        # it then counts as not renewed, and is free a little later
        return


def _create(lease: Place, content: bytes) -> bool:
    """Whether a lease was created; that number may exist."""
    if not isinstance(lease, Path):
        return lease.create(content)
    try:
        make_folder(lease.parent)
        with explain_failure(lease), lease.open("xb") as file:
            file.write(content)
    except UsageError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    return True


def _find_latest(out: Place) -> tuple[int, Place | None]:
    folder = out / "lease"
    files = [file for file in walk_files(folder) if file.parent == folder]
    leases = [file for file in files if LEASE.fullmatch(file.name)]
    if not leases:
        return 0, None
    latest = max(leases, key=lambda file: int(file.stem))
    return int(latest.stem), latest


def _lease_path(out: Place, number: int) -> Place:
    return out / "lease" / f"{number:06d}.json"


def _content(owner: dict[str, Any], count: int) -> bytes:
    return json.dumps({**owner, "renewals": count}).encode()


def _read(lease: Place) -> dict[str, Any]:
    """The content of a lease; for one that we did not write only its bytes."""
    try:
        written = lease.read_bytes()
    except FileNotFoundError:
        return {"released": True}
    unread = {"unread": written.decode("latin-1")}
    try:
        content = json.loads(written)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        return unread
    facts = [(content[name], kind) for name, kind in FACTS.items() if name in content]
    return content if all(isinstance(value, kind) for value, kind in facts) else unread


def _describe_self() -> dict[str, Any]:
    """The facts by which another process on the same machine can tell whether this one is alive."""
    return {"host": socket.gethostname(), "machine": identify_machine(), **_process(os.getpid())}


def identify_machine() -> str:
    """The id of the running machine and the container; empty: not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _process(pid: int) -> dict[str, Any]:
    """The process with its start time, because process numbers are reused."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return {"pid": pid, "started": ""}
    # a killed process that nobody has waited for does not run any more
    return {"pid": pid, "started": "" if fields[0] == "Z" else fields[19]}


def _same_machine(owner: dict[str, Any]) -> bool:
    return bool(owner.get("machine")) and "pid" in owner and owner["machine"] == identify_machine()


def _lives_here(owner: dict[str, Any]) -> bool:
    if owner.get("pid") == os.getpid() and owner.get("nonce") not in _own_nonces:
        return False
    return _same_machine(owner) and _process(owner["pid"])["started"] == owner.get("started")


def _died_here(owner: dict[str, Any]) -> bool:
    return _same_machine(owner) and not _lives_here(owner)


def _busy_error(out: Place, who: str) -> UsageError:
    return UsageError(f"another process{who} is writing to '{out}'; wait for it or stop it")
