"""Serves answered items again, so that the answer can be changed."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol.objects import hide_source
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import DRAWN, Answer
from steadyeye.review.protocol.votes import find_standing
from steadyeye.review.workflow.queue import ServedItem


def serve_again(
    connection: Connection, reviewer: Reviewer, stage: str, decision: int
) -> ServedItem | None:
    """The item of a decision, with the answer that stands; the next answer `replaces` it.

    None if the decision is not the reviewer's, does not stand, or its item is not open to them.
    """
    row = connection.execute(
        select(decisions.c.answer, items.c.stage, items.c.payload, items.c.state, items.c.id)
        .join(items, items.c.id == decisions.c.item)
        .where(decisions.c.id == decision, decisions.c.reviewer == reviewer.id)
    ).one_or_none()
    if row is None or row.stage != stage or row.state not in ("open", "done") or reviewer.paused:
        return None
    standing = find_standing(connection, row.id, reviewer.id)
    if standing is None or standing.id != decision:
        return None
    own = (assignments.c.item == row.id) & (assignments.c.reviewer == reviewer.id)
    assignment = connection.execute(select(assignments).where(own)).one_or_none()
    if assignment is None:
        return None
    payload = _show_answer(stage, hide_source(row.payload), row.answer)
    return ServedItem(assignment.id, assignment.nonce, stage, payload, decision)


def _show_answer(stage: str, payload: Mapping[str, Any], answer: Answer) -> Mapping[str, Any]:
    """The question, with the labels or boxes of the answer."""
    if stage in DRAWN:
        return {**payload, "boxes": answer["boxes"]}
    if stage == "anchors" and answer["labels"]:
        return {**payload, "labels": answer["labels"]}
    if stage == "labels":
        return {**payload, "answer": answer}
    return payload
