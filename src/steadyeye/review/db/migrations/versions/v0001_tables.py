"""Reviewers, items, assignments, audits, and decisions that can only be added."""

import sqlalchemy as sa
from alembic import op

# what databases of before the first release call these same tables
revision = "0003"
down_revision = None
branch_labels = None
depends_on = None

NEVER = "decisions are only ever added"


def upgrade() -> None:
    """Creates the tables, and what refuses a change to a decision."""
    op.create_table(
        "reviewers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("admin", sa.Boolean, nullable=False),
        sa.Column("paused", sa.String(200), nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
    )
    _items()
    _assignments()
    _decisions()
    _audits()
    _append_only()


def _items() -> None:
    op.create_table(
        "items",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("stage", sa.String(40), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("unit", sa.String(400), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("gold", sa.JSON),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("needed", sa.Integer, nullable=False),
        sa.Column("assigned", sa.Integer, nullable=False),
        sa.Column("decided", sa.Integer, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("not_for", sa.Integer, sa.ForeignKey("reviewers.id")),
        sa.Column("block", sa.String(440)),
        sa.UniqueConstraint("stage", "key"),
    )
    op.create_index("items_in_order", "items", ["stage", "state", "position"])
    op.create_index("items_of_unit", "items", ["stage", "unit"])
    op.create_index("items_of_block", "items", ["block", "stage", "state"])


def _assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("item", sa.Integer, sa.ForeignKey("items.id"), nullable=False),
        sa.Column("reviewer", sa.Integer, sa.ForeignKey("reviewers.id"), nullable=False),
        sa.Column("nonce", sa.String(32), nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("answered", sa.Boolean, nullable=False),
        sa.Column("released", sa.Boolean, nullable=False),
        sa.UniqueConstraint("item", "reviewer"),
    )
    op.create_index("assignments_open", "assignments", ["reviewer", "answered"])
    # of what waits for an answer, which stays little however long a review goes on
    where = sa.text("NOT answered")
    op.create_index(
        "assignments_waiting",
        "assignments",
        ["reviewer"],
        sqlite_where=where,
        postgresql_where=where,
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("item", sa.Integer, sa.ForeignKey("items.id"), nullable=False),
        sa.Column("reviewer", sa.Integer, sa.ForeignKey("reviewers.id"), nullable=False),
        sa.Column("key", sa.String(64), nullable=False, unique=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("answer", sa.JSON, nullable=False),
        sa.Column("comment", sa.String(2000), nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("replaces", sa.Integer, sa.ForeignKey("decisions.id")),
        sa.Column("version", sa.String(60), nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
    )
    op.create_index("decisions_of_item", "decisions", ["item", "reviewer", "id"])


def _audits() -> None:
    op.create_table(
        "audits",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("seed", sa.Integer, nullable=False),
        sa.Column("most", sa.Float, nullable=False),
        sa.Column("risk", sa.Float, nullable=False),
        sa.Column("accepted", sa.Integer, nullable=False),
        sa.Column("pool", sa.JSON, nullable=False),
        sa.Column("sizes", sa.JSON, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("wrong", sa.Integer),
        sa.Column("made_at", sa.Float, nullable=False),
    )


def _append_only() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER decisions_no_{action.lower()} BEFORE {action} ON decisions "
                f"BEGIN SELECT RAISE(ABORT, '{NEVER}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION decisions_stay() RETURNS trigger AS "
        f"$$ BEGIN RAISE EXCEPTION '{NEVER}'; END $$ LANGUAGE plpgsql"
    )
    op.execute(
        "CREATE TRIGGER decisions_stay BEFORE UPDATE OR DELETE ON decisions "
        "FOR EACH ROW EXECUTE FUNCTION decisions_stay()"
    )


def downgrade() -> None:
    """Drops everything."""
    for table in ("audits", "decisions", "assignments", "items", "reviewers"):
        op.drop_table(table)
