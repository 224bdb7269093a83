"""What follows from a decision: whether its item is settled, and what is asked because of it."""

from typing import Any

from sqlalchemy import Connection, select, update

from steadyeye.review.bulk import skip_pairs
from steadyeye.review.db.schema import items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import Outcome, is_doubted
from steadyeye.review.protocol.votes import Said, outcome, votes
from steadyeye.review.workflow import items as asked
from steadyeye.review.workflow.items import Item


def refresh(connection: Connection, item: int, plan: ReviewPlan) -> None:
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


def _after_anchor(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: ReviewPlan
) -> None:
    """Pairs open with their anchor, under the labels it was given."""
    accepted = bool(found and found.accepted)
    if not accepted:
        asked.move(connection, "pairs", row.key, ("open", "waiting"))
    elif row.block is None:
        asked.move(connection, "pairs", row.key, ("waiting", "open"))
    if accepted and found:
        labels = list(found.answer["labels"])
        mine = (items.c.stage == "pairs") & (items.c.unit == row.key)
        for pair in connection.execute(select(items.c.id, items.c.payload).where(mine)).all():
            if pair.payload["labels"] != labels:
                changed = update(items).where(items.c.id == pair.id)
                connection.execute(changed.values(payload={**pair.payload, "labels": labels}))
    skip_pairs.advance(connection, row.block, plan)


def _after_pair(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: ReviewPlan
) -> None:
    """A pair that anybody doubts goes to joint verification, also before the others voted."""
    if any(is_doubted(answer) for _, answer in said):
        doubted = Item("joint", row.key, row.key, row.payload, block=row.block)
        asked.put(connection, doubted, plan)
    else:
        asked.move(connection, "joint", row.key, ("open", "withdrawn"))
    skip_pairs.advance(connection, row.block, plan)


def _after_joint(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: ReviewPlan
) -> None:
    """What all make of a doubted pair tells of those around it."""
    # not similar is what was held until now, unless it had been verified before
    if found is not None and (found.accepted or row.state == "done"):
        skip_pairs.advance(connection, row.block, plan)


def _after_box(
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: ReviewPlan
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
    connection: Connection, row: Any, said: Said, found: Outcome | None, plan: ReviewPlan
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
    "joint": _after_joint,
    "classification": _after_box,
    "boxes": _after_boxes,
}
