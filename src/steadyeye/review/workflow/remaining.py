"""The items that are left for a reviewer, and those that may be assigned to them."""

from collections import Counter
from collections.abc import Mapping

from sqlalchemy import Connection, exists, func, or_, select
from sqlalchemy.sql import ColumnElement

from steadyeye.review.database import assignments, items, quiz_answers
from steadyeye.review.protocol import counts
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.workflow.sequences import find_busy_videos, was_within


def are_late(minutes: float) -> tuple[ColumnElement[bool], ...]:
    """The conditions for assignments that were not answered in time and not yet released."""
    return ~assignments.c.answered, ~assignments.c.released, ~was_within(minutes)


def count_left(connection: Connection, plan: ReviewPlan, reviewer: Reviewer) -> Mapping[str, int]:
    """Stage → number of items that wait for a reviewer: assigned to them, or free for them."""
    left = count_free(connection, reviewer)
    assigned = (
        select(items.c.stage, func.count())
        .join(assignments, assignments.c.item == items.c.id)
        .where(assignments.c.reviewer == reviewer.id, ~assignments.c.answered)
        .where(~assignments.c.released, items.c.state.in_(("open", "done")))
        .group_by(items.c.stage)
    )
    # what others were given and did not answer in time is free as well, and soon counted so
    late = select(assignments.c.item, func.count().label("n")).where(*are_late(plan.minutes))
    overdue = late.group_by(assignments.c.item).subquery()
    more = (
        select(items.c.stage, func.count())
        .join(overdue, overdue.c.item == items.c.id)
        .where(items.c.state == "open", ~items.c.known, ~items.c.free, *may_answer(reviewer))
        .where(items.c.assigned - overdue.c.n < items.c.needed)
        .group_by(items.c.stage)
    )
    busy = _list_busy(connection, plan, reviewer)
    if busy is not None:
        more = more.where(~busy)
        taken = select(items.c.stage, func.count()).where(items.c.free, busy, *may_answer(reviewer))
        for stage, n in connection.execute(taken.group_by(items.c.stage)):
            left[stage] -= n
    for query in (assigned, more):
        for stage, n in connection.execute(query):
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
    others = (items.c.not_for == reviewer.id) & items.c.free & ~_is_own(reviewer)
    query = select(items.c.stage, func.count()).where(others).group_by(items.c.stage)
    for stage, n in connection.execute(query):
        free[stage] -= n
    return free


def _is_own(reviewer: Reviewer) -> ColumnElement[bool]:
    own = (assignments.c.item == items.c.id) & (assignments.c.reviewer == reviewer.id)
    return exists().where(own)


def may_answer(reviewer: Reviewer) -> tuple[ColumnElement[bool], ...]:
    """The conditions for an item that is open, and new to a reviewer who may answer it."""
    allowed = or_(items.c.not_for.is_(None), items.c.not_for != reviewer.id)
    return items.c.state == "open", ~_is_own(reviewer), allowed


def was_in_quiz(reviewer: Reviewer) -> ColumnElement[bool]:
    """The condition for gold questions whose answer a reviewer has seen."""
    same = (quiz_answers.c.item == items.c.id) & (quiz_answers.c.reviewer == reviewer.id)
    return exists().where(same)
