"""The stages of a review: what is asked in each, what an answer may be, and when it is settled.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Sections 2.1 and 3.4 (anchors,
pairs, joint verification); Lau et al., "Natural Adversarial Objects", 2021, Section 3
(classification with five annotators, boxes drawn by one and decided by a second).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from steadyeye.core.errors import UsageError, unknown
from steadyeye.data.annotations.coco_images import OUTSIDE
from steadyeye.review.db.schema import decisions, items

Answer: TypeAlias = Mapping[str, Any]

REASONS = ("motion", "background", "blur", "feature", "other")
"""Why a neighbour does not show the same; `feature`: something distinctive seen in only one."""

FLAWS = ("blurry", "occluded", "depiction")

DRAWN = ("boxes", "box_check")
"""The stages in which boxes are drawn."""


@dataclass(frozen=True)
class Outcome:
    """What a stage found of an item.

    `accepted`: None while it is undecided. `answer`: what holds where it is accepted: labels,
    boxes. `reason`: why it is not accepted.
    """

    accepted: bool | None
    answer: Answer
    reason: str = ""


@dataclass(frozen=True)
class Stage:
    """A stage. `votes`: reviewers an item needs, 0: all of them.

    `title`, `question`: what the reviewer reads. `check`: the answer, tidied; raises `UsageError`.
    `settle`: the outcome of the answers to an item, once there are enough.
    """

    name: str
    title: str
    question: str
    votes: int
    check: Callable[[Answer, Sequence[str]], Answer]
    settle: Callable[[Sequence[Answer]], Outcome]


def majority(votes: Sequence[bool]) -> bool:
    """Whether a strict majority says so; a tie does not."""
    return bool(2 * sum(votes) > len(votes))


def _one_of(answer: Answer, key: str, allowed: Sequence[str]) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{key}={value!r}; choose from {', '.join(allowed)}")
    return value


def _labels(answer: Answer, classes: Sequence[str]) -> list[str]:
    labels = answer.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise UsageError("labels must be a list of class names")
    for label in labels:
        if label not in classes:
            raise unknown("class", label, classes)
    return [name for name in classes if name in labels]


def check_anchor(answer: Answer, classes: Sequence[str]) -> Answer:
    """`quality` good, unsure or bad, and the `labels` of what is seen."""
    quality = _one_of(answer, "quality", ("good", "unsure", "bad"))
    labels = _labels(answer, classes)
    if quality == "good" and classes and not labels:
        raise UsageError("a good anchor needs at least one label; choose one or say bad")
    return {"quality": quality, "labels": labels}


def settle_anchor(answers: Sequence[Answer]) -> Outcome:
    """Good by a strict majority; a label stays that a strict majority of those sees."""
    good = [answer for answer in answers if answer["quality"] == "good"]
    if not majority([answer["quality"] == "good" for answer in answers]):
        said = [answer["quality"] for answer in answers]
        return Outcome(False, {}, f"anchor {max(sorted(set(said) - {'good'}), key=said.count)}")
    seen = list(dict.fromkeys(label for answer in good for label in answer["labels"]))
    labels = [label for label in seen if majority([label in a["labels"] for a in good])]
    if seen and not labels:
        return Outcome(False, {}, "anchor: no label has a majority")
    return Outcome(True, {"labels": labels})


def check_pair(answer: Answer, classes: Sequence[str]) -> Answer:
    """`correct` and `similar` yes, no or unsure; where not similar, the `reasons`."""
    tidy: dict[str, Any] = {
        key: _one_of(answer, key, ("yes", "no", "unsure")) for key in ("correct", "similar")
    }
    reasons = answer.get("reasons", [])
    if not isinstance(reasons, list):
        raise UsageError("reasons must be a list")
    for reason in reasons:
        if reason not in REASONS:
            raise unknown("reason", str(reason), REASONS)
    if tidy["similar"] == "no" and not reasons:
        raise UsageError(f"say why it is not similar: {', '.join(REASONS)}")
    return {**tidy, "reasons": [reason for reason in REASONS if reason in reasons]}


def is_doubted(answer: Answer) -> bool:
    """Whether a reviewer called a pair dissimilar, wrongly labelled, or unsure."""
    return not answer["correct"] == answer["similar"] == "yes"


def settle_pair(answers: Sequence[Answer]) -> Outcome:
    """Accepted where nobody doubts it; else all reviewers verify it jointly."""
    doubted = [answer for answer in answers if is_doubted(answer)]
    return Outcome(None, {}, why(doubted)) if doubted else Outcome(True, {})


def settle_joint(answers: Sequence[Answer]) -> Outcome:
    """Similar, and correctly labelled, only by a strict majority of all votes each."""
    similar = majority([answer["similar"] == "yes" for answer in answers])
    correct = majority([answer["correct"] == "yes" for answer in answers])
    if similar and correct:
        return Outcome(True, {})
    return Outcome(False, {}, why([a for a in answers if is_doubted(a)]))


def why(answers: Sequence[Answer]) -> str:
    """The doubts of several answers in words, the commonest first."""
    said = [reason for answer in answers for reason in answer["reasons"]]
    said += ["wrong label" for answer in answers if answer["correct"] == "no"]
    said += ["unsure" for answer in answers if "unsure" in (answer["correct"], answer["similar"])]
    return ", ".join(sorted(set(said), key=lambda word: (-said.count(word), word)))


def check_box(answer: Answer, classes: Sequence[str]) -> Answer:
    """Four questions, each true or false: whether the box is well sized, and three flaws."""
    tidy = {key: answer.get(key) for key in ("well_sized", *FLAWS)}
    for key, value in tidy.items():
        if not isinstance(value, bool):
            raise UsageError(f"{key}={value!r}; answer true or false")
    return tidy


def settle_box(answers: Sequence[Answer]) -> Outcome:
    """Kept where a strict majority calls the box well sized, and none calls it flawed."""
    if not majority([answer["well_sized"] for answer in answers]):
        return Outcome(False, {}, "box not well sized")
    flaws = [flaw for flaw in FLAWS if majority([answer[flaw] for answer in answers])]
    return Outcome(not flaws, {}, ", ".join(flaws))


def list_labels(stage: str, classes: Sequence[str]) -> Sequence[str]:
    """What things may be called in a stage: drawn boxes also `ood`, outside the classes."""
    more = stage in DRAWN and OUTSIDE not in classes
    return (*classes, OUTSIDE) if more else classes


def check_boxes(answer: Answer, classes: Sequence[str]) -> Answer:
    """`boxes`: each {box: [x0, y0, x1, y1] in pixels, label}; see `list_labels`."""
    boxes, names = answer.get("boxes"), list_labels("boxes", classes)
    if not isinstance(boxes, list):
        raise UsageError("boxes must be a list")
    return {"boxes": [_box(number, box, names) for number, box in enumerate(boxes, start=1)]}


def _box(number: int, box: Any, classes: Sequence[str]) -> Answer:
    if not isinstance(box, dict) or set(box) != {"box", "label"}:
        raise UsageError(f"box {number} must have a box and a label")
    corners = box["box"]
    if (
        not isinstance(corners, list)
        or len(corners) != 4
        or not all(isinstance(c, int | float) and not isinstance(c, bool) for c in corners)
        or not (0 <= corners[0] < corners[2] < 1e6 and 0 <= corners[1] < corners[3] < 1e6)
    ):
        raise UsageError(f"box {number} is {corners}; give x0 < x1 and y0 < y1 in pixels")
    if box["label"] not in classes:
        raise unknown("class", str(box["label"]), classes)
    return {"box": [round(float(c), 2) for c in corners], "label": box["label"]}


def settle_boxes(answers: Sequence[Answer]) -> Outcome:
    """The last answer stands: the second reviewer decides."""
    return Outcome(True, answers[-1])


STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "anchors",
            "Anchor labels",
            "Does this frame clearly show what its labels say?",
            1,
            check_anchor,
            settle_anchor,
        ),
        Stage(
            "pairs",
            "Pairs",
            "Does the second frame show what the labels say, and look similar to the first?",
            1,
            check_pair,
            settle_pair,
        ),
        Stage(
            "joint",
            "Joint verification",
            "A reviewer doubted this pair. Are its labels right, and are the frames similar?",
            0,
            check_pair,
            settle_joint,
        ),
        Stage(
            "classification",
            "Objects",
            "What is in the box?",
            5,
            check_box,
            settle_box,
        ),
        Stage(
            "boxes",
            "Boxes",
            "Draw a tight box around every object of the listed classes. Mark a suggested object "
            "of none of them as ood (out of distribution).",
            1,
            check_boxes,
            settle_boxes,
        ),
        Stage(
            "box_check",
            "Box check",
            "Correct the boxes that another reviewer drew, then save.",
            1,
            check_boxes,
            settle_boxes,
        ),
    )
}
"""By name, in the order in which a set passes through them."""


Said: TypeAlias = Sequence[tuple[int, Mapping[str, Any]]]
"""(reviewer, answer) of each decision that stands, in the order they were made."""


def votes(
    connection: Connection,
    stage: str | None = None,
    item: int | None = None,
    block: str | None = None,
) -> Mapping[int, Said]:
    """The decisions that stand: the last of each reviewer, unless it takes one back."""
    last = select(func.max(decisions.c.id)).group_by(decisions.c.item, decisions.c.reviewer)
    if item is not None:
        last = last.where(decisions.c.item == item)
    if block is not None:
        last = last.where(decisions.c.item.in_(select(items.c.id).where(items.c.block == block)))
    query = select(decisions.c.item, decisions.c.reviewer, decisions.c.answer).where(
        decisions.c.id.in_(last), decisions.c.kind != "undo"
    )
    if stage is not None:
        query = query.join(items, items.c.id == decisions.c.item).where(items.c.stage == stage)
    found: dict[int, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
    for row in connection.execute(query.order_by(decisions.c.id)):
        found[row.item].append((row.reviewer, row.answer))
    return found


def outcome(row: Any, said: Said) -> Outcome | None:
    """What the decisions that stand make of an item; None while there are too few.

    Of a gold question the known answer stands, whatever was said.
    """
    if row.gold is not None:
        return STAGES["joint" if row.stage == "pairs" else row.stage].settle([row.gold])
    if len(said) < row.needed:
        return None
    return STAGES[row.stage].settle([answer for _, answer in said])


def outcomes(connection: Connection, stage: str) -> Mapping[str, Outcome | None]:
    """Key → outcome of every item of a stage that is or was asked."""
    said = votes(connection, stage=stage)
    rows = connection.execute(select(items).where(items.c.stage == stage).order_by(items.c.id))
    return {row.key: outcome(row, said.get(row.id, ())) for row in rows}
