"""An index of what waits for an answer, which stays small however long a review goes on."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WAITING = "assignments_waiting"


def upgrade() -> None:
    """Adds the index."""
    where = sa.text("NOT answered")
    op.create_index(
        WAITING, "assignments", ["reviewer"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    """Drops the index."""
    op.drop_index(WAITING, "assignments")
