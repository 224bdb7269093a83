"""Turns an answer into a decision, and updates the items that depend on it."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection, bindparam, select, update

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol.counts import (
    CHANGE_ITEM,
    OFTEN,
    compact_counts,
    settle,
    write_pair,
    write_parents,
    write_verdict,
)
from steadyeye.review.protocol.drawn_boxes import cut_boxes, drop_rejected
from steadyeye.review.protocol.objects import RIGHT
from steadyeye.review.protocol.reviewers import (
    Reviewer,
    lock_reviewer,
    lock_unit,
    require_present,
)
from steadyeye.review.protocol.stages import (
    DRAWN,
    STAGES,
    Outcome,
    ReviewPlan,
    is_doubted,
    name_label,
    read_plan,
)
from steadyeye.review.protocol.votes import (
    COMMENT,
    Votes,
    add_decisions,
    find_standing,
    find_votes,
    settle_item,
)
from steadyeye.review.sampling.image_store import read_size
from steadyeye.review.workflow.assignments import count_assigned
from steadyeye.review.workflow.quality import judge_reviewer, write_marks
from steadyeye.review.workflow.queue import (
    Item,
    close_item,
    move_items,
    open_item,
)

_OWN = (
    assignments.c.id == bindparam("assignment"),
    assignments.c.reviewer == bindparam("reviewer"),
)
_FIND_ITEM = select(assignments.c.item).where(*_OWN)
_FIND_ASSIGNED = (
    select(
        *(assignments.c.item, assignments.c.nonce, assignments.c.released),
        *(items.c.stage, items.c.state, items.c.gold),
    )
    .join(items, items.c.id == assignments.c.item)
    .where(*_OWN)
    .with_for_update(of=items)
)
_MARK_ANSWERED = update(assignments).where(
    assignments.c.item == bindparam("of"), assignments.c.reviewer == bindparam("whose")
)
_BY_KEY = select(decisions).where(decisions.c.key == bindparam("key"))
_ITEM = select(items).where(items.c.id == bindparam("item"))


class RefusedError(UsageError):
    """An answer that cannot be accepted: not assigned to the reviewer, repeated, or out of date."""


@dataclass(frozen=True)
class Submission:
    """An answer as a page sends it; the bounds are checked for HTTP requests.

    `key`: chosen by the client, one per decision. `replaces`: the reviewer's decision that it
    replaces, or None.
    """

    assignment: int
    nonce: Annotated[str, Field(max_length=64)]
    key: Annotated[str, Field(min_length=8, max_length=64)]
    answer: Mapping[str, Any]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    comment: Annotated[str, Field(max_length=COMMENT)] = ""
    replaces: int | None = None


@dataclass(frozen=True)
class Rules:
    """The rules for answers; `version`: of the set that is reviewed.

    `find_size`: image name → its (width, height), to check drawn boxes; None if it cannot be read.
    """

    plan: ReviewPlan
    classes: Sequence[str]
    version: str
    find_size: Callable[[str], tuple[int, int] | None] = lambda image: None


def read_rules(folder: SetFolder) -> Rules:
    """The rules of a set, from its manifest. Raises `UsageError` as `read_plan` does."""

    def find_size(image: str) -> tuple[int, int] | None:
        try:
            return read_size(image_path(folder.root, image))
        except (OSError, SampleError):
            return None

    plan = read_plan(folder.content)
    return Rules(plan, folder.class_names, folder.fingerprint, find_size)


@dataclass(frozen=True)
class Decision:
    """A stored decision: its id, its stage, and the reviewer afterwards."""

    id: int
    stage: str
    reviewer: Reviewer


def decide(
    connection: Connection, rules: Rules, reviewer: Reviewer, submission: Submission
) -> Decision:
    """Stores an answer as a decision.

    The same request again returns the same id and adds nothing. Raises `RefusedError` for an answer
    to an item that is not the reviewer's, out of date, or from a paused reviewer, and `UsageError`
    for one that its stage does not allow.
    """
    lock_reviewer(connection, reviewer)
    row = _find_assigned(connection, reviewer, submission)
    answer = dict(STAGES[row.stage].check(submission.answer, rules.classes))
    if row.stage in DRAWN:
        answer = _cut_boxes(connection, rules, row.item, answer)
    before = connection.execute(_BY_KEY, {"key": submission.key}).one_or_none()
    if before is not None:
        if (before.reviewer, before.item, before.answer) != (reviewer.id, row.item, answer):
            raise RefusedError("this request was used for another decision; reload the page")
        return Decision(before.id, row.stage, reviewer)
    if reviewer.paused:
        raise RefusedError(f"you are paused: {reviewer.paused}")
    standing = find_standing(connection, row.item, reviewer.id)
    replaces = standing.id if standing else None
    if replaces != submission.replaces:
        raise RefusedError("this was decided already; reload the page to go on")
    if row.state in ("withdrawn", "waiting"):
        raise RefusedError("this item is no longer open; reload the page to go on")
    if row.released:
        count_assigned(connection, row.item, 1)  # it had been freed for others
    values = {
        "item": row.item,
        "key": submission.key,
        "kind": "answer",
        "answer": answer,
        "comment": submission.comment,
        "seconds": submission.seconds,
        "replaces": replaces,
    }
    decision = _record(connection, rules, reviewer, values)
    if row.gold is not None:
        reviewer = judge_reviewer(connection, reviewer, rules.plan.gold)
    return Decision(decision, row.stage, reviewer)


def undo(
    connection: Connection, rules: Rules, reviewer: Reviewer, decision: int, key: str
) -> Decision:
    """Takes a decision back; its item is open to the reviewer again.

    `key`: chosen by the client. Raises `RefusedError` if the decision is not theirs or no longer
    stands.
    """
    lock_reviewer(connection, reviewer)
    before = connection.execute(_BY_KEY, {"key": key}).one_or_none()
    if before is not None:
        if before.reviewer != reviewer.id or before.replaces != decision:
            raise RefusedError("this request was used for another decision; reload the page")
        stage = connection.execute(_ITEM, {"item": before.item}).one().stage
        return Decision(before.id, stage, reviewer)
    own = (decisions.c.id == decision) & (decisions.c.reviewer == reviewer.id)
    item = connection.execute(select(decisions.c.item).where(own)).scalar()
    standing = find_standing(connection, item, reviewer.id) if item is not None else None
    if item is None or standing is None or standing.id != decision:
        raise RefusedError("this decision no longer stands, or is not yours")
    lock_unit(connection, item)
    values = {"item": item, "key": key, "kind": "undo", "answer": {}, "replaces": decision}
    added = _record(connection, rules, reviewer, values)
    row = connection.execute(_ITEM, {"item": item}).one()
    if row.known:
        write_marks(connection, reviewer.id)
    return Decision(added, row.stage, reviewer)


def _cut_boxes(
    connection: Connection, rules: Rules, item: int, answer: Mapping[str, Any]
) -> dict[str, Any]:
    """An answer with its boxes clipped to the image of their item, if its size is known."""
    size = rules.find_size(connection.execute(_ITEM, {"item": item}).one().payload["image"])
    return {"boxes": answer["boxes"] if size is None else cut_boxes(answer["boxes"], size)}


def has_decision(connection: Connection, decision: int) -> bool:
    """Whether a decision with an id exists."""
    # a larger number is none that a database could hold
    query = select(decisions.c.id).where(decisions.c.id == decision)
    return 0 < decision < 1 << 31 and connection.execute(query).first() is not None


def _record(
    connection: Connection, rules: Rules, reviewer: Reviewer, values: Mapping[str, Any]
) -> int:
    """Adds a decision with all its consequences; returns its id."""
    row = {**values, "reviewer": reviewer.id}
    (decision,) = add_decisions(connection, [row], rules.version)
    own = {"of": row["item"], "whose": reviewer.id}
    mark = {"answered": row["kind"] == "answer", "released": False}
    connection.execute(_MARK_ANSWERED, {**own, **mark})
    refresh_item(connection, row["item"], rules.plan)
    if decision % OFTEN == 0:
        compact_counts(connection)
    return decision


def _find_assigned(connection: Connection, reviewer: Reviewer, submission: Submission) -> Any:
    """The item of an assignment, if it is this reviewer's; locked until the transaction ends."""
    own = {"assignment": submission.assignment, "reviewer": reviewer.id}
    item = connection.execute(_FIND_ITEM, own).scalar()
    if item is not None:
        lock_unit(connection, item)
    row = connection.execute(_FIND_ASSIGNED, own).one_or_none()
    if row is None or not secrets.compare_digest(row.nonce.encode(), submission.nonce.encode()):
        raise RefusedError("this item was not assigned to you; reload the page to go on")
    return row


def refresh_item(connection: Connection, item: int, plan: ReviewPlan) -> None:
    """Brings an item's count and state up to date, and what depends on its outcome.

    Called in the transaction of every decision; calling it twice changes nothing more.
    """
    row = connection.execute(_ITEM, {"item": item}).one()
    votes = find_votes(connection, "item", item).get(item, ())
    outcome = settle_item(row, votes)
    if row.gold is None:
        state = _find_state(row, outcome)
        connection.execute(CHANGE_ITEM, {"of": item, "decided": len(votes), "state": state})
        if row.state == "done" != state and row.stage in plan.joint:
            # others may have come since it was done
            require_present(connection, [row.stage], item)
    decides_others = row.stage in ("anchors", "classification")
    if decides_others:
        write_parents(connection, row.stage, row.unit)
    follow = _FOLLOW.get(row.stage)
    if follow and (row.gold is None or decides_others):
        follow(connection, row, votes, outcome, plan)
    if row.stage in ("pairs", "joint"):
        write_pair(connection, row.key)
    else:
        write_verdict(connection, row, outcome)


def _find_state(row: Any, outcome: Outcome | None) -> str:
    """The state of an item after a decision; dependent items wait for an accepted anchor."""
    if row.state == "withdrawn" or (row.state == "waiting" and outcome is None):
        return str(row.state)
    if outcome is not None:
        return "done"
    return "open" if row.parent == "accepted" else "waiting"


def _after_anchor(
    connection: Connection, row: Any, votes: Votes, outcome: Outcome | None, plan: ReviewPlan
) -> None:
    """Opens the pairs of an accepted anchor, with its labels."""
    accepted = bool(outcome and outcome.accepted)
    if not accepted:
        move_items(connection, "pairs", row.key, ("open", "waiting"))
    elif row.block is None:
        move_items(connection, "pairs", row.key, ("waiting", "open"))
    # nobody verifies a pair that does not matter
    states = ("waiting", "open") if accepted else ("open", "waiting")
    move_items(connection, "joint", row.key, states)
    if accepted and outcome:
        labels = list(outcome.answer["labels"])
        own = (items.c.stage == "pairs") & (items.c.unit == row.key)
        for pair in connection.execute(select(items.c.id, items.c.payload).where(own)).all():
            if pair.payload["labels"] != labels:
                payload = {**pair.payload, "labels": labels}
                connection.execute(CHANGE_ITEM, {"of": pair.id, "payload": payload})
    if row.block is not None:
        skip_pairs.advance(connection, row.block, plan)


def _after_pair(
    connection: Connection, row: Any, votes: Votes, outcome: Outcome | None, plan: ReviewPlan
) -> None:
    """Opens the joint verification of a doubted pair, also before the other votes."""
    if any(is_doubted(answer) for _, answer in votes):
        state = "open" if row.parent == "accepted" else "waiting"
        doubted = Item("joint", row.key, row.unit, row.payload, row.parent, state, block=row.block)
        open_item(connection, doubted, plan)
    else:
        close_item(connection, "joint", row.key)
    if row.block is not None:
        skip_pairs.advance(connection, row.block, plan)


def _after_joint(
    connection: Connection, row: Any, votes: Votes, outcome: Outcome | None, plan: ReviewPlan
) -> None:
    """Advances the pairs of the block after a joint verification."""
    # not similar is what was held until now, unless it had been verified before
    settled = outcome is not None and (outcome.accepted or row.state == "done")
    if settled and row.block is not None:
        skip_pairs.advance(connection, row.block, plan)


def _after_object(
    connection: Connection, row: Any, votes: Votes, outcome: Outcome | None, plan: ReviewPlan
) -> None:
    """Opens the drawing of an image's boxes once its objects are settled and one is confirmed."""
    own = (items.c.stage == "classification") & (items.c.unit == row.unit)
    objects = [
        (other.payload, settle(connection, other))
        for other in connection.execute(select(items).where(own).order_by(items.c.id)).all()
    ]
    settled = [(payload, outcome) for payload, outcome in objects if outcome is not None]
    _suggest_boxes(connection, row.unit, settled)
    confirmed = any(outcome.accepted for _, outcome in settled) and len(settled) == len(objects)
    states = ("waiting", "open") if confirmed else ("open", "waiting")
    move_items(connection, "boxes", row.unit, states)


def _suggest_boxes(
    connection: Connection, unit: str, objects: Sequence[tuple[Mapping[str, Any], Outcome]]
) -> None:
    """Writes the outcome of an image's objects to the items in which its boxes are drawn."""
    suggested = [
        {"box": payload["box"], "label": name_label(outcome.answer)}
        for payload, outcome in objects
        if outcome.accepted or outcome.reason == RIGHT
    ]
    refused = [
        {
            "box": payload["box"],
            "label": outcome.answer.get("object", "object"),
            "reason": outcome.reason,
        }
        for payload, outcome in objects
        if not outcome.accepted and outcome.reason != RIGHT
    ]
    rejected = drop_rejected(refused, suggested)  # of two in one place one may hold
    drawings = items.c.stage.in_(DRAWN) & (items.c.unit == unit)
    for item in connection.execute(
        select(items.c.id, items.c.stage, items.c.payload).where(drawings)
    ):
        boxes = (
            suggested if item.stage == "boxes" else drop_rejected(item.payload["boxes"], rejected)
        )
        payload = {**item.payload, "boxes": boxes, "rejected": rejected}
        connection.execute(CHANGE_ITEM, {"of": item.id, "payload": payload})


def _after_boxes(
    connection: Connection, row: Any, votes: Votes, outcome: Outcome | None, plan: ReviewPlan
) -> None:
    """Opens the check of drawn boxes, in which a second reviewer corrects them and decides."""
    if outcome is None:
        close_item(connection, "box_check", row.key)
        return
    boxes = drop_rejected(outcome.answer["boxes"], row.payload["rejected"])
    payload = {**row.payload, "boxes": boxes}
    item = Item("box_check", row.key, row.unit, payload, row.parent, not_for=votes[-1][0])
    open_item(connection, item, plan)


_FOLLOW = {
    "anchors": _after_anchor,
    "pairs": _after_pair,
    "joint": _after_joint,
    "classification": _after_object,
    "boxes": _after_boxes,
}
