"""Reviewers who leave and come back, and what waits for them.

Whose link was revoked is not waited for: the votes that they gave stand, those who have a link
decide with them, and what they were given and did not answer goes to others.
"""

from sqlalchemy import Connection, select

from steadyeye.review.database import assignments, items, reviewers
from steadyeye.review.protocol.reviewers import renew_token, require_present, revoke_link
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.workflow.assignments import release_items
from steadyeye.review.workflow.decisions import refresh_item


def end_link(connection: Connection, plan: ReviewPlan, name: str) -> None:
    """Ends a reviewer's sessions and their link, and settles items that waited only for them.

    Raises `UsageError` for a name that nobody has.
    """
    revoke_link(connection, name)
    own = select(reviewers.c.id).where(reviewers.c.name == name).scalar_subquery()
    release_items(connection, assignments.c.reviewer == own)
    _wait_for_present(connection, plan)


def renew_link(
    connection: Connection, plan: ReviewPlan, name: str, key: bytes | None = None
) -> str:
    """The token of a reviewer's new link; open items wait for them, also if they had left.

    `key`: that of the set's links. Raises `UsageError` for a name that nobody has.
    """
    token = renew_token(connection, name, key)
    _wait_for_present(connection, plan)
    return token


def _wait_for_present(connection: Connection, plan: ReviewPlan) -> None:
    require_present(connection, plan.joint)
    pending = items.c.stage.in_(plan.joint) & (items.c.state == "open") & items.c.gold.is_(None)
    settled = pending & (items.c.decided >= items.c.needed)
    for item in connection.execute(select(items.c.id).where(settled)).scalars().all():
        refresh_item(connection, item, plan)
