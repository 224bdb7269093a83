"""Blocks of items that are forecast together, and the audits of what is accepted in bulk."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds both; the items there are belong to no block, so that all of them are asked."""
    op.add_column("items", sa.Column("block", sa.String(440)))
    op.create_index("items_of_block", "items", ["block", "stage", "state"])
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


def downgrade() -> None:
    """Drops both."""
    op.drop_table("audits")
    op.drop_index("items_of_block", "items")
    op.drop_column("items", "block")
