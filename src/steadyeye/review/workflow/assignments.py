"""Which items reviewers have been given, and which are left for them or may be given to them."""

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, exists, func, insert, or_, select, update
from sqlalchemy.sql import ColumnElement

from steadyeye.review.database import assignments, items, quiz_answers
from steadyeye.review.protocol import counts
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.workflow.sequences import find_busy_videos, was_within

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


_IS_OWN = exists().where(
    assignments.c.item == items.c.id,
    assignments.c.reviewer == bindparam("reviewer"),
    ~assignments.c.released,
)
MAY_ANSWER = (
    items.c.state == "open",
    ~_IS_OWN,
    or_(items.c.not_for.is_(None), items.c.not_for != bindparam("reviewer")),
)
"""The conditions for an item that is open, and new to the `reviewer` of a statement, who may
answer it."""
# PostgreSQL: two reviewers at once never wait for, or get, the same row
_NEW = (
    select(items)
    .where(items.c.stage == bindparam("stage"), *MAY_ANSWER)
    .order_by(items.c.position)
    .limit(1)
    .with_for_update(skip_locked=True)
)
NEW_GOLD = _NEW.where(
    items.c.known,
    # nobody is asked what a quiz showed them the answer of
    ~exists().where(
        quiz_answers.c.item == items.c.id, quiz_answers.c.reviewer == bindparam("reviewer")
    ),
)
NEW_FREE = _NEW.where(items.c.free)
NEW_AFTER = NEW_FREE.where(items.c.position > bindparam("place"))
NEW_BEFORE = NEW_FREE.where(items.c.position <= bindparam("place"))
"""The statements for the first item of a `stage` that a `reviewer` may be given: a gold question;
one that is free; and one that is free after a `place`, or up to it."""

_FREE_BUT_FORBIDDEN = (
    select(items.c.stage, func.count())
    .where(items.c.not_for == bindparam("reviewer"), items.c.free, ~_IS_OWN)
    .group_by(items.c.stage)
)
# what a reviewer did not answer in time is free for them as for others
_LAPSED = (
    select(items.c.stage, func.count())
    .join(assignments, assignments.c.item == items.c.id)
    .where(assignments.c.reviewer == bindparam("reviewer"), ~assignments.c.answered)
    .where(assignments.c.released, items.c.free)
    .group_by(items.c.stage)
)


def are_late(minutes: float) -> tuple[ColumnElement[bool], ...]:
    """The conditions for assignments that were not answered in time and not yet released."""
    return ~assignments.c.answered, ~assignments.c.released, ~was_within(minutes)


def count_left(connection: Connection, plan: ReviewPlan, reviewer: Reviewer) -> Mapping[str, int]:
    """Stage → number of items that wait for a reviewer: assigned to them, or free for them."""
    left, who = count_free(connection, reviewer), {"reviewer": reviewer.id}
    assigned = (
        select(items.c.stage, func.count())
        .join(assignments, assignments.c.item == items.c.id)
        .where(assignments.c.reviewer == bindparam("reviewer"), ~assignments.c.answered)
        .where(~assignments.c.released, items.c.state.in_(("open", "done")))
        .group_by(items.c.stage)
    )
    # what others were given and did not answer in time is free as well, and soon counted so
    late = select(assignments.c.item, func.count().label("n")).where(*are_late(plan.minutes))
    overdue = late.group_by(assignments.c.item).subquery()
    more = (
        select(items.c.stage, func.count())
        .join(overdue, overdue.c.item == items.c.id)
        .where(items.c.state == "open", ~items.c.known, ~items.c.free, *MAY_ANSWER)
        .where(items.c.assigned - overdue.c.n < items.c.needed)
        .group_by(items.c.stage)
    )
    busy = _list_busy(connection, plan, reviewer)
    if busy is not None:
        more = more.where(~busy)
        taken = select(items.c.stage, func.count()).where(items.c.free, busy, *MAY_ANSWER)
        for stage, n in connection.execute(taken.group_by(items.c.stage), who):
            left[stage] -= n
    for query in (assigned, more):
        for stage, n in connection.execute(query, who):
            left[stage] += n
    return left


def _list_busy(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer
) -> ColumnElement[bool] | None:
    """The condition for items of videos in which enough others work; None without such videos."""
    videos = {stage: find_busy_videos(connection, plan, reviewer, stage) for stage in plan.votes}
    conditions = [
        (items.c.stage == stage) & items.c.sequence.in_(busy)
        for stage, busy in videos.items()
        if busy
    ]
    return or_(*conditions) if conditions else None


def count_free(connection: Connection, reviewer: Reviewer) -> Counter[str]:
    """Stage → number of free items that may be assigned to a reviewer."""
    free = Counter({stage: n for stage, n in counts.read_free_counts(connection).items() if n})
    for (stage, kind), n in counts.read_reviewer_counts(connection, reviewer.id).items():
        if kind == "free":
            free[stage] -= n
    for stage, n in connection.execute(_FREE_BUT_FORBIDDEN, {"reviewer": reviewer.id}):
        free[stage] -= n
    for stage, n in connection.execute(_LAPSED, {"reviewer": reviewer.id}):
        free[stage] += n
    return free
