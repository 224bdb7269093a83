"""What stands: the last decision of each reviewer on each item, and what it makes of the item."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from steadyeye.review.db.schema import decisions, items
from steadyeye.review.protocol.stages import STAGES, Outcome

Said: TypeAlias = Sequence[tuple[int, Mapping[str, Any]]]
"""(reviewer, answer) of each decision that stands, in the order they were made."""


def votes(
    connection: Connection,
    stage: str | None = None,
    item: int | None = None,
    block: str | None = None,
) -> Mapping[int, Said]:
    """The decisions that stand: the last of each reviewer, unless it takes one back."""
    last = select(func.max(decisions.c.id)).group_by(decisions.c.item, decisions.c.reviewer)
    if item is not None:
        last = last.where(decisions.c.item == item)
    if block is not None:
        last = last.where(decisions.c.item.in_(select(items.c.id).where(items.c.block == block)))
    query = select(decisions.c.item, decisions.c.reviewer, decisions.c.answer).where(
        decisions.c.id.in_(last), decisions.c.kind != "undo"
    )
    if stage is not None:
        query = query.join(items, items.c.id == decisions.c.item).where(items.c.stage == stage)
    found: dict[int, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for row in connection.execute(query.order_by(decisions.c.id)):
        found[row.item].append((row.reviewer, row.answer))
    return found


def outcome(row: Any, said: Said) -> Outcome | None:
    """What the decisions that stand make of an item; None while there are too few.

    Of a gold question the known answer stands, whatever was said.
    """
    if row.gold is not None:
        return STAGES["joint" if row.stage == "pairs" else row.stage].settle([row.gold])
    if len(said) < row.needed:
        return None
    return STAGES[row.stage].settle([answer for _, answer in said])


def outcomes(connection: Connection, stage: str) -> Mapping[str, Outcome | None]:
    """Key → outcome of every item of a stage that is or was asked."""
    said = votes(connection, stage=stage)
    rows = connection.execute(select(items).where(items.c.stage == stage).order_by(items.c.id))
    return {row.key: outcome(row, said.get(row.id, ())) for row in rows}
