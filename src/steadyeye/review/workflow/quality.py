"""How good reviewers are: their gold questions, their agreement, their pace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import Connection, func, select

from steadyeye.core.format import number_of
from steadyeye.review.db.schema import decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.plan import Gold
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import is_doubted, votes

FEWEST = 5  # items two reviewers must share for their agreement to be told


@dataclass(frozen=True)
class Pace:
    """One reviewer. `gold`: right and asked. `median_seconds`: a decision, None without any."""

    id: int
    name: str
    decisions: int
    undone: int
    gold: tuple[int, int]
    median_seconds: float | None
    paused: str


@dataclass(frozen=True)
class Agreement:
    """How far reviewers agree in a stage.

    `alpha`: Krippendorff's, nominal; None where it is undefined. `n`: items with two answers or
    more. `kappa`: Cohen's and the items shared, of each two reviewers who share enough.
    """

    stage: str
    alpha: float | None
    n: int
    kappa: Mapping[tuple[str, str], tuple[float, int]]


def judge(connection: Connection, reviewer: Reviewer, gold: Gold) -> Reviewer:
    """The reviewer after an answer to a gold question, paused where these are too often wrong.

    Only a wrong answer pauses: whom the admin lets go on is not stopped again by the old ones.
    """
    marks = _marks(connection, reviewer.id)[-gold.window :]
    if not marks or marks[-1]:
        return reviewer
    if len(marks) >= gold.minimum and sum(marks) < gold.least * len(marks):
        why = f"{sum(marks)} of your last {len(marks)} check questions were right; ask the admin"
        reviewers.pause(connection, reviewer.id, why)
        return replace(reviewer, paused=why)
    return reviewer


def paces(connection: Connection) -> Sequence[Pace]:
    """Every reviewer's numbers, in the order in which they came."""
    found = []
    for reviewer in reviewers.everyone(connection):
        if reviewer.admin:
            continue
        mine = select(decisions.c.kind, decisions.c.seconds)
        rows = connection.execute(mine.where(decisions.c.reviewer == reviewer.id)).all()
        answers = [row.seconds for row in rows if row.kind == "answer"]
        # tools that do not say how long an answer took give 0
        seconds = [took for took in answers if took > 0]
        marks = _marks(connection, reviewer.id)
        found.append(
            Pace(
                reviewer.id,
                reviewer.name,
                len(answers),
                sum(row.kind == "undo" for row in rows),
                (sum(marks), len(marks)),
                float(np.median(seconds)) if seconds else None,
                reviewer.paused,
            )
        )
    return found


def agreement(connection: Connection, stage: str) -> Agreement:
    """How far reviewers agree in a stage, over the decisions that stand, gold questions left out.

    These are chosen to be clear and asked of everybody, so that all agree on them.
    """
    names = {one.id: one.name for one in reviewers.everyone(connection)}
    gold = set(connection.execute(select(items.c.id).where(items.c.gold.is_not(None))).scalars())
    said = {
        item: {names[who]: verdict(stage, answer) for who, answer in answers if who in names}
        for item, answers in votes(connection, stage=stage).items()
        if item not in gold
    }
    shared = {item: answers for item, answers in said.items() if len(answers) > 1}
    coders = sorted({name for answers in shared.values() for name in answers})
    kappa = {}
    for one, other in combinations(coders, 2):
        both = [(a[one], a[other]) for a in shared.values() if one in a and other in a]
        if len(both) >= FEWEST:
            value = cohen_kappa_score(*zip(*both, strict=True), labels=_kinds(shared))
            # one verdict for everything leaves nothing to agree on beyond chance
            kappa[one, other] = (float(value) if np.isfinite(value) else 1.0, len(both))
    return Agreement(stage, _alpha(shared, coders), len(shared), kappa)


def verdict(stage: str, answer: Mapping[str, Any]) -> str:
    """An answer as the one word on which reviewers agree or not."""
    if stage == "anchors":
        return f"{answer['quality']} {' '.join(answer['labels'])}".strip()
    if stage in ("pairs", "joint"):
        return "doubted" if is_doubted(answer) else "accepted"
    if stage == "classification":
        return " ".join(key for key in sorted(answer) if answer[key]) or "nothing"
    return f"{number_of(len(answer['boxes']), 'box')}"


def _kinds(said: Mapping[int, Mapping[str, str]]) -> list[str]:
    return sorted({word for answers in said.values() for word in answers.values()})


def _alpha(said: Mapping[int, Mapping[str, str]], coders: Sequence[str]) -> float | None:
    kinds = {word: number for number, word in enumerate(_kinds(said))}
    if len(kinds) < 2:
        return None
    table = np.full((len(coders), len(said)), np.nan)
    for column, answers in enumerate(said.values()):
        for name, word in answers.items():
            table[coders.index(name), column] = kinds[word]
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement="nominal"))


def _marks(connection: Connection, reviewer: int) -> list[bool]:
    """Right or wrong on each gold question, in the order in which they were first answered."""
    last = select(func.max(decisions.c.id)).where(decisions.c.reviewer == reviewer)
    rows = connection.execute(
        select(items.c.stage, items.c.gold, decisions.c.answer)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.gold.is_not(None), decisions.c.kind == "answer")
        .where(decisions.c.id.in_(last.group_by(decisions.c.item)))
        .order_by(decisions.c.id)
    )
    return [verdict(r.stage, r.gold) == verdict(r.stage, r.answer) for r in rows]
