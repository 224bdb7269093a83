"""The queue of each reviewer: which item they are given next, and which they were given."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, func, insert, or_, select, update
from sqlalchemy.sql import ColumnElement

from steadyeye.core.errors import unknown
from steadyeye.review.database import assignments, items
from steadyeye.review.protocol.reviewers import Reviewer, lock_reviewer
from steadyeye.review.protocol.stages import ReviewPlan


@dataclass(frozen=True)
class ServedItem:
    """An item given to a reviewer; `nonce` must come back with the answer."""

    assignment: int
    nonce: str
    stage: str
    payload: Mapping[str, Any]


def serve_items(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str, most: int = 2
) -> list[ServedItem]:
    """Up to `most` items for a reviewer: first what they were given and did not answer.

    A paused reviewer gets none. No item is ever given twice to the same reviewer.
    """
    if stage not in plan.votes:
        raise unknown("stage", stage, plan.votes)
    lock_reviewer(connection, reviewer)
    if reviewer.paused:
        return []
    served = _list_unanswered(connection, reviewer, stage, most)
    while len(served) < most:
        row = _pick(connection, plan, reviewer, stage)
        if row is None:
            break
        assignment, nonce = assign_item(connection, row.id, reviewer)
        served.append(ServedItem(assignment, nonce, row.stage, row.payload))
    return served


def _list_unanswered(
    connection: Connection, reviewer: Reviewer, stage: str, most: int
) -> list[ServedItem]:
    # in two steps: few are open, whatever a database's planner believes of a table that has grown
    assigned = connection.execute(
        select(assignments.c.id, assignments.c.nonce, assignments.c.item)
        .where(assignments.c.reviewer == reviewer.id)
        .where(~assignments.c.answered, ~assignments.c.released)
        .order_by(assignments.c.id)
    ).all()
    query = select(items.c.id, items.c.stage, items.c.payload).where(
        items.c.id.in_([row.item for row in assigned]),
        items.c.stage == stage,
        items.c.state.in_(("open", "done")),
    )
    known = {row.id: row for row in connection.execute(query)} if assigned else {}
    served = [
        ServedItem(row.id, row.nonce, known[row.item].stage, known[row.item].payload)
        for row in assigned
        if row.item in known
    ]
    return served[:most]


def _pick(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> Any:
    """The next item of a reviewer, as a row of `items`; None: nothing waits for them."""
    if _is_gold_turn(connection, plan, reviewer, stage):
        gold = connection.execute(_select_free(stage, reviewer, gold=True)).first()
        if gold:
            return gold
    row = connection.execute(_select_free(stage, reviewer, gold=False)).first()
    if row is None and _release(connection, stage, plan.minutes):
        row = connection.execute(_select_free(stage, reviewer, gold=False)).first()
    return row


def _is_gold_turn(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> bool:
    # drawn for each place in the reviewer's own queue: nobody can count to the next one
    mine = select(func.count()).select_from(assignments)
    place = connection.execute(mine.where(assignments.c.reviewer == reviewer.id)).scalar_one()
    digest = hashlib.sha256(f"{plan.seed}/{reviewer.id}/{stage}/{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % max(plan.gold.every, 1) == 0


def _select_free(stage: str, reviewer: Reviewer, *, gold: bool) -> Any:
    """The query for the next item of a stage that a reviewer may be given."""
    query = select(items).where(*_may_answer(stage, reviewer))
    if gold:
        query = query.where(items.c.gold.is_not(None))
    else:
        query = query.where(items.c.gold.is_(None), items.c.assigned < items.c.needed)
    # PostgreSQL: two reviewers at once never wait for, or get, the same row
    return query.order_by(items.c.position).limit(1).with_for_update(skip_locked=True)


def assign_item(
    connection: Connection, item: int, reviewer: Reviewer, *, answered: bool = False
) -> tuple[int, str]:
    """The id and the nonce of an assignment, by which an item is given to a reviewer."""
    nonce = secrets.token_hex(16)
    values = {"item": item, "reviewer": reviewer.id, "nonce": nonce, "made_at": time.time()}
    query = insert(assignments).values(**values, answered=answered, released=False)
    assignment = connection.execute(query.returning(assignments.c.id)).scalar_one()
    count_assigned(connection, item, 1)
    return int(assignment), nonce


def count_assigned(connection: Connection, item: int, change: int) -> None:
    """Adds to the number of reviewers to whom an item is given."""
    query = update(items).where(items.c.id == item)
    connection.execute(query.values(assigned=items.c.assigned + change))


def _release(connection: Connection, stage: str, minutes: float) -> int:
    """How many items were given out long ago and never answered; others may now have them."""
    late: Sequence[Any] = connection.execute(
        select(assignments.c.id, assignments.c.item)
        .join(items, items.c.id == assignments.c.item)
        .where(items.c.stage == stage, ~assignments.c.answered, ~assignments.c.released)
        .where(assignments.c.made_at < time.time() - 60 * minutes)
    ).all()
    for row in late:
        change = update(assignments).where(assignments.c.id == row.id)
        connection.execute(change.values(released=True))
        count_assigned(connection, row.item, -1)
    return len(late)


def count_left(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> int:
    """How many items of a stage wait for a reviewer: given to them, or free for them."""
    assigned = (
        select(func.count())
        .select_from(assignments.join(items))
        .where(assignments.c.reviewer == reviewer.id, ~assignments.c.answered)
        .where(~assignments.c.released, items.c.stage == stage)
        .where(items.c.state.in_(("open", "done")))
    )
    late = (
        select(func.count())
        .where(assignments.c.item == items.c.id, ~assignments.c.answered, ~assignments.c.released)
        .where(assignments.c.made_at < time.time() - 60 * plan.minutes)
        .scalar_subquery()
    )
    free = (
        select(func.count())
        .select_from(items)
        .where(*_may_answer(stage, reviewer), items.c.gold.is_(None))
        .where(items.c.assigned - late < items.c.needed)
    )
    return int(connection.execute(assigned).scalar_one() + connection.execute(free).scalar_one())


def _may_answer(stage: str, reviewer: Reviewer) -> tuple[ColumnElement[bool], ...]:
    """The conditions for an item of a stage that is open, and new to a reviewer who may answer."""
    own = exists().where(assignments.c.item == items.c.id, assignments.c.reviewer == reviewer.id)
    allowed = or_(items.c.not_for.is_(None), items.c.not_for != reviewer.id)
    return items.c.stage == stage, items.c.state == "open", ~own, allowed
