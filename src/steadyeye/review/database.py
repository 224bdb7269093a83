"""The database of a review: its tables, and connections that read and write them.

SQLite in the set's folder, or PostgreSQL for teams. Decisions are only ever added: the database
itself refuses to change or delete one.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    DDL,
    JSON,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.exc import ArgumentError, OperationalError

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.sqlite_wal import WAIT, set_wal_mode

metadata = MetaData()

reviewers = Table(
    "reviewers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("admin", Boolean, nullable=False),
    Column("paused", String(200), nullable=False, default=""),
    Column("made_at", Float, nullable=False),
)
"""`token_hash`: SHA-256 of the private link's token; the token itself is kept nowhere. `paused`:
why they are shown nothing more; empty: they are not paused."""

items = Table(
    "items",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("stage", String(40), nullable=False),
    Column("key", String(400), nullable=False),
    Column("unit", String(400), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("gold", JSON(none_as_null=True)),
    Column("position", Integer, nullable=False),
    Column("needed", Integer, nullable=False),
    Column("assigned", Integer, nullable=False, default=0),
    Column("decided", Integer, nullable=False, default=0),
    Column("state", String(10), nullable=False),
    Column("not_for", Integer, ForeignKey("reviewers.id")),
    Column("block", String(440)),
    UniqueConstraint("stage", "key"),
    Index("items_in_order", "stage", "state", "position"),
    Index("items_of_unit", "stage", "unit"),
    Index("items_of_block", "block", "stage", "state"),
)
"""What is asked. `unit`: the anchor or image an item belongs to. `position`: the random order in
which items are served. `needed`: votes. `assigned`, `decided`: reviewers it was given to, and
those who answered. `state`: waiting, open, done, or withdrawn; where pairs are spared also mirrored
(the same two frames are asked the other way round), implied (surely similar), beyond (hardly
similar, left out), and bulk (accepted after an audit). `gold`: the known answer of a gold question.
`not_for`: a reviewer who must not answer it. `block`: the items that are forecast together; None:
none is spared."""

assignments = Table(
    "assignments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", Integer, ForeignKey("items.id"), nullable=False),
    Column("reviewer", Integer, ForeignKey("reviewers.id"), nullable=False),
    Column("nonce", String(32), nullable=False),
    Column("made_at", Float, nullable=False),
    Column("answered", Boolean, nullable=False, default=False),
    Column("released", Boolean, nullable=False, default=False),
    UniqueConstraint("item", "reviewer"),
    Index("assignments_open", "reviewer", "answered"),
    Index(
        "assignments_waiting",
        "reviewer",
        sqlite_where=text("NOT answered"),
        postgresql_where=text("NOT answered"),
    ),
)
"""Which item was given to whom. `released`: not answered in time, so that others may have it."""

decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", Integer, ForeignKey("items.id"), nullable=False),
    Column("reviewer", Integer, ForeignKey("reviewers.id"), nullable=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("kind", String(10), nullable=False),
    Column("answer", JSON, nullable=False),
    Column("comment", String(2000), nullable=False, default=""),
    Column("seconds", Float, nullable=False),
    Column("replaces", Integer, ForeignKey("decisions.id")),
    Column("version", String(60), nullable=False),
    Column("made_at", Float, nullable=False),
    Index("decisions_of_item", "item", "reviewer", "id"),
)
"""What was said. `key`: chosen by the client, so that a repeated request adds nothing. `kind`:
answer, undo, or bulk. `replaces`: the decision of the same reviewer that this one takes the place
of. `version`: of steadyeye and of the set that was shown."""

_REFUSAL = "decisions are only ever added"
_TRIGGERS: Mapping[str, Sequence[str]] = {
    "sqlite": [
        f"CREATE TRIGGER decisions_no_{action.lower()} BEFORE {action} ON decisions "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        for action in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION decisions_stay() RETURNS trigger AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER decisions_stay BEFORE UPDATE OR DELETE ON decisions "
        "FOR EACH ROW EXECUTE FUNCTION decisions_stay()",
    ],
}
for dialect, statements in _TRIGGERS.items():
    for statement in statements:
        event.listen(decisions, "after_create", DDL(statement).execute_if(dialect=dialect))  # type: ignore[no-untyped-call]

audits = Table(
    "audits",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("state", String(10), nullable=False),
    Column("seed", Integer, nullable=False),
    Column("most", Float, nullable=False),
    Column("risk", Float, nullable=False),
    Column("accepted", Integer, nullable=False),
    Column("pool", JSON, nullable=False),
    Column("sizes", JSON, nullable=False),
    Column("step", Integer, nullable=False),
    Column("wrong", Integer),
    Column("made_at", Float, nullable=False),
)
"""Random audits of what is to be accepted in bulk. `state`: open, passed, failed, or useless (it
would ask nearly everything). `most`: the share of accepted pairs that may be wrong. `risk`: that
more are, though it passes. `accepted`: pairs people had accepted when it was drawn. `pool`: items,
in the order in which they are audited. `sizes`: how many by each step. `wrong`: errors found."""

# a plan made while the tables were empty reads them whole for ever after
PLANNED_ANEW = {"prepare_threshold": None}

Out = TypeVar("Out")


@dataclass(frozen=True, eq=False)
class Database:
    """A database that is open: transactions that read, and transactions that write.

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
        # taken out before the transaction begins, so that a failure to begin reaches them too
        batch = self._take_waiting()
        try:
            with self.engine.begin() as connection:
                for work in batch:
                    work.run(connection)
                    batch += self._take_waiting()  # what comes meanwhile is written as well
        except Exception as error:
            for work in batch:
                work.error = error
        for work in batch:
            work.done = True

    def _take_waiting(self) -> "list[_Work[Any]]":
        return [self.waiting.get() for _ in range(self.waiting.qsize())]

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
    """A transaction that waits to be written, and what it returned or raised."""

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
    """The database at a URL; its tables are made where they are not there.

    `url`: `sqlite:///path` or `postgresql://user@host/name`. Raises `UsageError` where it cannot
    be reached, or its tables are of another version.
    """
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        options = {"connect_args": {"timeout": WAIT} if url.startswith("sqlite") else PLANNED_ANEW}
        engine = create_engine(url, pool_size=20, max_overflow=30, **options)
    except (ArgumentError, ModuleNotFoundError) as error:
        raise UsageError(f"cannot use the database '{url}': {error}") from error
    if engine.dialect.name == "sqlite":
        _set_durable(engine)
    shown_url = engine.url.render_as_string(hide_password=True)
    try:
        with engine.begin() as connection:
            metadata.create_all(connection)
            missing = _find_missing_column(connection)
    except OperationalError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise UsageError(f"cannot open the database '{shown_url}': {reason}") from error
    if missing:
        raise UsageError(
            f"the database '{shown_url}' is of another version of steadyeye: it has no {missing}; "
            "go on with that version, or give another --database"
        )
    return Database(engine)


def _find_missing_column(connection: Connection) -> str | None:
    """The first column, as `table.column`, that the database lacks; None: it has them all."""
    inspector = inspect(connection)
    for table in metadata.sorted_tables:
        names = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in names:
                return f"{table.name}.{column.name}"
    return None


def default_url(root: Path) -> str:
    """The URL of the SQLite database in a set's folder."""
    return f"sqlite:///{(root / 'review.sqlite').resolve()}"


def _set_durable(engine: Engine) -> None:
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
