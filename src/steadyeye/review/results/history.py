"""Lists of decisions: a reviewer's own, and items that deserve a second look."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, String, case, cast, distinct, func, or_, select
from sqlalchemy.sql import ColumnElement, Select

from steadyeye.core.errors import unknown
from steadyeye.review.database import COMMENTED, decisions, items, reviewers
from steadyeye.review.protocol.stages import STAGES, Answer
from steadyeye.review.protocol.votes import STANDS
from steadyeye.review.workflow.quality import word_answer

PAGE = 24  # entries on a page
SLOW = 30.0  # seconds from which an answer counts as slow
CHANGEABLE = ("open", "done")  # states of items whose answers can be changed


@dataclass(frozen=True)
class HistoryFilter:
    """A search; empty fields match everything.

    `answer`: one of `ANSWERS`. `text`: text in the key, the labels or the comments, without regard
    to the case of A to Z. `page`: from 1; beyond the last page it is the last.
    """

    stage: str = ""
    answer: str = ""
    text: str = ""
    page: int = 1


def _says(question: str, word: str) -> ColumnElement[bool]:
    value: ColumnElement[str] = decisions.c.answer[question].as_string()
    return value == word


ANSWERS: Mapping[str, ColumnElement[bool]] = {
    "similar": _says("similar", "yes"),
    "not similar": _says("similar", "no"),
    "label is wrong": _says("correct", "no"),
    "good": _says("quality", "good"),
    "bad": _says("quality", "bad"),
    "unsure": or_(*(_says(question, "unsure") for question in ("similar", "correct", "quality"))),
    "with a comment": COMMENTED,
}
"""Name of an answer → the condition for decisions that give it."""


def list_own(connection: Connection, reviewer: int, search: HistoryFilter) -> Mapping[str, Any]:
    """A page of the standing decisions of a reviewer, the newest first.

    `entries`, `total`, `page` and `pages`. Raises `UsageError` for an unknown stage or answer.
    """
    query = (
        select(decisions, items.c.stage, items.c.key.label("name"), items.c.payload, items.c.state)
        .join(items, items.c.id == decisions.c.item)
        .where(decisions.c.reviewer == reviewer, STANDS, *_find_conditions(search))
        .order_by(decisions.c.id.desc())
    )
    rows, pages = _read_page(connection, query, search.page)
    entries = [
        {
            **_describe_item(row.stage, row.name, row.payload),
            "decision": row.id,
            "answer": describe_answer(row.stage, row.answer),
            "comment": row.comment,
            "seconds": row.seconds,
            "made_at": row.made_at,
            "changeable": row.state in CHANGEABLE,
        }
        for row in rows
    ]
    return {"entries": entries, **pages}


def _find_conditions(search: HistoryFilter) -> list[ColumnElement[bool]]:
    """The conditions for decisions, joined with their items."""
    conditions = []
    if search.stage:
        if search.stage not in STAGES:
            raise unknown("stage", search.stage, STAGES)
        conditions.append(items.c.stage == search.stage)
    if search.answer:
        if search.answer not in ANSWERS:
            raise unknown("answer", search.answer, ANSWERS)
        conditions.append(ANSWERS[search.answer])
    if search.text:
        stored = json.dumps(search.text)[1:-1]  # as the payload holds it
        conditions.append(
            or_(
                items.c.key.icontains(search.text, autoescape=True),
                decisions.c.comment.icontains(search.text, autoescape=True),
                cast(items.c.payload["labels"], String).icontains(stored, autoescape=True),
            )
        )
    return conditions


def _read_page(
    connection: Connection, query: Select[Any], page: int
) -> tuple[Sequence[Any], Mapping[str, int]]:
    """The rows of a page, its number, and the number of pages."""
    counted = select(func.count()).select_from(query.order_by(None).subquery())
    total = connection.execute(counted).scalar_one()
    pages = max(1, -(-total // PAGE))
    page = min(max(page, 1), pages)
    rows = connection.execute(query.limit(PAGE).offset((page - 1) * PAGE)).all()
    return rows, {"total": total, "page": page, "pages": pages}


def _describe_item(stage: str, key: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an item on a page; `boxes`: on its only picture, x0 y0 x1 y1 in pixels."""
    pictures = [payload[role] for role in ("anchor", "image") if role in payload]
    boxes = [payload["box"]] if "box" in payload else [b["box"] for b in payload.get("boxes", ())]
    labels = payload["labels"] if "labels" in payload else [payload.get("label", "")]
    return {
        "stage": stage,
        "title": STAGES[stage].title,
        "key": key,
        "labels": [label for label in labels if label],
        "pictures": pictures,
        "boxes": boxes,
        "duplicate_of": payload.get("duplicate_of", ""),
    }


def describe_answer(stage: str, answer: Answer) -> str:
    """An answer in the words of its page."""
    if stage == "anchors":
        return ", ".join([answer["quality"], *answer["labels"]])
    if stage in ("pairs", "joint"):
        similar = {"yes": "similar", "no": "not similar", "unsure": "unsure"}[answer["similar"]]
        wrong = ["label is wrong"] if answer["correct"] == "no" else []
        return ", ".join([similar, *answer["reasons"], *wrong])
    return word_answer(stage, answer)


def _find_disputed() -> ColumnElement[bool]:
    """Items with different answers; different reasons for a pair do not count."""
    answer = case(
        (
            items.c.stage.in_(("pairs", "joint")),
            decisions.c.answer["similar"].as_string() + decisions.c.answer["correct"].as_string(),
        ),
        else_=cast(decisions.c.answer, String),
    )
    query = select(decisions.c.item).join(items, items.c.id == decisions.c.item).where(STANDS)
    differing = query.group_by(decisions.c.item).having(func.count(distinct(answer)) > 1)
    return items.c.id.in_(differing)


def _find_with(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Items with a standing decision that meets a condition."""
    return items.c.id.in_(select(decisions.c.item).where(condition, STANDS))


KINDS: Mapping[str, ColumnElement[bool]] = {
    "disputed": _find_disputed(),
    "slow": _find_with(decisions.c.seconds >= SLOW),
    "rejected": items.c.verdict == "rejected",
    "commented": _find_with(COMMENTED),
    "answered": _find_with(decisions.c.id > 0),
}
"""Why items deserve a second look → the condition for them."""


def browse_items(connection: Connection, kind: str, search: HistoryFilter) -> Mapping[str, Any]:
    """A page of the items of a kind with all answers: `entries`, `total`, `page`, `pages`.

    `agree`: how many of `n` reviewers give the most frequent answer. Raises `UsageError` for a
    kind, a stage or an answer that is unknown.
    """
    if kind not in KINDS:
        raise unknown("kind of items", kind, KINDS)
    query = select(items).where(KINDS[kind])
    if conditions := _find_conditions(search):
        matching = select(decisions.c.item).join(items, items.c.id == decisions.c.item)
        query = query.where(items.c.id.in_(matching.where(STANDS, *conditions)))
    rows, pages = _read_page(connection, query.order_by(items.c.id), search.page)
    answers = _list_answers(connection, rows)
    return {"entries": [_describe_browsed(row, answers[row.id]) for row in rows], **pages}


def _list_answers(
    connection: Connection, rows: Sequence[Any]
) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """Item → answers with their reviewers, for rows of `items`."""
    stages = {row.id: row.stage for row in rows}
    answers: dict[int, list[Mapping[str, Any]]] = {item: [] for item in stages}
    query = (
        select(decisions, reviewers.c.name)
        .join(reviewers, reviewers.c.id == decisions.c.reviewer)
        .where(decisions.c.item.in_(stages), STANDS)
        .order_by(decisions.c.id)
    )
    for row in connection.execute(query):
        answer = describe_answer(stages[row.item], row.answer)
        facts = {"comment": row.comment, "seconds": row.seconds, "made_at": row.made_at}
        answers[row.item].append({"name": row.name, "answer": answer, **facts})
    return answers


def _describe_browsed(row: Any, answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    words = Counter(entry["answer"] for entry in answers)
    return {
        **_describe_item(row.stage, row.key, row.payload),
        "known": row.gold is not None,
        "verdict": row.verdict or "undecided",
        "reason": row.reason,
        "said": answers,
        "agree": words.most_common(1)[0][1] if words else 0,
        "n": len(answers),
    }


def list_comments(connection: Connection, most: int | None = None) -> Sequence[Mapping[str, Any]]:
    """The comments on standing decisions, the newest first; `most`: their number, None: all."""
    query = (
        select(decisions, items.c.stage, items.c.key.label("name"), reviewers.c.name.label("by"))
        .join(items, items.c.id == decisions.c.item)
        .join(reviewers, reviewers.c.id == decisions.c.reviewer)
        .where(COMMENTED, STANDS)
        .order_by(decisions.c.id.desc())
    )
    return [
        {
            "stage": row.stage,
            "item": row.name,
            "reviewer": row.by,
            "answer": describe_answer(row.stage, row.answer),
            "comment": row.comment,
            "made_at": row.made_at,
        }
        for row in connection.execute(query.limit(most))
    ]


def count_comments(connection: Connection) -> int:
    """How many decisions that stand have a comment."""
    query = select(func.count()).select_from(decisions).where(COMMENTED, STANDS)
    return int(connection.execute(query).scalar_one())
