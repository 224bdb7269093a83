"""How good reviewers are: their gold questions, their agreement, their pace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score
from sqlalchemy import Connection, select

from steadyeye.core.format import number_of
from steadyeye.review.database import decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import Gold, is_doubted
from steadyeye.review.protocol.votes import find_votes, select_last

FEWEST = 5  # items two reviewers must share for a kappa of theirs


@dataclass(frozen=True)
class Pace:
    """The numbers of a reviewer.

    `gold`: gold questions right, and of how many. `median_seconds`: of an answer; None: no times.
    """

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


def judge_reviewer(connection: Connection, reviewer: Reviewer, gold: Gold) -> Reviewer:
    """The reviewer after an answer to a gold question, paused where these are too often wrong.

    Only a wrong answer pauses: whom the admin lets go on is not stopped again by the old ones.
    """
    marks = _marks(connection, reviewer.id)[-gold.window :]
    if not marks or marks[-1]:
        return reviewer
    if len(marks) >= gold.minimum and sum(marks) < gold.least * len(marks):
        why = f"{sum(marks)} of your last {len(marks)} check questions were right; ask the admin"
        reviewers.pause_reviewer(connection, reviewer.id, why)
        return replace(reviewer, paused=why)
    return reviewer


def measure_paces(connection: Connection) -> Sequence[Pace]:
    """Every reviewer's numbers, in the order in which they came."""
    paces = []
    for reviewer in reviewers.list_reviewers(connection):
        if reviewer.admin:
            continue
        query = select(decisions.c.kind, decisions.c.seconds)
        rows = connection.execute(query.where(decisions.c.reviewer == reviewer.id)).all()
        answers = [row.seconds for row in rows if row.kind == "answer"]
        # tools that do not say how long an answer took give 0
        seconds = [took for took in answers if took > 0]
        marks = _marks(connection, reviewer.id)
        paces.append(
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
    return paces


def measure_agreement(connection: Connection, stage: str) -> Agreement:
    """How far reviewers agree in a stage, over the decisions that stand, gold questions left out.

    These are chosen to be clear and asked of everybody, so that all agree on them.
    """
    names = {person.id: person.name for person in reviewers.list_reviewers(connection)}
    gold = set(connection.execute(select(items.c.id).where(items.c.gold.is_not(None))).scalars())
    verdicts = {
        item: {names[who]: word_answer(stage, answer) for who, answer in votes if who in names}
        for item, votes in find_votes(connection, stage=stage).items()
        if item not in gold
    }
    shared = {item: words for item, words in verdicts.items() if len(words) > 1}
    coders = sorted({name for words in shared.values() for name in words})
    kappa = {}
    for first, second in combinations(coders, 2):
        both = [(w[first], w[second]) for w in shared.values() if first in w and second in w]
        if len(both) >= FEWEST:
            value = cohen_kappa_score(*zip(*both, strict=True), labels=_list_words(shared))
            # one verdict for everything leaves nothing to agree on beyond chance
            kappa[first, second] = (float(value) if np.isfinite(value) else 1.0, len(both))
    return Agreement(stage, _alpha(shared, coders), len(shared), kappa)


def word_answer(stage: str, answer: Mapping[str, Any]) -> str:
    """The word for an answer, on which reviewers agree or not."""
    if stage == "anchors":
        return f"{answer['quality']} {' '.join(answer['labels'])}".strip()
    if stage in ("pairs", "joint"):
        return "doubted" if is_doubted(answer) else "accepted"
    if stage == "classification":
        return " ".join(key for key in sorted(answer) if answer[key]) or "nothing"
    return f"{number_of(len(answer['boxes']), 'box')}"


def _list_words(shared: Mapping[int, Mapping[str, str]]) -> list[str]:
    return sorted({word for words in shared.values() for word in words.values()})


def _alpha(shared: Mapping[int, Mapping[str, str]], coders: Sequence[str]) -> float | None:
    codes = {word: number for number, word in enumerate(_list_words(shared))}
    if len(codes) < 2:
        return None
    table = np.full((len(coders), len(shared)), np.nan)
    for column, words in enumerate(shared.values()):
        for name, word in words.items():
            table[coders.index(name), column] = codes[word]
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement="nominal"))


def _marks(connection: Connection, reviewer: int) -> list[bool]:
    """Right or wrong on each gold question, in the order of the answers that stand."""
    last = select_last(decisions.c.reviewer == reviewer)
    rows = connection.execute(
        select(items.c.stage, items.c.gold, decisions.c.answer)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.gold.is_not(None), decisions.c.kind == "answer")
        .where(decisions.c.id.in_(last))
        .order_by(decisions.c.id)
    )
    return [word_answer(r.stage, r.gold) == word_answer(r.stage, r.answer) for r in rows]
