"""Who is shown what next."""

import hashlib
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exists, func, insert, or_, select, update

from steadyeye.core.errors import unknown
from steadyeye.review.db.schema import assignments, items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.reviewers import Reviewer, alone


@dataclass(frozen=True)
class Served:
    """An item given to a reviewer; `nonce` must come back with the answer."""

    assignment: int
    nonce: str
    stage: str
    payload: Mapping[str, Any]


def serve(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str, most: int = 2
) -> list[Served]:
    """Up to `most` items for a reviewer: first what they were given and did not answer.

    A paused reviewer gets none. No item is ever given twice to the same reviewer.
    """
    if stage not in plan.votes:
        raise unknown("stage", stage, plan.votes)
    alone(connection, reviewer)
    if reviewer.paused:
        return []
    served = _list_unanswered(connection, reviewer, stage, most)
    while len(served) < most:
        row = _pick(connection, plan, reviewer, stage)
        if row is None:
            break
        served.append(_assign(connection, reviewer, row))
    return served


def _list_unanswered(
    connection: Connection, reviewer: Reviewer, stage: str, most: int
) -> list[Served]:
    # in two steps: few are open, whatever a database's planner believes of a table that has grown
    given = connection.execute(
        select(assignments.c.id, assignments.c.nonce, assignments.c.item)
        .where(assignments.c.reviewer == reviewer.id)
        .where(~assignments.c.answered, ~assignments.c.released)
        .order_by(assignments.c.id)
    ).all()
    here = select(items.c.id, items.c.stage, items.c.payload).where(
        items.c.id.in_([row.item for row in given]),
        items.c.stage == stage,
        items.c.state.in_(("open", "done")),
    )
    known = {row.id: row for row in connection.execute(here)} if given else {}
    served = [
        Served(row.id, row.nonce, known[row.item].stage, known[row.item].payload)
        for row in given
        if row.item in known
    ]
    return served[:most]


def _pick(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> Any:
    if _is_gold_turn(connection, plan, reviewer, stage):
        gold = connection.execute(_free(stage, reviewer, gold=True)).first()
        if gold:
            return gold
    found = connection.execute(_free(stage, reviewer, gold=False)).first()
    if found is None and _release(connection, stage, plan.minutes):
        found = connection.execute(_free(stage, reviewer, gold=False)).first()
    return found


def _is_gold_turn(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> bool:
    # drawn for each place in the reviewer's own queue: nobody can count to the next one
    mine = select(func.count()).select_from(assignments)
    place = connection.execute(mine.where(assignments.c.reviewer == reviewer.id)).scalar_one()
    drawn = hashlib.sha256(f"{plan.seed}/{reviewer.id}/{stage}/{place}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % max(plan.gold.every, 1) == 0


def _free(stage: str, reviewer: Reviewer, *, gold: bool) -> Any:
    """The next item of a stage that a reviewer may be given."""
    mine = exists().where(assignments.c.item == items.c.id, assignments.c.reviewer == reviewer.id)
    query = select(items).where(items.c.stage == stage, items.c.state == "open", ~mine)
    query = query.where(or_(items.c.not_for.is_(None), items.c.not_for != reviewer.id))
    if gold:
        query = query.where(items.c.gold.is_not(None))
    else:
        query = query.where(items.c.gold.is_(None), items.c.assigned < items.c.needed)
    # PostgreSQL: two reviewers at once never wait for, or get, the same row
    return query.order_by(items.c.position).limit(1).with_for_update(skip_locked=True)


def _assign(connection: Connection, reviewer: Reviewer, row: Any) -> Served:
    nonce = secrets.token_hex(16)
    new = connection.execute(
        insert(assignments)
        .values(
            item=row.id,
            reviewer=reviewer.id,
            nonce=nonce,
            made_at=time.time(),
            answered=False,
            released=False,
        )
        .returning(assignments.c.id)
    ).scalar_one()
    more = update(items).where(items.c.id == row.id).values(assigned=items.c.assigned + 1)
    connection.execute(more)
    return Served(int(new), nonce, row.stage, row.payload)


def _release(connection: Connection, stage: str, minutes: float) -> int:
    """Frees what was given out long ago and never answered; returns how much."""
    late: Sequence[Any] = connection.execute(
        select(assignments.c.id, assignments.c.item)
        .join(items, items.c.id == assignments.c.item)
        .where(items.c.stage == stage, ~assignments.c.answered, ~assignments.c.released)
        .where(assignments.c.made_at < time.time() - 60 * minutes)
    ).all()
    for row in late:
        freed = update(assignments).where(assignments.c.id == row.id).values(released=True)
        connection.execute(freed)
        fewer = update(items).where(items.c.id == row.item)
        connection.execute(fewer.values(assigned=items.c.assigned - 1))
    return len(late)


def count_left(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> int:
    """How many items of a stage wait for a reviewer: given to them, or free for them."""
    given = (
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
    mine = exists().where(assignments.c.item == items.c.id, assignments.c.reviewer == reviewer.id)
    free = (
        select(func.count())
        .select_from(items)
        .where(items.c.stage == stage, items.c.state == "open", items.c.gold.is_(None), ~mine)
        .where(or_(items.c.not_for.is_(None), items.c.not_for != reviewer.id))
        .where(items.c.assigned - late < items.c.needed)
    )
    return int(connection.execute(given).scalar_one() + connection.execute(free).scalar_one())
