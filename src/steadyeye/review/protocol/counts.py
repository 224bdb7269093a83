"""The outcome of each item, written with every decision, and the counts that follow from it.

The top of `review/results/status.py` defines what is counted. A decision updates its item, and the
items whose verdict depends on it; the database counts the changes, see `review/count_tables.py`. No
page counts items or votes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from steadyeye.review.database import (
    item_counts,
    items,
    pace_counts,
    reviewer_counts,
)
from steadyeye.review.protocol.stages import DRAWN, Outcome
from steadyeye.review.protocol.votes import find_votes, settle_item

OFTEN = 500  # decisions, after which counts are compacted: each adds some ten rows
REASON = 200  # characters of a reason that are stored
CHANGE_ITEM = update(items).where(items.c.id == bindparam("of"))
"""The statement that gives columns of an item, whose id is `of`, other values."""
_REVIEWER_COUNTS = (
    select(reviewer_counts.c.stage, reviewer_counts.c.what, func.sum(reviewer_counts.c.n))
    .where(reviewer_counts.c.reviewer == bindparam("reviewer"))
    .group_by(reviewer_counts.c.stage, reviewer_counts.c.what)
)
SPARED = ("mirrored", "implied", "beyond", "bulk")
"""The states of pairs that are spared."""


@dataclass(frozen=True)
class ItemCount:
    """The number `n` of items with the same counted columns; see `items` of the database."""

    stage: str
    state: str
    known: bool
    parent: str
    verdict: str
    reason: str
    changed: bool
    free: bool
    n: int

    @property
    def place(self) -> str:
        """Their category: see `place_item`."""
        return place_item(self.state, self.parent, self.verdict, known=self.known)


def place_item(state: str, parent: str, verdict: str, *, known: bool) -> str:
    """The category of an item in the counts.

    It is gold, withdrawn, spared, moot, waiting, open, accepted, rejected; or pending: it has all
    its votes, but the item that decides it is not settled.
    """
    if known or state in SPARED:
        return "gold" if known else "spared"
    if parent == "rejected" and state != "withdrawn":
        return "moot"
    if parent == "undecided" and state != "withdrawn":
        return "waiting"
    if state != "done":
        return state
    return verdict if verdict in ("accepted", "rejected") else "pending"


def read_item_counts(connection: Connection) -> Sequence[ItemCount]:
    """The numbers of items of a review, by all counted columns."""
    keys = [column for column in item_counts.c if column.name not in ("id", "n")]
    total = func.sum(item_counts.c.n).label("n")
    rows = connection.execute(select(*keys, total).group_by(*keys).having(total != 0))
    return [ItemCount(**row._mapping) for row in rows]


def read_free_counts(connection: Connection) -> Mapping[str, int]:
    """Stage → number of items that may be assigned to others."""
    total = func.sum(item_counts.c.n)
    free = select(item_counts.c.stage, total).where(item_counts.c.free)
    return {row[0]: int(row[1]) for row in connection.execute(free.group_by(item_counts.c.stage))}


def read_reviewer_counts(connection: Connection, reviewer: int) -> Mapping[tuple[str, str], int]:
    """(stage, what) → items of a reviewer; `what` as in `review/count_tables.py`."""
    rows = connection.execute(_REVIEWER_COUNTS, {"reviewer": reviewer})
    return {(row.stage, row.what): int(row[2]) for row in rows}


def read_pace_counts(connection: Connection) -> Mapping[int, Mapping[str, Mapping[int, int]]]:
    """Reviewer → kind of a decision → tenths of a second → decisions."""
    keys = pace_counts.c.reviewer, pace_counts.c.kind, pace_counts.c.tenths
    counts: dict[int, dict[str, dict[int, int]]] = {}
    for reviewer, kind, tenths, n in connection.execute(
        select(*keys, func.sum(pace_counts.c.n)).group_by(*keys).order_by(*keys)
    ):
        counts.setdefault(reviewer, {}).setdefault(kind, {})[tenths] = int(n)
    return counts


def compact_counts(connection: Connection) -> None:
    """Merges the rows of each group; no count changes.

    Rows that another transaction merges at this moment are skipped.
    """
    for table in (item_counts, reviewer_counts, pace_counts):
        keys = [column for column in table.c if column.name not in ("id", "n")]
        rows = select(table.c.id).with_for_update(skip_locked=True)
        change = delete(table).where(table.c.id.in_(rows)).returning(*keys, table.c.n)
        sums = Counter[tuple[Any, ...]]()
        for *group, n in connection.execute(change):
            sums[tuple(group)] += n
        names = [column.name for column in keys]
        added = [{**dict(zip(names, group, strict=True)), "n": n} for group, n in sums.items() if n]
        if added:
            connection.execute(insert(table), added)


_COLUMNS = (
    *(items.c.id, items.c.stage, items.c.key, items.c.unit, items.c.gold, items.c.state),
    items.c.payload,
    *(items.c.needed, items.c.parent, items.c.verdict, items.c.reason, items.c.changed),
)
_PAIR = select(*_COLUMNS).where(
    items.c.stage.in_(("pairs", "joint")), items.c.key == bindparam("key")
)
_UNIT = select(*_COLUMNS).where(
    items.c.stage == bindparam("stage"), items.c.unit == bindparam("unit")
)


def write_verdict(connection: Connection, row: Any, outcome: Outcome | None) -> None:
    """Writes the outcome of an item that is not a pair, a row of `items`."""
    changed = bool(
        row.stage == "anchors"
        and outcome
        and outcome.accepted
        and set(outcome.answer["labels"]) != set(row.payload["labels"])
    )
    _write(connection, row, outcome, changed=changed)


def write_pair(connection: Connection, key: str) -> None:
    """Writes the outcome of a pair and of its joint verification.

    The outcome of a doubted pair is that of its joint verification, which is not counted itself.
    """
    rows = {row.stage: row for row in connection.execute(_PAIR, {"key": key})}
    pair, joint = rows["pairs"], rows.get("joint")
    outcome = settle(connection, pair)
    doubted = outcome is not None and outcome.accepted is None
    verified = None
    if doubted and joint is not None and joint.gold is None and joint.state in ("open", "done"):
        verified = settle(connection, joint)
    _write(connection, pair, verified if doubted and verified is not None else outcome)
    if joint is not None:
        _write(connection, joint, verified, parent=pair.parent)


def write_parents(connection: Connection, stage: str, unit: str) -> None:
    """Writes the decision on an anchor, or on an image's objects, to the dependent items."""
    rows = connection.execute(_UNIT, {"stage": stage, "unit": unit}).all()
    outcomes = [settle(connection, row) for row in rows]
    if stage == "anchors":
        stages: Sequence[str] = ("pairs", "joint")
        parent = _word_verdict(outcomes[0]) or "undecided"
    else:
        stages = DRAWN
        empty = all(outcome is not None and outcome.accepted is False for outcome in outcomes)
        parent = "rejected" if empty else "accepted"
    below = items.c.stage.in_(stages) & (items.c.unit == unit) & (items.c.parent != parent)
    connection.execute(update(items).where(below).values(parent=parent))


def settle(connection: Connection, row: Any) -> Outcome | None:
    """The outcome of an item, a row of `items`, by the decisions on it that stand."""
    return settle_item(row, find_votes(connection, "item", row.id).get(row.id, ()))


def _word_verdict(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return {True: "accepted", False: "rejected", None: "doubted"}[outcome.accepted]


def _write(
    connection: Connection,
    row: Any,
    outcome: Outcome | None,
    *,
    changed: bool = False,
    parent: str | None = None,
) -> None:
    verdict = _word_verdict(outcome)
    reason = outcome.reason[:REASON] if outcome and outcome.accepted is False else ""
    values = (verdict, reason, changed, parent or row.parent)
    if values != (row.verdict, row.reason, row.changed, row.parent):
        names = ("verdict", "reason", "changed", "parent")
        change = {"of": row.id, **dict(zip(names, values, strict=True))}
        connection.execute(CHANGE_ITEM, change)
