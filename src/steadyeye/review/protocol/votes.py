"""The decisions of a review, which only this module writes, and the outcome of those that stand.

A decision **stands** if it is the last of its reviewer on its item and does not take one back.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.sql import ColumnElement

from steadyeye import __version__
from steadyeye.review.database import decisions, items
from steadyeye.review.protocol.stages import (
    STAGES,
    Answer,
    Outcome,
    judge_detection,
    settle_object,
)

LONGEST = 3_600.0  # seconds a decision can claim to have taken
COMMENT = 2_000  # characters of a comment that are stored
VERSION = 60  # characters of a version that are stored
SET = ", set "
"""Prefix of the set's fingerprint in the version of a decision."""

_later = decisions.alias("later")
STANDS: ColumnElement[bool] = (decisions.c.kind != "undo") & ~(
    select(_later.c.id)
    .where(_later.c.item == decisions.c.item, _later.c.reviewer == decisions.c.reviewer)
    .where(_later.c.id > decisions.c.id)
    .exists()
)
"""The condition for decisions that stand."""

# what a decision takes is built once: to build it anew takes longer than to run it
_ADD = insert(decisions).returning(decisions.c.id, sort_by_parameter_order=True)
_LAST = (
    select(decisions)
    .where(decisions.c.item == bindparam("item"), decisions.c.reviewer == bindparam("reviewer"))
    .order_by(decisions.c.id.desc())
    .limit(1)
)
_VOTES = (
    select(decisions.c.item, decisions.c.reviewer, decisions.c.answer)
    .where(STANDS)
    .order_by(decisions.c.id)
)
_VOTES_OF = {
    "item": _VOTES.where(decisions.c.item == bindparam("item")),
    "block": _VOTES.where(
        decisions.c.item.in_(select(items.c.id).where(items.c.block == bindparam("block")))
    ),
    "stage": _VOTES.join(items, items.c.id == decisions.c.item).where(
        items.c.stage == bindparam("stage")
    ),
}

Votes: TypeAlias = Sequence[tuple[int, Answer]]
"""(reviewer, answer) of each decision on an item that stands, in the order they were made."""


def add_decisions(
    connection: Connection, rows: Sequence[Mapping[str, Any]], data_version: str = ""
) -> list[int]:
    """Adds decisions in this order; returns their ids.

    `rows`: item, reviewer, key, kind and answer of each; if known also comment, seconds, made_at,
    and the decision that it `replaces`. `data_version`: that of the set on the page.
    """
    of_set = f"{SET}{data_version}" if data_version else ""
    # that of a working copy with changes is longer than the column, which PostgreSQL refuses
    version = f"steadyeye {__version__}"[: VERSION - len(of_set)] + of_set
    tidy = [
        {
            "replaces": None,
            "made_at": time.time(),
            "version": version,
            **row,
            "comment": row.get("comment", "")[:COMMENT],
            "seconds": _clip_seconds(row.get("seconds", 0.0)),
        }
        for row in rows
    ]
    if not tidy:
        return []
    return list(connection.execute(_ADD, tidy).scalars())


def _clip_seconds(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST) if isfinite(seconds) else 0.0


def find_standing(connection: Connection, item: int, reviewer: int) -> Any:
    """The standing decision of a reviewer on an item, a row of `decisions`, or None."""
    row = connection.execute(_LAST, {"item": item, "reviewer": reviewer}).one_or_none()
    return row if row is not None and row.kind != "undo" else None


def find_votes(
    connection: Connection, of: Literal["item", "block", "stage"], value: int | str
) -> Mapping[int, Votes]:
    """Item → the decisions on it that stand, of the item, block or stage that `value` names."""
    votes: dict[int, list[tuple[int, Answer]]] = defaultdict(list)
    for row in connection.execute(_VOTES_OF[of], {of: value}):
        votes[row.item].append((row.reviewer, row.answer))
    return votes


def settle_item(row: Any, votes: Votes) -> Outcome | None:
    """The outcome of an item, a row of `items`; None while it has too few votes.

    The outcome of a gold question is its known answer.
    """
    answers = [row.gold] if row.gold is not None else [answer for _, answer in votes]
    if row.gold is None and len(votes) < row.needed:
        return None
    if row.stage == "classification":
        return judge_detection(settle_object(answers), row.payload["predicted"])
    return STAGES["joint" if row.gold and row.stage == "pairs" else row.stage].settle(answers)


def settle_stage(connection: Connection, stage: str) -> Mapping[str, Outcome | None]:
    """Key → outcome of every item of a stage that is or was open."""
    votes = find_votes(connection, "stage", stage)
    rows = connection.execute(select(items).where(items.c.stage == stage).order_by(items.c.id))
    return {row.key: settle_item(row, votes.get(row.id, ())) for row in rows}


def settle_pairs(connection: Connection) -> Mapping[str, Outcome | None]:
    """Key → outcome of every pair; that of a doubted pair is from its joint verification."""
    joint = settle_stage(connection, "joint")
    return {
        key: joint.get(key) if pair is not None and pair.accepted is None else pair
        for key, pair in settle_stage(connection, "pairs").items()
    }
