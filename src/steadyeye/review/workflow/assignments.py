"""Which items reviewers have been given: one is given, or what they left is taken back."""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.sql import ColumnElement

from steadyeye.review.database import assignments, items
from steadyeye.review.protocol.reviewers import Reviewer

_COUNT_ASSIGNED = (
    update(items)
    .where(items.c.id == bindparam("of"))
    .values(assigned=items.c.assigned + bindparam("change"))
)
_ASSIGN = (
    insert(assignments)
    .values(
        {
            column: select(column).where(items.c.id == bindparam("of")).scalar_subquery()
            for column in (items.c.stage, items.c.position)
        }
    )
    .returning(assignments.c.id)
)
_ASSIGN_AGAIN = (
    update(assignments)
    .where(assignments.c.item == bindparam("of"), assignments.c.reviewer == bindparam("by"))
    .returning(assignments.c.id, assignments.c.nonce)
)


def assign_item(
    connection: Connection, item: int, reviewer: Reviewer, *, answered: bool = False
) -> tuple[int, str]:
    """The id and the nonce of an assignment, by which an item is given to a reviewer.

    Of one that was released it is the same again.
    """
    count_assigned(connection, item, 1)
    now, who = time.time(), {"of": item, "by": reviewer.id}
    again = connection.execute(_ASSIGN_AGAIN, {**who, "made_at": now, "released": False}).first()
    if again is not None:
        return again.id, again.nonce
    nonce = secrets.token_hex(16)
    values = {
        "of": item,
        "item": item,
        "reviewer": reviewer.id,
        "nonce": nonce,
        "made_at": now,
        "answered": answered,
        "released": False,
    }
    return int(connection.execute(_ASSIGN, values).scalar_one()), nonce


def count_assigned(connection: Connection, item: int, change: int) -> None:
    """Changes the number of reviewers to whom an item is assigned."""
    connection.execute(_COUNT_ASSIGNED, {"of": item, "change": change})


def release_items(connection: Connection, *conditions: ColumnElement[bool]) -> int:
    """How many items that were given out and not answered others may have from now on.

    `conditions`: which assignments end.
    """
    ended: Sequence[Any] = connection.execute(
        select(assignments.c.id, assignments.c.item)
        .join(items, items.c.id == assignments.c.item)
        .where(~assignments.c.answered, ~assignments.c.released, *conditions)
        .with_for_update(skip_locked=True)
    ).all()
    for row in ended:
        change = update(assignments).where(assignments.c.id == row.id)
        connection.execute(change.values(released=True))
        count_assigned(connection, row.item, -1)
    return len(ended)
