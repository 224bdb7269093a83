"""Transactions of a review's database: committed and on disk, or refused with the reason."""

import json
import os
import re
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    PendingRollbackError,
    ResourceClosedError,
    TimeoutError,
)

from steadyeye.core.errors import UsageError, one_line

WAIT = 5.0  # seconds that a write waits for another; a page gives up a request after 20 s

Out = TypeVar("Out")
Inode: TypeAlias = tuple[int, int] | None


class UnavailableError(UsageError):
    """The database cannot be read or written now; the client must send the same request again.

    Whether the request was stored is not known; its key shows this the next time. `cause`: the
    message of the database.
    """

    def __init__(self, reason: str, cause: str = "") -> None:
        super().__init__(reason)
        self.cause = cause


MOVED = (
    "the database was deleted or replaced while the server runs; nothing is stored until the admin "
    "puts it back or starts the server again"
)
INTERRUPTED = "the database was interrupted"

FAILURES = (DBAPIError, TimeoutError, PendingRollbackError, ResourceClosedError, sqlite3.Error)
OWN_FAILURES = (IntegrityError, DataError)
"""Errors that undo the statements of one writer only, not those of the whole transaction."""

DAMAGED = "the database is damaged; the admin must put a copy of it back"
REASONS = {
    sqlite3.SQLITE_BUSY: "another program holds the database",
    sqlite3.SQLITE_LOCKED: "another program holds the database",
    sqlite3.SQLITE_FULL: "the disk of the database is full",
    sqlite3.SQLITE_READONLY: "the database is read-only",
    sqlite3.SQLITE_IOERR: "the disk of the database fails",
    sqlite3.SQLITE_CANTOPEN: "the file of the database cannot be opened",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    "55P03": "another program holds the database",
    "53100": "the disk of the database is full",
    "25006": "the database is read-only",
}
"""SQLite's primary result code or PostgreSQL's SQLSTATE → reason."""


def describe_failure(error: BaseException) -> tuple[str, str]:
    """The reason of a database failure for everybody, and the database's own one-line message."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None:
        chain.append(current)
        current = current.__context__
    for link in reversed(chain):
        code = getattr(link, "sqlite_errorcode", None)
        reason = REASONS.get(code & 0xFF if code is not None else getattr(link, "sqlstate", None))
        if reason:
            return reason, _first_line(link)
    if isinstance(error, IntegrityError):
        return "another request came first", _first_line(error.orig or error)
    if isinstance(error, TimeoutError):
        return "too many requests wait for the database", _first_line(error)
    return "the database does not answer", _first_line(getattr(error, "orig", None) or error)


def read_json(text: str) -> Any:
    """A value that is stored as JSON; raises `UnavailableError` for invalid JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnavailableError(DAMAGED, f"{text[:40]!r} is no JSON") from error


def check_pages(connection: Connection) -> None:
    """Reads an SQLite file once, so that damage is found before anything is read or written.

    Raises `sqlite3.DatabaseError` for inconsistent pages, and for rows that lack required values.
    PostgreSQL is not checked, because its server checks its pages.
    """
    if connection.dialect.name == "sqlite":
        answer = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if answer != "ok":
            error = sqlite3.DatabaseError(str(answer))
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error


def describe_address(url: str, error: Exception) -> str:
    """An address that names no database that can be used, without its password, and the reason."""
    shown_url = re.sub(r"(://[^/:@]*):[^/]*@", r"\1:***@", url)
    return (
        f"the database '{shown_url}': {one_line(error)}; give sqlite:///file or "
        "postgresql://user@host/name"
    )


def describe_place(url: URL, reason: str, detail: str) -> str:
    """A database and the reason of its failure, for the person who runs it."""
    address = url.render_as_string(hide_password=True)
    more = f" ({detail})" if detail else ""
    return f"the database '{address}': {reason}{more}; correct that and run the same command again"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@contextmanager
def explain_failures() -> Iterator[None]:
    """Raises failures of a database as `UnavailableError`, invalid values as `UsageError`.

    A request with a value that the database cannot hold fails again when it is sent again.
    """
    try:
        yield
    except (DataError, OverflowError, UnicodeEncodeError) as error:
        raise UsageError(f"the database cannot hold this: {_first_line(error)}") from error
    except FAILURES as error:
        raise UnavailableError(*describe_failure(error)) from error


NUMBER_AT = 68  # of `application_id`, SQLite's file format, Section 1.3


def begin_file(path: Path) -> None:
    """Creates a missing SQLite file, with a random number that identifies it."""
    if not path.exists() or not path.stat().st_size:
        with closing(sqlite3.connect(path, timeout=WAIT)) as file:
            file.execute(f"PRAGMA application_id = {secrets.randbits(31)}")


class DatabaseFile:
    """The identity of an SQLite file when it is opened, which detects another file in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # open as long as there are connections: closing it takes the locks of all of them away
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)
        self.state = self._read_state()

    def check(self) -> None:
        """Raises `UnavailableError` if the file or its log was deleted or replaced."""
        if self._read_state() != self.state:
            raise UnavailableError(
                MOVED, f"'{self.path}' is no longer the file that the server opened"
            )

    def _read_state(self) -> tuple[Inode, Inode, bytes]:
        """The inodes of the file and its log, and the random number that the file begins with.

        Copying another file over it does not change the inode.
        """
        log = self.path.with_name(f"{self.path.name}-wal")
        number = os.pread(self.descriptor, 4, NUMBER_AT)
        return _find_inode(self.path), _find_inode(log), number


def _find_inode(path: Path) -> Inode:
    """The device and inode of a file; None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def read_token(connection: Connection) -> str | None:
    """The random token that distinguishes a database from others of the same name."""
    return connection.exec_driver_sql("SELECT token FROM identity").scalar()


@dataclass(frozen=True, eq=False)
class Database:
    """A database that is open: transactions that read, and transactions that write.

    SQLite has one writer at a time. Writers of this process wait for their `turn`, which is fairer
    and faster than polling for its lock; all work that is `waiting` meanwhile is written together,
    so that many share one disk flush. `token`, and for SQLite the `file`, identify the database;
    another one in its place is neither read nor written.
    """

    engine: Engine
    token: str
    file: DatabaseFile | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: "SimpleQueue[_Work[Any]]" = field(default_factory=SimpleQueue)

    def write(self, work: Callable[[Connection], Out]) -> Out:
        """The result of `work`, once its writes are committed and on disk.

        An error in it undoes its own writes only. Raises `UnavailableError` if it is not known to
        be stored; it is never stored after that.
        """
        if self.file is None:
            with self.writing() as connection:
                return work(connection)
        mine = _Work(work)
        self.waiting.put(mine)
        with self.turn:
            if not mine.done:
                self._write_all()
        return mine.result()

    def _write_all(self) -> None:
        """Writes all waiting work in one transaction; the caller has the turn."""
        # taken out before the transaction begins, so that a failure to begin reaches them too
        batch = self._take_waiting()
        failure: Exception | None = UnavailableError(INTERRUPTED)
        try:
            with self._transaction() as connection:
                for work in batch:
                    work.run(connection)
                    batch += self._take_waiting()  # what comes meanwhile is written as well
            failure = None
        except Exception as error:
            failure = error
        finally:
            for work in batch:
                work.finish(failure)

    def _take_waiting(self) -> "list[_Work[Any]]":
        return [self.waiting.get() for _ in range(self.waiting.qsize())]

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed, and on disk, when the block ends; or not at all.

        Raises `UnavailableError` as `write` does.
        """
        with nullcontext() if self.file is None else self.turn, self._transaction() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from. Raises `UnavailableError` where that fails."""
        with self._transaction(reads_only=True) as connection:
            yield connection

    @contextmanager
    def name_failures(self) -> Iterator[None]:
        """A block in which `UnavailableError` becomes a `UsageError` that names the database."""
        try:
            yield
        except UnavailableError as error:
            text = describe_place(self.engine.url, str(error), error.cause)
            raise UsageError(f"cannot use {text}") from error

    @contextmanager
    def _transaction(self, *, reads_only: bool = False) -> Iterator[Connection]:
        self._check_file()
        with explain_failures(), self.engine.connect() as plain:
            connection = plain.execution_options(reads_only=reads_only)
            with connection.begin():
                if read_token(connection) != self.token:
                    raise UnavailableError(MOVED)
                yield connection
        if not reads_only:
            self._check_file()  # what was committed to a deleted file is not stored

    def _check_file(self) -> None:
        if self.file is not None:
            self.file.check()


@dataclass(eq=False)
class _Work(Generic[Out]):
    """A transaction that waits to be written, and what it returned or raised."""

    work: Callable[[Connection], Out]
    done: bool = False
    value: Out | None = None
    error: Exception | None = None

    def run(self, connection: Connection) -> None:
        """Runs the work in a shared transaction; raises errors that may have undone all of it."""
        try:
            with explain_failures(), connection.begin_nested():
                self.value = self.work(connection)
        except UnavailableError as error:
            if not isinstance(error.__cause__, OWN_FAILURES):
                raise
            self.error = error
        except Exception as error:
            self.error = error

    def finish(self, failure: Exception | None) -> None:
        """Marks the transaction as ended; `failure`: why it is not known to be stored."""
        self.error, self.done = failure or self.error, True

    def result(self) -> Out:
        """The return value of the work; raises its error."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]
