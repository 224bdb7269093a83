"""The tables of a review. Decisions are only ever added."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

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
