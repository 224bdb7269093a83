"""The entry quiz of a stage: gold questions, with the right answer after each, before any vote.

A reviewer with too few right answers gets other gold questions of the stage; when these are used
up, they are paused until the admin lets them continue. An answer here is no vote, is not counted,
and the same reviewer is not asked again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from steadyeye.core.seeds import stream
from steadyeye.review.database import items, quiz_answers
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.objects import hide_source
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import DRAWN, STAGES, ReviewPlan
from steadyeye.review.workflow.decisions import RefusedError, Rules
from steadyeye.review.workflow.quality import is_right, word_answer


@dataclass(frozen=True)
class QuizQuestion:
    """The next question: number `number` of `size`, from 1; `item`: its id."""

    item: int
    payload: Mapping[str, Any]
    number: int
    size: int


@dataclass(frozen=True)
class QuizResult:
    """The result of an answer in a quiz: the `answer` and the `expected` one, in words.

    `finished`: number of right and of all answers, after the last question; `passed`: whether these
    are enough. `wrong`: the given and the right answer of each wrong one.
    """

    right: bool
    answer: str
    expected: str
    finished: tuple[int, int] | None = None
    passed: bool = False
    wrong: Sequence[tuple[str, str]] = ()


def find_question(
    connection: Connection,
    plan: ReviewPlan,
    reviewer: Reviewer,
    stage: str,
    lacks: Callable[[Mapping[str, Any]], bool] = lambda payload: False,
) -> QuizQuestion | None:
    """The next question of a reviewer's quiz; None if they may vote or are paused.

    None if they passed, if the plan has no quiz or the stage no gold questions, if they are paused,
    and if the admin let them continue after all questions. Questions that `lacks` reports as not
    showable come last.
    """
    if not plan.quiz.size or reviewer.paused:
        return None
    marks = [row.right for row in _list_answers(connection, reviewer, stage)]
    if _has_passed(plan, marks):
        return None
    left = _list_new(connection, plan, reviewer, stage)
    place = len(marks) % plan.quiz.size
    if len(left) < plan.quiz.size - place:
        return None
    row = next((row for row in left if not lacks(row.payload)), left[0])
    return QuizQuestion(row.id, hide_source(row.payload), place + 1, plan.quiz.size)


def answer_question(
    connection: Connection,
    rules: Rules,
    reviewer: Reviewer,
    stage: str,
    reply: tuple[int, Mapping[str, Any]],
    lacks: Callable[[Mapping[str, Any]], bool] = lambda payload: False,
) -> QuizResult:
    """The result of an answer in a quiz; `reply`: the item it is to, and the answer.

    The same request again returns the same. Raises `RefusedError` for an item that is not the
    next, and `UsageError` for an answer that the stage does not allow.
    """
    reviewers.lock_reviewer(connection, reviewer)
    item, answer = reply[0], dict(STAGES[stage].check(reply[1], rules.classes))
    before = _list_answers(connection, reviewer, stage)
    if not before or before[-1].item != item:
        question = find_question(connection, rules.plan, reviewer, stage, lacks)
        if question is None or question.item != item:
            raise RefusedError("this is not your next question; reload the page")
        gold = connection.execute(select(items.c.gold).where(items.c.id == item)).scalar_one()
        right = is_right(stage, gold, answer)
        row = {"reviewer": reviewer.id, "item": item, "answer": answer, "right": right}
        connection.execute(insert(quiz_answers).values(**row, made_at=time.time()))
        before = _list_answers(connection, reviewer, stage)
    result = _describe_result(rules.plan, stage, before)
    if result.finished and not result.passed:
        _pause_without_more(connection, rules.plan, reviewer, stage, result.finished)
    return result


def _describe_result(plan: ReviewPlan, stage: str, answers: Sequence[Any]) -> QuizResult:
    words = [(show_answer(stage, row.answer), show_answer(stage, row.gold)) for row in answers]
    last = QuizResult(answers[-1].right, *words[-1])
    if len(answers) % plan.quiz.size:
        return last
    recent = answers[-plan.quiz.size :]
    pairs = zip(recent, words[-plan.quiz.size :], strict=True)
    return QuizResult(
        last.right,
        last.answer,
        last.expected,
        (sum(row.right for row in recent), len(recent)),
        _has_passed(plan, [row.right for row in answers]),
        [pair for row, pair in pairs if not row.right],
    )


def _pause_without_more(
    connection: Connection,
    plan: ReviewPlan,
    reviewer: Reviewer,
    stage: str,
    finished: tuple[int, int],
) -> None:
    if len(_list_new(connection, plan, reviewer, stage)) < plan.quiz.size:
        right, size = finished
        title = STAGES[stage].title
        why = f"{right} of {size} questions of the entry quiz of {title} were right; ask the admin"
        reviewers.pause_reviewer(connection, reviewer.id, why)


def _has_passed(plan: ReviewPlan, marks: Sequence[bool]) -> bool:
    """Whether any full round of questions had enough right answers."""
    size = plan.quiz.size
    rounds = [marks[first : first + size] for first in range(0, len(marks), size)]
    return any(len(r) == size and sum(r) >= plan.quiz.least * size for r in rounds)


def _list_answers(connection: Connection, reviewer: Reviewer, stage: str) -> Sequence[Any]:
    """A reviewer's answers in a quiz, in order: item, answer, right, and the known answer."""
    query = select(
        quiz_answers.c.item, quiz_answers.c.answer, quiz_answers.c.right, items.c.gold
    ).join(items, items.c.id == quiz_answers.c.item)
    own = (quiz_answers.c.reviewer == reviewer.id) & (items.c.stage == stage)
    return connection.execute(query.where(own).order_by(quiz_answers.c.id)).all()


def _list_new(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str
) -> Sequence[Any]:
    """The gold questions that a reviewer did not see, in an order of their own."""
    answered = {row.item for row in _list_answers(connection, reviewer, stage)}
    query = select(items.c.id, items.c.key, items.c.payload)
    gold = (items.c.stage == stage) & items.c.gold.is_not(None)
    rows = connection.execute(query.where(gold).order_by(items.c.key)).all()
    order = stream(plan.seed, "quiz", str(reviewer.id), stage).permutation(len(rows))
    return [rows[i] for i in order if rows[i].id not in answered]


def show_answer(stage: str, answer: Mapping[str, Any]) -> str:
    """An answer as a reviewer reads it."""
    if stage in DRAWN:
        return ", ".join(sorted(box["label"] for box in answer["boxes"])) or "no box"
    if stage in ("pairs", "joint"):
        words = f"label right: {answer['correct']}, similar: {answer['similar']}"
        return f"{words} ({', '.join(answer['reasons'])})" if answer.get("reasons") else words
    return word_answer(stage, answer)
