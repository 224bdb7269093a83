"""The database of a review: its tables, and how it is opened.

SQLite in the set's folder, or PostgreSQL for teams. Decisions are only ever added: the database
itself refuses to change or delete one.
"""

import secrets
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    Boolean,
    Column,
    Computed,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    inspect,
    literal_column,
    make_url,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.storage.sqlite_wal import set_wal_mode
from steadyeye.review.count_tables import add_count_tables, add_count_triggers, run_after_create
from steadyeye.review.transactions import (
    FAILURES,
    WAIT,
    Database,
    DatabaseFile,
    begin_file,
    check_pages,
    describe_address,
    describe_failure,
    describe_place,
    read_json,
    read_token,
)

metadata = MetaData()

reviewers = Table(
    "reviewers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("link", String(32)),
    Column("token_hash", String(64), unique=True),
    Column("admin", Boolean, nullable=False),
    Column("paused", String(200), nullable=False, default=""),
    Column("made_at", Float, nullable=False),
    Column("gold_right", Integer, nullable=False, default=0),
    Column("gold_asked", Integer, nullable=False, default=0),
)
"""`link`: the nonce from which, with the key next to the database, the token of the private link is
made. `token_hash`: SHA-256 of the token; the token itself is not stored. Both are None if the link
was revoked. `paused`: why the reviewer gets no more items; empty if they are not paused.
`gold_right`, `gold_asked`: their standing answers to gold questions."""

sessions = Table(
    "sessions",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("reviewer", Integer, ForeignKey("reviewers.id"), nullable=False, index=True),
    Column("made_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
)
"""Browsers that are signed in. `hash`: SHA-256 of the content of their cookie. `seen_at`: time of
the last request that was recorded."""

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
    Column("sequence", String(400)),
    Column("parent", String(10), nullable=False, default="accepted"),
    Column("verdict", String(10), nullable=False, default=""),
    Column("reason", String(200), nullable=False, default=""),
    Column("changed", Boolean, nullable=False, default=False),
    Column("known", Boolean, Computed("gold IS NOT NULL", persisted=True)),
    Column(
        "free",
        Boolean,
        Computed("state = 'open' AND gold IS NULL AND assigned < needed", persisted=True),
    ),
    UniqueConstraint("stage", "key"),
    Index("items_in_order", "stage", "state", "position"),
    Index("items_free", "stage", "free", "position"),
    Index("items_known", "stage", "known", "position"),
    Index("items_not_for", "not_for", "free"),
    Index("items_of_unit", "stage", "unit"),
    Index("items_of_block", "block", "stage", "state"),
    Index("items_of_sequence", "stage", "sequence"),
)
"""The questions of a review. `unit`: the anchor or image an item belongs to. `position`: the random
order in which items are served. `needed`: votes. `assigned`, `decided`: reviewers it was given to,
and those who answered. `state`: waiting, open, done, or withdrawn; if pairs are spared also
mirrored (the same two frames are reviewed the other way round), implied (predicted to be similar),
beyond (predicted not to be similar, left out), and bulk (accepted after an audit). `gold`: the
known answer of a gold question. `not_for`: a reviewer who must not answer it. `block`: the items
whose similarity is predicted together; None if no pair is spared. `sequence`: the video whose
frames are served in order; None if there is no video. The outcome of the votes is written with
them, see `review/protocol/counts.py`. `verdict`: accepted, rejected, doubted, or empty while there
are too few votes. `reason`: why it is rejected. `changed`: whether the accepted labels differ from
the original ones. `parent`: the decision on its anchor or objects: accepted, rejected, or
undecided. `known`: whether it is a gold question. `free`: whether it may be assigned to others."""

assignments = Table(
    "assignments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", Integer, ForeignKey("items.id"), nullable=False),
    Column("reviewer", Integer, ForeignKey("reviewers.id"), nullable=False),
    Column("stage", String(40), nullable=False),
    Column("position", Integer, nullable=False),
    Column("nonce", String(32), nullable=False),
    Column("made_at", Float, nullable=False),
    Column("answered", Boolean, nullable=False, default=False),
    Column("released", Boolean, nullable=False, default=False),
    UniqueConstraint("item", "reviewer"),
    Index("assignments_open", "reviewer", "answered"),
    Index("assignments_in_order", "reviewer", "stage", "id"),
    Index("assignments_late", "answered", "released", "made_at"),
    Index(
        "assignments_waiting",
        "reviewer",
        sqlite_where=text("NOT answered"),
        postgresql_where=text("NOT answered"),
    ),
)
"""Which item was assigned to whom. `stage`, `position`: of the item. `released`: not answered in
time, so that it may be assigned to others."""

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
    # with all that the pace is read of, lest a planner walk through the decisions of everybody
    Index("decisions_of_reviewer", "reviewer", "id", postgresql_include=["kind", "seconds"]),
    Index(
        "decisions_commented",
        "id",
        sqlite_where=text("comment <> ''"),
        postgresql_where=text("comment <> ''"),
    ),
)
"""The decisions. `key`: chosen by the client, so that a repeated request adds nothing. `kind`:
answer, undo, or bulk. `replaces`: the decision of the same reviewer that this one replaces.
`version`: of steadyeye and of the set that was shown."""

# in the words of the index: a planner does not know that a parameter is empty
COMMENTED = decisions.c.comment.op("<>", is_comparison=True)(literal_column("''"))
"""The condition for decisions with a comment."""

quiz_answers = Table(
    "quiz_answers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("reviewer", Integer, ForeignKey("reviewers.id"), nullable=False),
    Column("item", Integer, ForeignKey("items.id"), nullable=False),
    Column("answer", JSON, nullable=False),
    Column("right", Boolean, nullable=False),
    Column("made_at", Float, nullable=False),
    UniqueConstraint("reviewer", "item"),
)
"""Answers to the questions of entry quizzes, in order; they are no decisions and not counted."""

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
    run_after_create(decisions, dialect, statements)

item_counts, reviewer_counts, pace_counts = add_count_tables(metadata)
add_count_triggers(items, assignments, decisions)

added_sets = Table("added_sets", metadata, Column("fingerprint", String(64), primary_key=True))
"""The sets whose items were all added, with the plans of their review."""

shown_guidelines = Table(
    "shown_guidelines",
    metadata,
    Column("stage", String(40), primary_key=True),
    Column("version", String(12), primary_key=True),
    Column("text", Text, nullable=False),
    Column("shown_at", Float, nullable=False),
)
"""The guidelines that reviewers saw. `shown_at`: when a version was shown first."""

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
"""Random audits of bulk acceptance. `state`: open, passed, failed, or useless (it would need nearly
all pairs). `most`: the share of accepted pairs that may be wrong. `risk`: the probability of
passing although more are wrong. `accepted`: pairs that people had accepted when it was drawn.
`pool`: items, in the order in which they are audited. `sizes`: sample size of each step. `wrong`:
errors found."""

identity = Table("identity", metadata, Column("token", String(32), primary_key=True))
"""One row with a random token, which identifies this database."""

CONNECTION = {
    # a plan made while the tables were empty reads them whole for ever after
    "prepare_threshold": None,
    "connect_timeout": 5,
    # a network that swallows everything is noticed too, in seconds
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
"""How PostgreSQL is reached."""


def connect(url: str) -> Database:
    """The database at `sqlite:///path` or `postgresql://user@host/name`; its tables are made.

    Raises `UsageError` if it cannot be reached, is damaged, has another version or is no review.
    """
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        place = make_url(url)
        path = Path(place.database or "") if place.get_backend_name() == "sqlite" else None
        engine = _make_engine(place, path)
    except (SQLAlchemyError, ModuleNotFoundError, TypeError, ValueError) as error:
        raise UsageError(f"cannot use {describe_address(url, error)}") from error
    shown_url = place.render_as_string(hide_password=True)
    try:
        if path is not None:
            begin_file(path)
        with engine.begin() as connection:
            token = _prepare_tables(connection, shown_url)
            check_pages(connection)
        return Database(engine, token, DatabaseFile(path) if path else None)
    except (*FAILURES, OSError, UnicodeDecodeError) as error:
        where = describe_place(place, *describe_failure(error))
        raise UsageError(f"cannot open {where}") from error


def _make_engine(place: URL, path: Path | None) -> Engine:
    """The engine of a database; `path`: of an SQLite file."""
    if path is None:
        engine = create_engine(
            place, pool_size=20, max_overflow=30, pool_pre_ping=True, connect_args=CONNECTION
        )
        event.listen(engine, "connect", _set_waits)
        return engine

    def open_file() -> sqlite3.Connection:
        # of a file that is gone no new one is made
        uri = f"{path.absolute().as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, timeout=WAIT, check_same_thread=False)

    # PostgreSQL looks at JSON itself
    engine = create_engine(
        place, pool_size=20, max_overflow=30, creator=open_file, json_deserializer=read_json
    )
    _set_durable(engine)
    return engine


def _set_waits(connection: Any, _: Any) -> None:
    """Lets PostgreSQL wait for a lock as long as SQLite, and detect a dead client within a minute.

    Without that a connection cut in the middle keeps its locks for hours.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{WAIT}s'")
        cursor.execute("SET tcp_keepalives_idle = 20")
        cursor.execute("SET tcp_keepalives_interval = 10")
        cursor.execute("SET tcp_keepalives_count = 3")
    connection.commit()


def _prepare_tables(connection: Connection, shown_url: str) -> str:
    """The token of a database with our tables, which are created in an empty one.

    Raises `UsageError` for a database of another version, or of something else.
    """
    present = set(inspect(connection).get_table_names())
    if not present:
        metadata.create_all(connection)
        connection.execute(insert(identity).values(token=secrets.token_hex(16)))
    elif not present & set(metadata.tables):
        names = list_texts(sorted(present), 3)
        raise UsageError(
            f"the database '{shown_url}' holds something else than a review ({names}); give "
            "another --database"
        )
    missing = _find_missing_column(connection, present) if present else None
    token = None if missing else read_token(connection)
    if token is None:
        raise UsageError(
            f"the database '{shown_url}' is of another version of steadyeye: it has no "
            f"{missing or 'identity.token'}; go on with that version, or give another --database"
        )
    return token


def _find_missing_column(connection: Connection, present: Collection[str]) -> str | None:
    """The first column that the database lacks, as `table.column`; None if it lacks none.

    `present`: its tables.
    """
    inspector = inspect(connection)
    for table in metadata.sorted_tables:
        columns = inspector.get_columns(table.name) if table.name in present else []
        names = {column["name"] for column in columns}
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
        set_wal_mode(connection, WAIT)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if _writes(connection) else "BEGIN")


def _writes(connection: Connection) -> bool:
    return not connection.get_execution_options().get("reads_only", False)
