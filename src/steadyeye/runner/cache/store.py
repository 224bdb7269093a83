"""The store of answers: one SQLite file that many processes and threads read and write.

SQLite in WAL mode: what is not committed is gone after a crash and nothing else is. With 16 kB
pages 20,000 entries of 1,000 scores took 29 µs each to write and 2.4 µs to read, in batches of 16;
Arrow segments of 16 rows 25 and 3 µs and another 6 µs to index at every start.
"""

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from steadyeye.core.storage.sqlite_wal import WAIT, set_wal_mode
from steadyeye.runner.cache.codec import CachedAnswer, decode, encode

FILE = "answers.sqlite"
PAGES = 4000  # of 16 kB, after which what was written is moved into the main file

SCHEMA = """
create table if not exists groups (
    id integer primary key, mark text, model text, data text,
    entries integer, bytes integer, turn integer, used real
);
create table if not exists answers (key blob primary key, grp integer, value blob);
create index if not exists of_group on answers (grp);
create table if not exists files (stamp text primary key, name text);
"""
"""A group is what one run wrote of one model; `turn` orders groups by their last use, whatever the
clock says, and `used` is the clock's time of it. `files`: what the content of a file was named
(`Sample.key`) when the disk said this of it (`ImageFile.stamp`)."""

Pending: TypeAlias = Future[Mapping[bytes, CachedAnswer]]
"""The answers that a thread will give for the keys it claimed, if it succeeds."""


class Claims:
    """The keys that threads of this process infer: each key by one thread.

    A thread that claims keys releases them with their answers; other threads that need one of them
    wait for that. A thread answers all that it claimed before it waits, so that no two wait for
    each other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[bytes, Pending] = {}

    def claim(self, keys: Sequence[bytes]) -> tuple[list[int], dict[int, Pending]]:
        """The positions of the keys now claimed by the caller, and the answers of the others."""
        mine: list[int] = []
        others: dict[int, Pending] = {}
        own: Pending = Future()
        with self._lock:
            for place, key in enumerate(keys):
                if key in self._pending:
                    others[place] = self._pending[key]
                else:
                    self._pending[key] = own
                    mine.append(place)
        return mine, others

    def release(self, keys: Collection[bytes], answers: Mapping[bytes, CachedAnswer]) -> None:
        """Releases keys that the caller claimed; to be called once the answers are stored."""
        with self._lock:
            futures = {self._pending.pop(key) for key in keys}
        for future in futures:
            future.set_result(answers)


class Store:
    """Answers in a folder; its errors never stop a run, `problem` describes them.

    `room`: bytes that this process may still write, so that no run writes without end. A copy
    in another process is the same store.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claims = Claims()
        self.problem = ""
        self.room = sys.maxsize
        self._local = threading.local()
        self._lock = threading.Lock()
        self._groups: dict[tuple[str, str, str], int] = {}
        self._touched: set[int] = set()

    def __reduce__(self) -> tuple[Callable[[Path], "Store"], tuple[Path]]:
        return open_store, (self.folder,)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, CachedAnswer]:
        """The stored answers of these keys, without altered entries."""
        rows = self._rows("select key, grp, value from answers where key", keys)
        self._touched.update(row[1] for row in rows)
        answers = ((key, decode(key, value)) for key, _, value in rows)
        return {key: answer for key, answer in answers if answer is not None}

    def put(self, of: tuple[str, str, str], entries: Mapping[bytes, CachedAnswer]) -> None:
        """Stores answers; `of`: the model's fingerprint, its name and the data's, for listing."""
        if self.problem or not entries or self.room <= 0:
            return
        rows = [(key, encode(key, answer)) for key, answer in entries.items()]
        try:
            self._write(of, rows)
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def read_names(self, stamps: Sequence[str]) -> dict[str, str]:
        """The known contents of files with these stamps: stamp → name of the content."""
        return dict(self._rows("select stamp, name from files where stamp", stamps))

    def put_names(self, names: Mapping[str, str]) -> None:
        """Stores the contents of files with these stamps: stamp → name of the content."""
        if self.problem or not names or self.room <= 0:
            return
        try:
            with self._lock, write_whole(self.connection) as db:
                db.executemany("insert or replace into files values (?, ?)", list(names.items()))
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def ready(self) -> bool:
        """Whether there is a usable store; creates it if there is none."""
        try:
            return bool(self.connection) and not self.problem
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return False

    def finish(self) -> None:
        """Records which groups were used; to be called during a run or at its end."""
        if self.problem or not self._touched:
            return
        with suppress(sqlite3.Error, OSError), write_whole(self.connection) as db:
            turn = db.execute("select coalesce(max(turn), 0) + 1 from groups").fetchone()[0]
            used = [(turn, time.time(), group) for group in sorted(self._touched)]
            db.executemany("update groups set turn = ?, used = ? where id = ?", used)
        self._touched.clear()

    @property
    def connection(self) -> sqlite3.Connection:
        """The calling thread's own connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(self.folder)
        return connection

    def _rows(self, query: str, values: Sequence[bytes] | Sequence[str]) -> list[Any]:
        """The rows with one of the values in the last condition of `query`; none if unusable."""
        if self.problem or not values:
            return []
        marks = ",".join("?" * len(values))
        try:
            return self.connection.execute(f"{query} in ({marks})", list(values)).fetchall()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return []

    def _write(self, of: tuple[str, str, str], rows: Sequence[tuple[bytes, bytes]]) -> None:
        total = sum(len(key) + len(value) for key, value in rows)
        with self._lock, write_whole(self.connection) as db:
            group = self._groups.get(of)
            added = "update groups set entries = entries + ?, bytes = bytes + ? where id = ?"
            # another process may have pruned the group in the meantime
            if group is None or not db.execute(added, (len(rows), total, group)).rowcount:
                cursor = db.execute(
                    "insert into groups (mark, model, data, entries, bytes, turn, used) "
                    "select ?, ?, ?, ?, ?, coalesce(max(turn), 0) + 1, ? from groups",
                    (*of, len(rows), total, time.time()),
                )
                group = self._groups[of] = int(cursor.lastrowid or 0)
            db.executemany(
                # the same answer may be there from another process; an altered one is replaced
                "insert or replace into answers values (?, ?, ?)",
                [(key, group, value) for key, value in rows],
            )
            self.room -= total

    def _give_up(self, error: Exception) -> None:
        # a cache is a convenience: the run goes on without it
        self.problem = self.problem or (
            f"the cache '{self.folder}' is not used in the rest of this run: {error}; "
            "`steadyeye cache prune --all` clears it"
        )


def connect(folder: Path) -> sqlite3.Connection:
    """A connection to the store in a folder, which is made where there is none.

    Raises `sqlite3.Error` or `OSError` where it cannot be opened.
    """
    folder.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(folder / FILE, timeout=WAIT, isolation_level=None, check_same_thread=False)
    # page_size and auto_vacuum count for a new file only; a crash may cost the last answers in
    # WAL mode with `normal`, and never the file
    db.execute("pragma page_size = 16384")
    db.execute("pragma auto_vacuum = incremental")
    set_wal_mode(db)
    db.execute("pragma synchronous = normal")
    db.execute(f"pragma wal_autocheckpoint = {PAGES}")
    db.executescript(SCHEMA)
    return db


@contextmanager
def write_whole(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A block that writes all of what it does, or nothing."""
    db.execute("begin immediate")
    try:
        yield db
        db.execute("commit")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("rollback")
        raise


_stores: dict[Path, Store] = {}
_opening = threading.Lock()


def open_store(folder: Path) -> Store:
    """The store in a folder, one per process, so that its threads share pending answers."""
    with _opening:
        store = _stores.get(folder.absolute())
        if store is None or store.problem:
            store = _stores[folder.absolute()] = Store(folder.absolute())
        return store
