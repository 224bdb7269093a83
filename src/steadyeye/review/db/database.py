"""The database of a review: SQLite in the set's folder, or PostgreSQL for teams."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError, OperationalError

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.sqlite_wal import WAIT, set_wal_mode

# a plan made while the tables were empty reads them whole for ever after
PLANNED_ANEW = {"prepare_threshold": None}
MIGRATIONS = Path(__file__).resolve().parent / "migrations"


Out = TypeVar("Out")


@dataclass(frozen=True, eq=False)
class Database:
    """Where decisions are kept.

    SQLite has one writer at a time. Those of this process wait for their `turn`, which is fairer
    and faster than polling for its lock; and what is `waiting` meanwhile is written together, so
    that many share one wait for the disk.
    """

    engine: Engine
    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: "SimpleQueue[_Work[Any]]" = field(default_factory=SimpleQueue)

    def write(self, work: Callable[[Connection], Out]) -> Out:
        """What `work` returns, once all it wrote is committed and on disk.

        What it raises undoes its own writes only.
        """
        if self.engine.dialect.name != "sqlite":
            with self.engine.begin() as connection:
                return work(connection)
        mine = _Work(work)
        self.waiting.put(mine)
        with self.turn:
            if not mine.done:
                self._write_all()
        return mine.result()

    def _write_all(self) -> None:
        """Writes everything that waits, in one transaction; the caller has the turn."""
        together: list[_Work[Any]] = []
        try:
            with self.engine.begin() as connection:
                while not self.waiting.empty():
                    together.append(self.waiting.get())
                    together[-1].run(connection)
        except Exception as error:
            for each in together:
                each.error = error
        for each in together:
            each.done = True

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed, and on disk, when the block ends; or not at all."""
        if self.engine.dialect.name != "sqlite":
            with self.engine.begin() as connection:
                yield connection
            return
        with self.turn, self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from."""
        with self.engine.connect().execution_options(reads_only=True) as connection:
            yield connection


@dataclass(eq=False)
class _Work(Generic[Out]):
    """Something to write, and what came of it."""

    work: Callable[[Connection], Out]
    done: bool = False
    value: Out | None = None
    error: Exception | None = None

    def run(self, connection: Connection) -> None:
        try:
            with connection.begin_nested():
                self.value = self.work(connection)
        except Exception as error:
            self.error = error

    def result(self) -> Out:
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def connect(url: str) -> Database:
    """The database at a URL, its tables brought up to date.

    `url`: `sqlite:///path` or `postgresql://user@host/name`. Raises `UsageError` where it cannot
    be reached.
    """
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        options = {"connect_args": {"timeout": WAIT} if url.startswith("sqlite") else PLANNED_ANEW}
        engine = create_engine(url, pool_size=20, max_overflow=30, **options)
    except (ArgumentError, ModuleNotFoundError) as error:
        raise UsageError(f"cannot use the database '{url}': {error}") from error
    if engine.dialect.name == "sqlite":
        _durable(engine)
    try:
        with engine.begin() as connection:
            _upgrade(connection)
    except OperationalError as error:
        told = str(error.orig).strip().splitlines()[0]
        shown = engine.url.render_as_string(hide_password=True)
        raise UsageError(f"cannot open the database '{shown}': {told}") from error
    return Database(engine)


def beside(root: Path) -> str:
    """The URL of the SQLite database in a set's folder."""
    return f"sqlite:///{(root / 'review.sqlite').resolve()}"


def _durable(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def settings(connection: Any, _: Any) -> None:
        # transactions are begun by us: the driver would begin them too late, after the reads
        connection.isolation_level = None
        set_wal_mode(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")


def _writes(connection: Connection) -> bool:
    return not connection.get_execution_options().get("reads_only", False)


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
