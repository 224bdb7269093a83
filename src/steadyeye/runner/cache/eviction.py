"""The content of the store, and the deletion of entries that were unused the longest."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.runner.cache.store import FILE, Store, connect, write_whole

STEP = 500  # rows taken out in one transaction, so that writers wait for a moment only
NAMES = 2_000_000  # files whose content is remembered, of some 150 bytes each
SPARE = 0.9  # a store over its limit is brought to this share of it


@dataclass(frozen=True)
class Group:
    """The answers that one run stored of one model; `used`: days since their last use."""

    id: int
    mark: str
    model: str
    data: str
    entries: int
    bytes: int
    used: float


def groups(folder: Path) -> list[Group]:
    """The groups of the store in a folder, the last used first; none without a store.

    Raises `UsageError` for a file that is no store.
    """
    if not (folder / FILE).is_file():
        return []
    with _open(folder) as db:
        return _groups(db)


def prune(folder: Path, is_removed: Callable[[Group], bool], most: int | None) -> list[Group]:
    """Deletes the `wanted` groups, then those unused the longest until at most `most` is left.

    `most`: bytes; None: no limit. Returns the deleted groups.
    """
    if not (folder / FILE).is_file():
        return []
    with _open(folder) as db:
        groups = _groups(db)
        gone = [group for group in groups if is_removed(group)]
        remaining = [group for group in groups if group not in gone]
        if most is not None:
            gone += _list_excess(remaining, most)
        _take_out(db, gone)
        return gone


def clear(folder: Path) -> bool:
    """Deletes the store in a folder; returns whether there was one."""
    existed = (folder / FILE).is_file()
    for suffix in ("", "-wal", "-shm"):
        (folder / f"{FILE}{suffix}").unlink(missing_ok=True)
    return existed


def shrink(store: Store, most: int) -> None:
    """Shrinks a store to its limit; errors are ignored, as they only cost space."""
    if store.problem:
        return
    with suppress(sqlite3.Error, OSError):
        db = store.connection
        db.execute("delete from files where rowid <= (select max(rowid) from files) - ?", (NAMES,))
        groups = _groups(db)
        if sum(group.bytes for group in groups) > most:
            _take_out(db, _list_excess(groups, int(most * SPARE)))


def _open(folder: Path) -> "closing[sqlite3.Connection]":
    try:
        db = connect(folder)
        db.execute("select count(*) from groups").fetchone()
    except (sqlite3.Error, OSError) as error:
        raise UsageError(
            f"cannot open '{folder / FILE}': {error}; `steadyeye cache prune --all` clears it"
        ) from error
    return closing(db)


def _groups(db: sqlite3.Connection) -> list[Group]:
    rows = db.execute(
        "select id, mark, model, data, entries, bytes, used from groups order by turn desc, id desc"
    ).fetchall()
    # a clock that went backwards makes nothing older
    now = time.time()
    return [
        Group(id_, mark, model, data, entries, size, max(now - used, 0.0) / 86400)
        for id_, mark, model, data, entries, size, used in rows
    ]


def _list_excess(groups: Sequence[Group], most: int) -> list[Group]:
    """The groups, longest unused first, without which the others are within `most` bytes."""
    total = sum(group.bytes for group in groups)
    gone = []
    for group in reversed(groups):
        if total <= most:
            break
        gone.append(group)
        total -= group.bytes
    return gone


def _take_out(db: sqlite3.Connection, gone: Sequence[Group]) -> None:
    for group in gone:
        removed = STEP
        while removed == STEP:
            # the group goes with its last answers: a writer between the two would add to no group
            with write_whole(db):
                removed = db.execute(
                    "delete from answers where rowid in "
                    "(select rowid from answers where grp = ? limit ?)",
                    (group.id, STEP),
                ).rowcount
                if removed < STEP:
                    db.execute("delete from groups where id = ?", (group.id,))
    if gone:
        db.execute("pragma incremental_vacuum").fetchall()
        db.execute("pragma wal_checkpoint(truncate)").fetchall()
