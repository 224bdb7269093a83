"""What is asked now and what was said of it, for other tools to take over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from steadyeye.review.db.schema import decisions, items, reviewers
from steadyeye.review.protocol.stages import FLAWS


@dataclass(frozen=True)
class Said:
    """A decision that stands. `made_at`: seconds since 1970."""

    id: int
    reviewer: int
    name: str
    answer: Mapping[str, Any]
    comment: str
    seconds: float
    made_at: float


@dataclass(frozen=True)
class AnsweredItem:
    """An item and the decisions on it that stand, in the order in which they were made."""

    stage: str
    key: str
    payload: Mapping[str, Any]
    said: Sequence[Said]


def list_answered(connection: Connection, stage: str) -> Sequence[AnsweredItem]:
    """The items of a stage that are open or done, in their random order."""
    last = select(func.max(decisions.c.id)).group_by(decisions.c.item, decisions.c.reviewer)
    found: dict[int, list[Said]] = {}
    for row in connection.execute(
        select(decisions, reviewers.c.name)
        .join(reviewers, reviewers.c.id == decisions.c.reviewer)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.stage == stage, decisions.c.id.in_(last), decisions.c.kind != "undo")
        .order_by(decisions.c.id)
    ):
        told = (row.id, row.reviewer, row.name, row.answer, row.comment, row.seconds, row.made_at)
        found.setdefault(row.item, []).append(Said(*told))
    rows = connection.execute(
        select(items)
        .where(items.c.stage == stage, items.c.state.in_(("open", "done")))
        .order_by(items.c.position, items.c.id)
    )
    return [AnsweredItem(stage, row.key, row.payload, found.get(row.id, ())) for row in rows]


FORMS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "anchors": {"quality": ("good", "unsure", "bad")},
    "pairs": {"correct": ("yes", "no", "unsure"), "similar": ("yes", "no", "unsure")},
    "joint": {"correct": ("yes", "no", "unsure"), "similar": ("yes", "no", "unsure")},
    "classification": dict.fromkeys(("well_sized", *FLAWS), ("yes", "no")),
    "boxes": {},
    "box_check": {},
}
"""Stage → question → what may be chosen, one of each."""


def as_choices(stage: str, answer: Mapping[str, Any]) -> Mapping[str, str]:
    """Question → choice of an answer."""
    words = {True: "yes", False: "no"}
    return {name: words.get(answer[name], answer[name]) for name in FORMS[stage]}


def from_choices(stage: str, choices: Mapping[str, str]) -> Mapping[str, Any]:
    """The part of an answer that choices make; a choice that is none is left for `check`."""
    if stage == "classification":
        words = {"yes": True, "no": False}
        return {name: words.get(choice, choice) for name, choice in choices.items()}
    return dict(choices)
