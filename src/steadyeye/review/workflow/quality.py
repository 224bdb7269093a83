"""How good reviewers are: their gold questions and their pace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, String, cast, func, select, update

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.format import number_of
from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.database import reviewers as people
from steadyeye.review.protocol import counts, reviewers
from steadyeye.review.protocol.counts import read_pace_counts
from steadyeye.review.protocol.objects import (
    fold_object,
    is_right_label,
    word_object,
    word_set_labels,
)
from steadyeye.review.protocol.plan_entries import Gold
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import Answer, is_doubted
from steadyeye.review.protocol.votes import STANDS

RECENT = 20  # answers over which it is judged whether a reviewer is too fast
HASTY = 0.5  # seconds; to see that something appeared and press a key alone takes as long


@dataclass(frozen=True)
class Pace:
    """The numbers of a reviewer.

    `gold`: number of right and of all answers to gold questions. `median_seconds`: per answer,
    rounded to a tenth of a second below ten seconds and to a second above; None without times.
    `hasty`: see `is_hasty`. `has_link`: whether their link was not revoked.
    """

    id: int
    name: str
    decisions: int
    undone: int
    gold: tuple[int, int]
    median_seconds: float | None
    paused: str
    hasty: bool = False
    has_link: bool = True


def write_marks(connection: Connection, reviewer: int) -> list[bool]:
    """Right or wrong for each gold question; the number of right answers is stored."""
    marks = list_marks(connection, reviewer)
    values = {"gold_right": sum(marks), "gold_asked": len(marks)}
    change = update(people).where(people.c.id == reviewer)
    connection.execute(change.values(**values))
    return marks


def judge_reviewer(connection: Connection, reviewer: Reviewer, gold: Gold) -> Reviewer:
    """The reviewer after an answer to a gold question, paused if too many answers are wrong.

    Only a wrong answer pauses, so that old answers do not stop a reviewer whom the admin let
    continue.
    """
    marks = write_marks(connection, reviewer.id)[-gold.window :]
    if not marks or marks[-1]:
        return reviewer
    if len(marks) >= gold.minimum and sum(marks) < gold.least * len(marks):
        why = f"{sum(marks)} of your last {len(marks)} gold questions were right; ask the admin"
        reviewers.pause_reviewer(connection, reviewer.id, why)
        return replace(reviewer, paused=why)
    return reviewer


def measure_paces(connection: Connection) -> Sequence[Pace]:
    """Every reviewer's numbers, in the order in which they came."""
    counts, recent = read_pace_counts(connection), read_recent_seconds(connection)
    query = select(people).where(~people.c.admin).order_by(people.c.id)
    paces = []
    for row in connection.execute(query):
        by_kind = counts.get(row.id, {})
        answers, undone = by_kind.get("answer", {}), by_kind.get("undo", {})
        paces.append(
            Pace(
                row.id,
                row.name,
                sum(answers.values()),
                sum(undone.values()),
                (row.gold_right, row.gold_asked),
                _find_median(answers),
                row.paused,
                is_hasty(recent[row.id]),
                row.token_hash is not None,
            )
        )
    return paces


def read_recent_seconds(
    connection: Connection, most: int = RECENT
) -> Mapping[int, Sequence[float]]:
    """Reviewer → seconds of their last answers, in any order, at most `most` each.

    Answers without a time are left out. One statement reads all reviewers.
    """
    recent = (
        select(decisions.c.seconds)
        .where(decisions.c.reviewer == people.c.id, decisions.c.kind == "answer")
        .where(decisions.c.seconds > 0)
        .order_by(decisions.c.id.desc())
        .limit(most)
        .correlate(people)
        .subquery()
    )
    text = select(func.aggregate_strings(cast(recent.c.seconds, String), " ")).scalar_subquery()
    rows = connection.execute(select(people.c.id, text))
    return {number: [float(word) for word in (words or "").split()] for number, words in rows}


def is_hasty(recent: Sequence[float]) -> bool:
    """Whether the median of a reviewer's last `RECENT` answers is below `HASTY` seconds.

    False for fewer answers.
    """
    return len(recent) == RECENT and bool(np.median(recent) < HASTY)


def _find_median(counts: Mapping[int, int]) -> float | None:
    """The median in seconds, from counts by tenths of a second; None without times."""
    # tools that do not say how long an answer took give 0
    tenths = sorted(tenth for tenth in counts if tenth > 0)
    if not tenths:
        return None
    ends = np.cumsum([counts[tenth] for tenth in tenths])
    middle = [
        int(np.searchsorted(ends, place + 1)) for place in ((ends[-1] - 1) // 2, ends[-1] // 2)
    ]
    return sum(tenths[number] for number in middle) / 20


def fold_answer(stage: str, answer: Mapping[str, Any]) -> str:
    """The answer in a form that is equal for answers that agree."""
    return fold_object(answer) if stage == "classification" else word_answer(stage, answer)


def is_right(stage: str, known: Answer, answer: Answer) -> bool:
    """Whether an answer is right if the `known` one is."""
    if stage == "labels":
        return is_right_label(known, answer)
    return fold_answer(stage, known) == fold_answer(stage, answer)


def word_answer(stage: str, answer: Mapping[str, Any]) -> str:
    """The word for an answer."""
    if stage == "anchors":
        return f"{answer['quality']} {' '.join(answer['labels'])}".strip()
    if stage in ("pairs", "joint"):
        return "doubted" if is_doubted(answer) else "accepted"
    if stage == "classification":
        return word_object(answer)
    if stage == "labels":
        return word_set_labels(answer)
    return f"{number_of(len(answer['boxes']), 'box')}"


def list_marks(connection: Connection, reviewer: int) -> list[bool]:
    """Right or wrong for each gold question, in the order of the standing answers."""
    rows = connection.execute(
        select(items.c.stage, items.c.gold, decisions.c.answer)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.known, decisions.c.reviewer == reviewer)
        .where(decisions.c.kind == "answer", STANDS)
        .order_by(decisions.c.id)
    )
    return [is_right(r.stage, r.gold, r.answer) for r in rows]


def set_gold(connection: Connection, stage: str, key: str, answer: Mapping[str, Any]) -> int:
    """Makes an item a gold question for everybody, with its known `answer`; returns its id.

    Raises `UsageError` for a key that the stage does not have.
    """
    same = (items.c.stage == stage) & (items.c.key == key)
    item = connection.execute(select(items.c.id).where(same)).scalar()
    if item is None:
        raise UsageError(
            f"set.json: review.gold.answers.{stage}: no item '{shorten(key)}' in this stage; give "
            "an id of the set that is reviewed (no neighbour across a scene cut)"
        )
    connection.execute(counts.CHANGE_ITEM, {"of": item, "gold": dict(answer), "state": "open"})
    if stage in ("anchors", "classification"):
        unit = connection.execute(select(items.c.unit).where(items.c.id == item)).scalar_one()
        counts.write_parents(connection, stage, unit)
    elif stage == "pairs":
        counts.write_pair(connection, key)
    people = select(assignments.c.reviewer).where(assignments.c.item == item)
    for reviewer in connection.execute(people).scalars().all():
        write_marks(connection, reviewer)
    return int(item)
