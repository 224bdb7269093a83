"""Exchanges decisions with other tools: writes those of a review, and imports those of the tool.

Imported decisions are append-only, like those made in the review.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, update

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.database import assignments, decisions, items, reviewers
from steadyeye.review.protocol import reviewers as people
from steadyeye.review.protocol.counts import compact_counts
from steadyeye.review.protocol.drawn_boxes import drop_rejected
from steadyeye.review.protocol.objects import CRITERIA
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import DRAWN, STAGES, list_labels
from steadyeye.review.protocol.votes import STANDS, add_decisions, find_standing
from steadyeye.review.workflow.assignments import assign_item, count_assigned
from steadyeye.review.workflow.decisions import Rules, refresh_item
from steadyeye.review.workflow.quality import judge_reviewer


@dataclass(frozen=True)
class StandingDecision:
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
    decisions: Sequence[StandingDecision]


def list_answered(connection: Connection, stage: str) -> Sequence[AnsweredItem]:
    """The open and done items of a stage, in their random order."""
    by_item: dict[int, list[StandingDecision]] = {}
    for row in connection.execute(
        select(decisions, reviewers.c.name)
        .join(reviewers, reviewers.c.id == decisions.c.reviewer)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.stage == stage, STANDS)
        .order_by(decisions.c.id)
    ):
        facts = (row.id, row.reviewer, row.name, row.answer, row.comment, row.seconds, row.made_at)
        by_item.setdefault(row.item, []).append(StandingDecision(*facts))
    rows = connection.execute(
        select(items)
        .where(items.c.stage == stage, items.c.state.in_(("open", "done")))
        .order_by(items.c.position, items.c.id)
    )
    return [_build_answered(stage, row, by_item.get(row.id, ())) for row in rows]


def _build_answered(stage: str, row: Any, standing: Sequence[StandingDecision]) -> AnsweredItem:
    """An item with its decisions; drawn boxes of rejected objects are left out."""
    if stage in DRAWN:
        rejected = row.payload["rejected"]
        standing = [
            replace(d, answer={**d.answer, "boxes": drop_rejected(d.answer["boxes"], rejected)})
            for d in standing
        ]
    return AnsweredItem(stage, row.key, row.payload, standing)


FORMS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "anchors": {"quality": ("good", "unsure", "bad")},
    "pairs": {"correct": ("yes", "no", "unsure"), "similar": ("yes", "no", "unsure")},
    "joint": {"correct": ("yes", "no", "unsure"), "similar": ("yes", "no", "unsure")},
    "classification": dict.fromkeys(CRITERIA, ("yes", "no")),
    "boxes": {},
    "box_check": {},
}
"""Stage → question → what may be chosen, one of each."""


TEXTS: Mapping[str, Sequence[str]] = {"classification": ("object",)}
"""Stage → the questions that are answered in words."""

ASKED = {"object": "What is in the box? Name its class, or write: cannot tell"}
"""Question that is answered in words → what is asked."""

SHAPED = ("classification", *DRAWN)
"""The stages whose pictures have boxes."""

OBJECT = "object"
"""The label of the box that a question is about, because its class is the question."""

CANNOT_TELL = "cannot tell"
"""What is written where the class of an object cannot be told."""


def to_choices(stage: str, answer: Mapping[str, Any]) -> Mapping[str, str]:
    """Question → choice of an answer; unanswered questions are left out."""
    words = {True: "yes", False: "no"}
    return {name: words.get(answer[name], answer[name]) for name in FORMS[stage] if name in answer}


def to_texts(stage: str, answer: Mapping[str, Any]) -> Mapping[str, str]:
    """Question → words of an answer."""
    return {name: answer[name] or CANNOT_TELL for name in TEXTS.get(stage, ())}


def from_choices(stage: str, choices: Mapping[str, str]) -> Mapping[str, Any]:
    """The part of an answer made of choices and texts; `check` refuses invalid ones."""
    if stage == "classification":
        words = {"yes": True, "no": False, CANNOT_TELL: None}
        return {name: words.get(choice, choice) for name, choice in choices.items()}
    return dict(choices)


def list_shape_labels(stage: str, classes: Sequence[str]) -> Sequence[str]:
    """The labels that shapes may have in a stage; the object of a question has none of its own."""
    return (OBJECT,) if stage == "classification" else list_labels(stage, classes)


def list_shapes(row: "AnsweredItem") -> Sequence[Mapping[str, Any]]:
    """The boxes that an item shows: suggestions, or the object that is asked about."""
    if "box" in row.payload:
        return [{"box": row.payload["box"], "label": OBJECT}]
    return list(row.payload.get("boxes", ()))


MOVED = 1.0
"""Pixels by which a corner is moved, and not rounded by a tool."""


def take_boxes(
    folder: SetFolder, stage: str, key: str, boxes: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The part of an answer made of the boxes on its picture: none where none were to be drawn.

    Raises `UsageError` if the box of the object that was asked about was moved, or another drawn.
    """
    if stage in DRAWN:
        return {"boxes": list(boxes)}
    if len(boxes) > 1:
        raise UsageError(f"it has {len(boxes)} boxes, but asks about one object; delete the others")
    row = folder.objects.get(key)
    if row is None or not boxes:
        return {}  # an unknown item is refused with all others
    before, after = [row[corner] for corner in ("x0", "y0", "x1", "y1")], boxes[0]["box"]
    if max(abs(a - b) for a, b in zip(before, after, strict=True)) > MOVED:
        was, now = (", ".join(f"{v:.0f}" for v in corners) for corners in (before, after))
        raise UsageError(
            f"its box was moved from ({was}) to ({now}), but it asks about the object in the "
            "first; move it back, boxes are corrected in the stage boxes"
        )
    return {}


@dataclass(frozen=True)
class Annotation:
    """An answer given in another tool.

    `identity`: names this annotation, and this version of it, within the tool. `where`: how an
    error names it. `seconds`: 0 where the tool does not say; `made_at`: None where it does not.
    """

    stage: str
    key: str
    annotator: str
    answer: Mapping[str, Any]
    identity: str
    where: str
    comment: str = ""
    seconds: float = 0.0
    made_at: float | None = None


ROUNDING = 1e-3
"""Seconds by which the time of a decision may become earlier as a file rounds it."""


@dataclass(frozen=True)
class Annotations:
    """The annotations in a file. `skipped`: why → how many of its entries hold no answer."""

    path: Path
    answers: Sequence[Annotation]
    skipped: Mapping[str, int] = field(default_factory=dict)


def import_annotations(
    connection: Connection, rules: Rules, annotations: Annotations, prefix: str = ""
) -> Mapping[str, int]:
    """Imports annotations as decisions, all or none; returns the counts of the results.

    Annotators become reviewers named `prefix` + their name; new ones are added with links that
    nobody knows. An annotation adds nothing if it was imported before, equals the standing answer,
    or is older. Raises `UsageError` with the number and the first of those that name unknown items,
    are not allowed, or are by a reviewer who may not give them.
    """
    names = sorted({prefix + annotation.annotator for annotation in annotations.answers})
    annotators = _add_annotators(connection, names, rules.plan.joint)
    counts = Counter({"decisions": 0, "there_already": 0, "older_than_stored": 0})
    faults: list[str] = []
    for stage in STAGES:
        columns = (items.c.id, items.c.stage, items.c.key, items.c.state, items.c.not_for)
        rows = {(row.stage, row.key): row for row in connection.execute(select(*columns))}
        own = [annotation for annotation in annotations.answers if annotation.stage == stage]
        changed = set()
        for annotation in sorted(own, key=lambda annotation: annotation.made_at or 0.0):
            reviewer = annotators[prefix + annotation.annotator]
            row = rows.get((stage, annotation.key))
            try:
                result, item = _import_annotation(connection, rules, reviewer, annotation, row)
            except UsageError as error:
                faults.append(f"{annotation.where}: {error}")
                continue
            counts[result] += 1
            changed.add(item)
        for item in sorted(changed):
            refresh_item(connection, item, rules.plan)
    stray = [a.where for a in annotations.answers if a.stage not in STAGES]
    faults += [f"{where}: its stage is unknown" for where in stray]
    if faults:
        many = number_of(len(faults), "annotation")
        raise UsageError(f"'{annotations.path}': {many} cannot be taken, first {faults[0]}")
    compact_counts(connection)
    for reviewer in annotators.values():
        judge_reviewer(connection, reviewer, rules.plan.gold)
    return {**counts, **annotations.skipped}


def _add_annotators(
    connection: Connection, names: Sequence[str], joint: Sequence[str]
) -> Mapping[str, Reviewer]:
    stored_names = {name: people.clean_name(name) for name in names}
    known = {person.name for person in people.list_reviewers(connection)}
    for name in stored_names.values():
        if name not in known:
            people.add_reviewer(connection, name, joint=joint)
            known.add(name)
    by_name = {person.name: person for person in people.list_reviewers(connection)}
    annotators = {name: by_name[stored] for name, stored in stored_names.items()}
    for name, person in annotators.items():
        if person.admin:
            raise UsageError(
                f"'{name}' is the admin of this review; give --reviewer-prefix to import under "
                "another name"
            )
        if person.paused:
            raise UsageError(f"{name} is paused: {person.paused}; let them continue first")
        people.lock_reviewer(connection, person)
    return annotators


def _import_annotation(
    connection: Connection, rules: Rules, reviewer: Reviewer, annotation: Annotation, row: Any
) -> tuple[str, int]:
    """Imports an annotation; returns its kind of count and its item. `row`: None if unknown."""
    if row is None:
        raise UsageError(f"this set has no '{annotation.key}' in the stage {annotation.stage}")
    if row.state in ("waiting", "withdrawn"):
        raise UsageError(f"'{annotation.key}' is not open in the stage {annotation.stage}")
    if row.not_for == reviewer.id:
        raise UsageError(f"{reviewer.name} drew these boxes; another reviewer must decide")
    # PostgreSQL: whoever decides the same item meanwhile waits
    people.lock_unit(connection, row.id)
    connection.execute(select(items.c.id).where(items.c.id == row.id).with_for_update())
    answer = dict(STAGES[annotation.stage].check(annotation.answer, rules.classes))
    parts = [annotation.identity, annotation.stage, annotation.key, reviewer.name, answer]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if connection.execute(select(decisions.c.id).where(decisions.c.key == key)).first():
        return "there_already", row.id
    standing = find_standing(connection, row.id, reviewer.id)
    if standing is not None:
        if standing.answer == answer:
            return "there_already", row.id
        if annotation.made_at is not None and annotation.made_at < standing.made_at - ROUNDING:
            return "older_than_stored", row.id
    _mark_answered(connection, row.id, reviewer)
    values = {
        "item": row.id,
        "reviewer": reviewer.id,
        "key": key,
        "kind": "answer",
        "answer": answer,
        "comment": annotation.comment,
        "seconds": annotation.seconds,
        "replaces": standing.id if standing is not None else None,
        "made_at": annotation.made_at if annotation.made_at is not None else time.time(),
    }
    add_decisions(connection, [values], rules.version)
    return "decisions", row.id


def _mark_answered(connection: Connection, item: int, reviewer: Reviewer) -> None:
    """Marks an item as assigned to a reviewer and answered, even if it was not assigned to them."""
    own = (assignments.c.item == item) & (assignments.c.reviewer == reviewer.id)
    row = connection.execute(select(assignments).where(own)).one_or_none()
    if row is None:
        assign_item(connection, item, reviewer, answered=True)
        return
    change = update(assignments).where(own)
    connection.execute(change.values(answered=True, released=False))
    if row.released:
        count_assigned(connection, item, 1)
