"""What stands: the last decision of each reviewer on each item, and what follows from it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select, update

from steadyeye.review import items as asked
from steadyeye.review.items import Item
from steadyeye.review.plan import Plan
from steadyeye.review.schema import decisions, items
from steadyeye.review.stages import STAGES, Outcome, is_doubted

Said: TypeAlias = Sequence[tuple[int, Mapping[str, Any]]]
"""(reviewer, answer) of each decision that stands, in the order they were made."""


def votes(
    connection: Connection, stage: str | None = None, item: int | None = None
) -> Mapping[int, Said]:
    """The decisions that stand: the last of each reviewer, unless it takes one back."""
    last = select(func.max(decisions.c.id)).group_by(decisions.c.item, decisions.c.reviewer)
    if item is not None:
        last = last.where(decisions.c.item == item)
    query = select(decisions.c.item, decisions.c.reviewer, decisions.c.answer).where(
        decisions.c.id.in_(last), decisions.c.kind != "undo"
    )
    if stage is not None:
        query = query.join(items, items.c.id == decisions.c.item).where(items.c.stage == stage)
    found: dict[int, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for row in connection.execute(query.order_by(decisions.c.id)):
        found[row.item].append((row.reviewer, row.answer))
    return found


def refresh(connection: Connection, item: int, plan: Plan) -> None:
    """Brings an item's count and state up to date, and what depends on its outcome.

    Called in the transaction of every decision; calling it twice changes nothing more.
    """
    row = connection.execute(select(items).where(items.c.id == item)).one()
    said = votes(connection, item=item).get(item, ())
    found = outcome(row, said)
    if row.gold is None:
        state = "withdrawn" if row.state == "withdrawn" else "open" if found is None else "done"
        change = update(items).where(items.c.id == item)
        connection.execute(change.values(decided=len(said), state=state))
    follow = _FOLLOW.get(row.stage)
    if follow and (row.gold is None or row.stage in ("anchors", "classification")):
        follow(connection, row, said, found, plan)


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


def _after_anchor(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: Plan
) -> None:
    """Pairs open with their anchor, under the labels it was given."""
    accepted = bool(found and found.accepted)
    states = ("waiting", "open") if accepted else ("open", "waiting")
    asked.move(connection, "pairs", row.key, states)
    if accepted and found:
        labels = list(found.answer["labels"])
        mine = (items.c.stage == "pairs") & (items.c.unit == row.key)
        for pair in connection.execute(select(items.c.id, items.c.payload).where(mine)).all():
            if pair.payload["labels"] != labels:
                changed = update(items).where(items.c.id == pair.id)
                connection.execute(changed.values(payload={**pair.payload, "labels": labels}))


def _after_pair(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: Plan
) -> None:
    """A pair that anybody doubts goes to joint verification, also before the others voted."""
    if any(is_doubted(answer) for _, answer in said):
        asked.put(connection, Item("joint", row.key, row.key, row.payload), plan)
    else:
        asked.move(connection, "joint", row.key, ("open", "withdrawn"))


def _after_box(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: Plan
) -> None:
    """An image's boxes are drawn once one of its objects is confirmed."""
    mine = (items.c.stage == "classification") & (items.c.unit == row.unit)
    found_here = [
        outcome(other, votes(connection, item=other.id).get(other.id, ()))
        for other in connection.execute(select(items).where(mine)).all()
    ]
    confirmed = any(each is not None and each.accepted for each in found_here)
    states = ("waiting", "open") if confirmed else ("open", "waiting")
    asked.move(connection, "boxes", row.unit, states)


def _after_boxes(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: Plan
) -> None:
    """What one reviewer drew, a second one mends and decides."""
    if found is None:
        asked.move(connection, "box_check", row.unit, ("open", "withdrawn"))
        return
    drawn = {**row.payload, "boxes": found.answer["boxes"]}
    item = Item("box_check", row.key, row.unit, drawn, not_for=said[-1][0])
    asked.put(connection, item, plan)


_FOLLOW = {
    "anchors": _after_anchor,
    "pairs": _after_pair,
    "classification": _after_box,
    "boxes": _after_boxes,
}
