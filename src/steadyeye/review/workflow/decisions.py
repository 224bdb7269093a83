"""What becomes of an answer: a decision, added to those before."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from steadyeye import __version__
from steadyeye.core.errors import UsageError
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.db.schema import assignments, decisions, items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.reviewers import Reviewer, alone
from steadyeye.review.protocol.stages import STAGES, Outcome, Said, is_doubted, outcome, votes
from steadyeye.review.workflow import items as asked
from steadyeye.review.workflow.items import Item
from steadyeye.review.workflow.quality import judge

LONGEST = 3_600.0  # seconds a decision can claim to have taken


class RefusedError(UsageError):
    """An answer that cannot be taken: not theirs to give, given before, or out of date."""


@dataclass(frozen=True)
class Given:
    """An answer as it came in.

    `key`: chosen by the client, one a decision. `seen`: the decision of theirs that it takes the
    place of, or None.
    """

    assignment: int
    nonce: str
    key: str
    answer: Mapping[str, Any]
    seconds: float
    comment: str = ""
    seen: int | None = None


@dataclass(frozen=True)
class Rules:
    """What answers are held to; `version`: of the set that is shown."""

    plan: ReviewPlan
    classes: Sequence[str]
    version: str


@dataclass(frozen=True)
class Decided:
    """A decision that was taken: its id, its stage, and the reviewer as they are afterwards."""

    id: int
    stage: str
    reviewer: Reviewer


def decide(connection: Connection, rules: Rules, reviewer: Reviewer, given: Given) -> Decided:
    """Takes an answer and returns the decision.

    The same request again returns the same id and adds nothing. Raises `RefusedError` for an
    answer that is not theirs to give, is out of date, or comes from a paused reviewer, and
    `UsageError` for one that its stage does not allow.
    """
    alone(connection, reviewer)
    row = _find_assigned(connection, reviewer, given)
    answer = STAGES[row.stage].check(given.answer, rules.classes)
    before = _with_key(connection, given.key)
    if before is not None:
        if (before.reviewer, before.item, before.answer) != (reviewer.id, row.item, dict(answer)):
            raise RefusedError("this request was used for another decision; reload the page")
        return Decided(before.id, row.stage, reviewer)
    if reviewer.paused:
        raise RefusedError(f"you are paused: {reviewer.paused}")
    replaced = _standing(connection, row.item, reviewer)
    if replaced != given.seen:
        raise RefusedError("this was decided already; reload the page to go on")
    if row.state in ("withdrawn", "waiting"):
        raise RefusedError("this item is no longer open; reload the page to go on")
    said = {
        "item": row.item,
        "key": given.key,
        "kind": "answer",
        "answer": dict(answer),
        "comment": given.comment[:2000],
        "seconds": min(max(given.seconds, 0.0), LONGEST),
        "replaces": replaced,
    }
    if row.released:
        # it had been freed for others; this reviewer counts again
        more = update(items).where(items.c.id == row.item)
        connection.execute(more.values(assigned=items.c.assigned + 1))
    added = _add(connection, rules, reviewer, said)
    if row.gold is not None:
        reviewer = judge(connection, reviewer, rules.plan.gold)
    return Decided(added, row.stage, reviewer)


def undo(connection: Connection, rules: Rules, reviewer: Reviewer, ask: tuple[int, str]) -> Decided:
    """Takes a decision back by a new one; the item is theirs to answer again.

    `ask`: the decision and the client's key. Raises `RefusedError` where the decision is not
    theirs or does not stand any more.
    """
    decision, key = ask
    alone(connection, reviewer)
    before = _with_key(connection, key)
    if before is not None:
        if before.reviewer != reviewer.id or before.replaces != decision:
            raise RefusedError("this request was used for another decision; reload the page")
        return Decided(before.id, _stage(connection, before.item), reviewer)
    mine = (decisions.c.id == decision) & (decisions.c.reviewer == reviewer.id)
    item = connection.execute(select(decisions.c.item).where(mine)).scalar()
    if item is None or _standing(connection, item, reviewer) != decision:
        raise RefusedError("this decision no longer stands, or is not yours")
    said = {
        "item": item,
        "key": key,
        "kind": "undo",
        "answer": {},
        "comment": "",
        "seconds": 0.0,
        "replaces": decision,
    }
    added = _add(connection, rules, reviewer, said)
    return Decided(added, _stage(connection, item), reviewer)


def _add(connection: Connection, rules: Rules, reviewer: Reviewer, said: Mapping[str, Any]) -> int:
    new = connection.execute(
        insert(decisions)
        .values(
            **said,
            reviewer=reviewer.id,
            version=f"steadyeye {__version__}, set {rules.version}",
            made_at=time.time(),
        )
        .returning(decisions.c.id)
    ).scalar_one()
    mine = (assignments.c.item == said["item"]) & (assignments.c.reviewer == reviewer.id)
    answered = said["kind"] == "answer"
    change = update(assignments).where(mine).values(answered=answered, released=False)
    connection.execute(change)
    refresh(connection, said["item"], rules.plan)
    return int(new)


def _find_assigned(connection: Connection, reviewer: Reviewer, given: Given) -> Any:
    """The item of an assignment, if it is this reviewer's; locked until the transaction ends."""
    row = connection.execute(
        select(
            assignments.c.item,
            assignments.c.nonce,
            assignments.c.released,
            items.c.stage,
            items.c.state,
            items.c.gold,
        )
        .join(items, items.c.id == assignments.c.item)
        .where(assignments.c.id == given.assignment, assignments.c.reviewer == reviewer.id)
        .with_for_update(of=items)
    ).one_or_none()
    if row is None or not secrets.compare_digest(row.nonce.encode(), given.nonce.encode()):
        raise RefusedError("this item was not assigned to you; reload the page to go on")
    return row


def _standing(connection: Connection, item: int, reviewer: Reviewer) -> int | None:
    """The decision of a reviewer on an item that stands, or None."""
    mine = (decisions.c.item == item) & (decisions.c.reviewer == reviewer.id)
    row = connection.execute(
        select(decisions.c.id, decisions.c.kind).where(mine).order_by(decisions.c.id.desc())
    ).first()
    return int(row.id) if row and row.kind != "undo" else None


def _stage(connection: Connection, item: int) -> str:
    query = select(items.c.stage).where(items.c.id == item)
    return str(connection.execute(query).scalar_one())


def _with_key(connection: Connection, key: str) -> Any:
    return connection.execute(select(decisions).where(decisions.c.key == key)).one_or_none()


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
