"""Decisions made elsewhere, taken in: as append-only, and as often, as those made here."""

import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from steadyeye import __version__
from steadyeye.core.errors import UsageError
from steadyeye.review.db.schema import assignments, decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.workflow.decisions import LONGEST, Rules, refresh
from steadyeye.review.workflow.quality import judge


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


@dataclass(frozen=True)
class Annotations:
    """What a file says. `skipped`: why → how many of its entries hold no answer."""

    found: Sequence[Annotation]
    skipped: Mapping[str, int] = field(default_factory=dict)


def admit(
    connection: Connection, rules: Rules, given: Annotations, prefix: str = ""
) -> Mapping[str, int]:
    """Takes annotations as decisions, all or none, and returns counts.

    Annotators become reviewers named `prefix` + their name, and those who are new are added, with
    links that nobody knows. What was taken before adds nothing, and so does an annotation that
    says what stands, or is older. Raises `UsageError` with how many, and the first, that are of
    unknown items, are not allowed, or are not theirs to give.
    """
    rows = _items(connection)
    joint = [stage for stage, votes in rules.plan.votes.items() if votes == 0]
    here = _reviewers(connection, sorted({prefix + each.annotator for each in given.found}), joint)
    counts: Counter[str] = Counter(
        {"decisions": 0, "there_already": 0, "older_than_what_stands": 0}
    )
    wrong: list[str] = []
    for stage in STAGES:
        mine = [each for each in given.found if each.stage == stage]
        touched = set()
        for each in sorted(mine, key=lambda one: one.made_at or 0.0):
            reviewer = here[prefix + each.annotator]
            row = rows.get((stage, each.key))
            try:
                what, item = _import_annotation(connection, rules, reviewer, each, row)
            except UsageError as error:
                wrong.append(f"{each.where}: {error}")
                continue
            counts[what] += 1
            touched.add(item)
        for item in sorted(touched):
            refresh(connection, item, rules.plan)
        rows = _items(connection)
    stray = [e.where for e in given.found if e.stage not in STAGES]
    wrong += [f"{where}: of an unknown stage" for where in stray]
    if wrong:
        raise UsageError(f"{len(wrong):,} annotations cannot be taken, first {wrong[0]}")
    for reviewer in here.values():
        judge(connection, reviewer, rules.plan.gold)
    return {**counts, **given.skipped}


def _items(connection: Connection) -> Mapping[tuple[str, str], Any]:
    columns = (items.c.id, items.c.stage, items.c.key, items.c.state, items.c.not_for)
    return {(row.stage, row.key): row for row in connection.execute(select(*columns))}


def _reviewers(
    connection: Connection, names: Sequence[str], joint: Sequence[str]
) -> Mapping[str, Reviewer]:
    here = {one.name: one for one in reviewers.everyone(connection)}
    for name in names:
        if name not in here:
            reviewers.add(connection, name, joint=joint)
    here = {one.name: one for one in reviewers.everyone(connection)}
    for name in names:
        if here[name].admin:
            raise UsageError(f"'{name}' is the admin here; give --reviewer-prefix")
        if here[name].paused:
            raise UsageError(f"{name} is paused: {here[name].paused}; let them continue first")
        reviewers.alone(connection, here[name])
    return {name: here[name] for name in names}


def _import_annotation(
    connection: Connection, rules: Rules, reviewer: Reviewer, given: Annotation, row: Any
) -> tuple[str, int]:
    """What became of an annotation, and the item it is of."""
    if row is None:
        raise UsageError(f"this set has no '{given.key}' in the stage {given.stage}")
    if row.state in ("waiting", "withdrawn"):
        raise UsageError(f"'{given.key}' is not open in the stage {given.stage}")
    if row.not_for == reviewer.id:
        raise UsageError(f"{reviewer.name} drew these boxes; another reviewer must decide")
    # PostgreSQL: whoever decides the same item meanwhile waits
    connection.execute(select(items.c.id).where(items.c.id == row.id).with_for_update())
    answer = dict(STAGES[given.stage].check(given.answer, rules.classes))
    key = _key(given, reviewer, answer)
    if connection.execute(select(decisions.c.id).where(decisions.c.key == key)).first():
        return "there_already", row.id
    before = _standing(connection, row.id, reviewer)
    if before is not None and before.kind != "undo":
        if before.answer == answer:
            return "there_already", row.id
        if given.made_at is not None and given.made_at < before.made_at:
            return "older_than_what_stands", row.id
    _assign(connection, row.id, reviewer)
    connection.execute(
        insert(decisions).values(
            item=row.id,
            reviewer=reviewer.id,
            key=key,
            kind="answer",
            answer=answer,
            comment=given.comment[:2000],
            seconds=min(max(given.seconds, 0.0), LONGEST) if isfinite(given.seconds) else 0.0,
            replaces=before.id if before is not None and before.kind != "undo" else None,
            version=f"steadyeye {__version__}, set {rules.version}",
            made_at=given.made_at if given.made_at is not None else time.time(),
        )
    )
    return "decisions", row.id


def _key(given: Annotation, reviewer: Reviewer, answer: Mapping[str, Any]) -> str:
    said = [given.identity, given.stage, given.key, reviewer.name, answer]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _standing(connection: Connection, item: int, reviewer: Reviewer) -> Any:
    mine = (decisions.c.item == item) & (decisions.c.reviewer == reviewer.id)
    last = select(func.max(decisions.c.id)).where(mine).scalar_subquery()
    return connection.execute(select(decisions).where(decisions.c.id == last)).one_or_none()


def _assign(connection: Connection, item: int, reviewer: Reviewer) -> None:
    """Marks an item as given to a reviewer and answered, whether or not it was given to them."""
    mine = (assignments.c.item == item) & (assignments.c.reviewer == reviewer.id)
    row = connection.execute(select(assignments).where(mine)).one_or_none()
    if row is None:
        said = {"nonce": secrets.token_hex(16), "made_at": time.time()}
        given = {"item": item, "reviewer": reviewer.id, "answered": True, "released": False}
        connection.execute(insert(assignments).values(**said, **given))
    else:
        change = update(assignments).where(mine)
        connection.execute(change.values(answered=True, released=False))
    if row is None or row.released:
        more = update(items).where(items.c.id == item)
        connection.execute(more.values(assigned=items.c.assigned + 1))
