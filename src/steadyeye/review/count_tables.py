"""The tables of counts of a review, and the database triggers that update them.

A count is the sum of the rows of its group. A change adds rows in its own transaction and never
alters a row, so that no transaction waits for the counts of another, in PostgreSQL too.
`compact_counts` of `review/protocol/counts.py` merges the rows of a group.
"""

from collections.abc import Sequence

from sqlalchemy import DDL, Boolean, Column, Integer, MetaData, String, Table, event

ITEM_KEYS = ("stage", "state", "known", "parent", "verdict", "reason", "changed", "free")
"""The columns by which items are counted, see `items`; `known`: its answer is known."""

_PACE = (
    "CASE WHEN NEW.seconds <= 0 THEN 0 WHEN NEW.seconds < 0.1 THEN 1 "
    "WHEN NEW.seconds < 10 THEN CAST(ROUND(CAST(NEW.seconds * 10 AS NUMERIC)) AS INTEGER) "
    "ELSE 10 * CAST(ROUND(CAST(NEW.seconds AS NUMERIC)) AS INTEGER) END"
)


def add_count_tables(metadata: MetaData) -> tuple[Table, Table, Table]:
    """The tables `item_counts`, `reviewer_counts` and `pace_counts`, added to the metadata.

    `reviewer_counts`: items of a reviewer; `what`: given to them, answered, or free for others too.
    `pace_counts`: decisions of a kind by duration in tenths of a second, from ten seconds on in
    whole seconds; 0 if the duration is not known.
    """
    item_counts = Table(
        "item_counts",
        metadata,
        Column("id", Integer, primary_key=True),
        *(Column(key, String(40)) for key in ("stage", "state")),
        Column("known", Boolean),
        *(Column(key, String(200)) for key in ("parent", "verdict", "reason")),
        *(Column(key, Boolean) for key in ("changed", "free")),
        Column("n", Integer, nullable=False),
    )
    reviewer_counts = Table(
        "reviewer_counts",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("reviewer", Integer, nullable=False, index=True),
        Column("stage", String(40), nullable=False),
        Column("what", String(10), nullable=False),
        Column("n", Integer, nullable=False),
    )
    pace_counts = Table(
        "pace_counts",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("reviewer", Integer, nullable=False),
        Column("kind", String(10), nullable=False),
        Column("tenths", Integer, nullable=False),
        Column("n", Integer, nullable=False),
    )
    return item_counts, reviewer_counts, pace_counts


def add_count_triggers(items: Table, assignments: Table, decisions: Table) -> None:
    """Adds triggers, so that the database counts every change of these tables."""
    run_after_create(items, "sqlite", _SQLITE_ITEMS)
    run_after_create(items, "postgresql", _POSTGRES_ITEMS)
    run_after_create(assignments, "sqlite", _SQLITE_ASSIGNMENTS)
    run_after_create(assignments, "postgresql", _POSTGRES_ASSIGNMENTS)
    add = _add_row("pace_counts", "reviewer, kind, tenths", f"NEW.reviewer, NEW.kind, {_PACE}", 1)
    run_after_create(
        decisions,
        "sqlite",
        [f"CREATE TRIGGER decisions_counted AFTER INSERT ON decisions BEGIN {add} END"],
    )
    run_after_create(
        decisions, "postgresql", _make_row_trigger("decisions", "decisions_counted", "INSERT", add)
    )


def run_after_create(table: Table, dialect: str, statements: Sequence[str]) -> None:
    """Runs statements once a database of a dialect gets a table."""
    for statement in statements:
        event.listen(table, "after_create", DDL(statement).execute_if(dialect=dialect))  # type: ignore[no-untyped-call]


def _add_row(table: str, columns: str, values: str, n: int) -> str:
    return f"INSERT INTO {table} ({columns}, n) VALUES ({values}, {n});"  # noqa: S608  our own


def _make_row_trigger(table: str, name: str, when: str, body: str) -> Sequence[str]:
    """The statements for a trigger of PostgreSQL that runs after each row."""
    return (
        f"CREATE FUNCTION {name}() RETURNS trigger AS "
        f"$$ BEGIN {body} RETURN NULL; END $$ LANGUAGE plpgsql",
        f"CREATE TRIGGER {name} AFTER {when} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    )


_COLUMNS = ", ".join(ITEM_KEYS)


def _name_keys(row: str) -> str:
    """The columns by which items are counted, for a row of a trigger."""
    return ", ".join(f"{row}.{key}" for key in ITEM_KEYS)


def _add_given(row: str, n: int) -> str:
    """The statement that counts an item as free, or not, for all reviewers who have it."""
    return (
        "INSERT INTO reviewer_counts (reviewer, stage, what, n) "  # noqa: S608  our own
        f"SELECT reviewer, {row}.stage, 'free', {n} FROM assignments "
        f"WHERE item = {row}.id AND {row}.free;"
    )


_SQLITE_ITEMS = (
    "CREATE TRIGGER items_added AFTER INSERT ON items BEGIN "
    f"{_add_row('item_counts', _COLUMNS, _name_keys('NEW'), 1)} END",
    "CREATE TRIGGER items_changed AFTER UPDATE ON items "
    f"WHEN ({_name_keys('OLD')}) IS NOT ({_name_keys('NEW')}) BEGIN "
    f"{_add_row('item_counts', _COLUMNS, _name_keys('OLD'), -1)} "
    f"{_add_row('item_counts', _COLUMNS, _name_keys('NEW'), 1)} END",
    "CREATE TRIGGER items_freed AFTER UPDATE ON items WHEN OLD.free IS NOT NEW.free BEGIN "
    f"{_add_given('OLD', -1)} {_add_given('NEW', 1)} END",
)

_GIVEN = (
    "INSERT INTO reviewer_counts (reviewer, stage, what, n) "
    "SELECT NEW.reviewer, NEW.stage, 'free', 1 FROM items WHERE id = NEW.item AND free; "
    "INSERT INTO reviewer_counts (reviewer, stage, what, n) "
    "SELECT NEW.reviewer, NEW.stage, 'answered', 1 WHERE NEW.answered; "
    "INSERT INTO reviewer_counts (reviewer, stage, what, n) "
    "VALUES (NEW.reviewer, NEW.stage, 'given', 1);"
)
_ANSWERED = (
    "INSERT INTO reviewer_counts (reviewer, stage, what, n) "
    "VALUES (NEW.reviewer, NEW.stage, 'answered', CASE WHEN NEW.answered THEN 1 ELSE -1 END);"
)

_SQLITE_ASSIGNMENTS = (
    f"CREATE TRIGGER assignments_given AFTER INSERT ON assignments BEGIN {_GIVEN} END",
    "CREATE TRIGGER assignments_answered AFTER UPDATE ON assignments "
    f"WHEN OLD.answered IS NOT NEW.answered BEGIN {_ANSWERED} END",
)

_POSTGRES_ASSIGNMENTS = (
    *_make_row_trigger("assignments", "assignments_given", "INSERT", _GIVEN),
    *_make_row_trigger(
        "assignments",
        "assignments_answered",
        "UPDATE",
        f"IF OLD.answered <> NEW.answered THEN {_ANSWERED} END IF;",
    ),
)

# a statement at a time: that of the first items of a set adds a hundred thousand
_POSTGRES_ITEMS = (
    "CREATE FUNCTION items_added() RETURNS trigger AS $$ BEGIN "  # noqa: S608  our own
    f"INSERT INTO item_counts ({_COLUMNS}, n) SELECT {_COLUMNS}, count(*) FROM new_rows "
    f"GROUP BY {_COLUMNS}; RETURN NULL; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER items_added AFTER INSERT ON items REFERENCING NEW TABLE AS new_rows "
    "FOR EACH STATEMENT EXECUTE FUNCTION items_added()",
    "CREATE FUNCTION items_changed() RETURNS trigger AS $$ BEGIN "  # noqa: S608  our own
    f"INSERT INTO item_counts ({_COLUMNS}, n) SELECT {_COLUMNS}, sum(n) FROM ("
    f"SELECT {_COLUMNS}, 1 AS n FROM new_rows UNION ALL "
    f"SELECT {_COLUMNS}, -1 AS n FROM old_rows) AS moved "
    f"GROUP BY {_COLUMNS} HAVING sum(n) <> 0; "
    "INSERT INTO reviewer_counts (reviewer, stage, what, n) "
    "SELECT assignments.reviewer, moved.stage, 'free', sum(moved.n) FROM ("
    "SELECT id, stage, 1 AS n FROM new_rows WHERE free UNION ALL "
    "SELECT id, stage, -1 AS n FROM old_rows WHERE free) AS moved "
    "JOIN assignments ON assignments.item = moved.id "
    "GROUP BY assignments.reviewer, moved.stage HAVING sum(moved.n) <> 0; "
    "RETURN NULL; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER items_changed AFTER UPDATE ON items "
    "REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows "
    "FOR EACH STATEMENT EXECUTE FUNCTION items_changed()",
)
