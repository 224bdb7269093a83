"""Recounts reviewed items from the votes, by the definition of `results/status.py`.

It reads every item and every vote. The counts stored with the decisions, which the pages show, must
equal it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.review_set import UNDECIDED
from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol.counts import (
    SPARED,
    read_item_counts,
    read_pace_counts,
    read_reviewer_counts,
)
from steadyeye.review.protocol.reviewers import Reviewer, list_reviewers
from steadyeye.review.protocol.stages import DRAWN, Outcome, ReviewPlan
from steadyeye.review.protocol.votes import settle_stage
from steadyeye.review.results.verdicts import BoxVerdict
from steadyeye.review.workflow import quality
from steadyeye.review.workflow.assignments import MAY_ANSWER, are_late, count_left
from steadyeye.review.workflow.sequences import find_busy_videos, is_free

Settled: TypeAlias = Mapping[str, Outcome]
"""Key of an item → its outcome, accepted or not."""


def check_counts(connection: Connection, plan: ReviewPlan) -> Sequence[str]:
    """The counts that differ from a recount, each in words; empty if all are right."""
    people = [person for person in list_reviewers(connection) if not person.admin]
    pairs: list[tuple[str, Any, Any]] = [
        ("items", _read_places(connection), recount_items(connection, plan)),
        ("times", _read_paces(connection), _recount_paces(connection)),
    ]
    paces = {pace.id: pace for pace in quality.measure_paces(connection)}
    for person in people:
        marks = quality.list_marks(connection, person.id)
        right = sum(marks), len(marks)
        pairs.append((f"gold questions of {person.name}", paces[person.id].gold, right))
        counted = {key: n for key, n in read_reviewer_counts(connection, person.id).items() if n}
        pairs.append((f"items of {person.name}", counted, _recount_own(connection, person)))
        left = {stage: n for stage, n in count_left(connection, plan, person).items() if n}
        pairs.append((f"left for {person.name}", left, _recount_left(connection, plan, person)))
    return [
        f"{name}: {stored}, but {right} by a recount"
        for name, stored, right in pairs
        if stored != right
    ]


def require_equal_counts(connection: Connection, plan: ReviewPlan) -> None:
    """Raises `UsageError` where the stored counts differ from a recount."""
    if faults := check_counts(connection, plan):
        raise UsageError(
            f"the stored counts differ from a recount: {'; '.join(faults)}; review-export reads "
            "the votes and is right, but the pages are not: something else has changed the "
            "database, so restore a backup of it"
        )


def _read_places(connection: Connection) -> Counter[tuple[str, str, str, bool]]:
    places = Counter[tuple[str, str, str, bool]]()
    for count in read_item_counts(connection):
        reviewed = count.place in ("accepted", "rejected")
        facts = (count.reason, count.changed) if reviewed else ("", False)
        places[count.stage, count.place, *facts] += count.n
    return places


def recount_items(connection: Connection, plan: ReviewPlan) -> Counter[tuple[str, str, str, bool]]:
    """(stage, what it counts as, why it is rejected, whether labels were changed) → items."""
    every = _read_items(connection, plan)
    settled = _find_settled(every, plan)
    places = Counter[tuple[str, str, str, bool]]()
    for row in connection.execute(select(items).where(items.c.stage.in_(plan.votes))):
        outcome = settled[row.stage].get(row.key)
        reason, changed = "", False
        if outcome is None:
            place = _find_place(every, row)
        elif outcome.accepted:
            place = "accepted"
            labels = set(outcome.answer.get("labels", ()))
            changed = row.stage == "anchors" and labels != set(row.payload["labels"])
        else:
            place, reason = "rejected", outcome.reason
        places[row.stage, place, reason, changed] += 1
    return places


def _find_place(every: "_Items", row: Any) -> str:
    """The category of an item that is not reviewed."""
    if row.gold is not None:
        return "gold"
    if row.state == "withdrawn" or row.state in SPARED:
        return "withdrawn" if row.state == "withdrawn" else "spared"
    if row.stage in ("pairs", "joint") and "anchors" in every.outcomes:
        anchor = every.outcomes["anchors"].get(every.unit["pairs"][row.key])
        if anchor is None:
            return "waiting"
        if not anchor.accepted:
            return "moot"
    elif _is_moot(every, row.stage, row.key):
        return "moot"
    return "pending" if row.state == "done" else str(row.state)


def _recount_own(connection: Connection, reviewer: Reviewer) -> Mapping[tuple[str, str], int]:
    own = select(items.c.stage, items.c.state, items.c.gold, items.c.assigned, items.c.needed)
    query = own.add_columns(assignments.c.answered).join(assignments)
    counts = Counter[tuple[str, str]]()
    for row in connection.execute(query.where(assignments.c.reviewer == reviewer.id)):
        counts[row.stage, "given"] += 1
        counts[row.stage, "answered"] += row.answered
        free = row.state == "open" and row.gold is None and row.assigned < row.needed
        counts[row.stage, "free"] += free
    return {key: n for key, n in counts.items() if n}


def _recount_left(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer
) -> Mapping[str, int]:
    """Stage → items that wait for a reviewer: assigned and not answered, or free for them."""
    assigned = (
        select(items.c.stage)
        .join(assignments, assignments.c.item == items.c.id)
        .where(assignments.c.reviewer == reviewer.id, ~assignments.c.answered)
        .where(~assignments.c.released, items.c.state.in_(("open", "done")))
    )
    late = (
        select(func.count())
        .where(assignments.c.item == items.c.id, *are_late(plan.minutes))
        .scalar_subquery()
    )
    stages = list(connection.execute(assigned).scalars())
    for stage in plan.votes:
        free = select(items.c.stage).where(
            *MAY_ANSWER,
            items.c.stage == stage,
            items.c.gold.is_(None),
            items.c.assigned - late < items.c.needed,
            is_free(find_busy_videos(connection, plan, reviewer, stage)),
        )
        stages += connection.execute(free, {"reviewer": reviewer.id}).scalars()
    return Counter(stages)


def _read_paces(connection: Connection) -> Mapping[tuple[int, str], int]:
    return {
        (reviewer, kind): sum(tenths.values())
        for reviewer, by_kind in read_pace_counts(connection).items()
        for kind, tenths in by_kind.items()
    }


def _recount_paces(connection: Connection) -> Mapping[tuple[int, str], int]:
    return Counter(
        (row.reviewer, row.kind)
        for row in connection.execute(select(decisions.c.reviewer, decisions.c.kind))
    )


def list_reviewed_images(
    connection: Connection, plan: ReviewPlan, verdicts: Mapping[str, BoxVerdict]
) -> Sequence[str]:
    """The images of a set of boxes that people decided, not only known answers."""
    settled = _find_settled(_read_items(connection, plan), plan)
    last = "box_check" if "box_check" in plan.votes else "boxes"
    drawn_on = settled.get(last, {})
    query = select(items.c.key, items.c.unit).where(items.c.stage == "classification")
    objects = settled.get("classification", {})
    confirmed = {row.unit for row in connection.execute(query) if row.key in objects}
    return [
        image
        for image, verdict in verdicts.items()
        if verdict.reason != UNDECIDED
        and image in (drawn_on if verdict.accepted and "boxes" in plan.votes else confirmed)
    ]


@dataclass(frozen=True)
class _Items:
    """All items, by stage. `outcomes`: by key. `unit`: key → its anchor or image.

    `answerable`: the keys of those that people are asked about, gold questions left out. `empty`:
    the images all of whose objects are rejected.
    """

    outcomes: Mapping[str, Mapping[str, Outcome | None]]
    unit: Mapping[str, Mapping[str, str]]
    answerable: Mapping[str, Mapping[str, None]]
    empty: frozenset[str]


def _find_settled(every: _Items, plan: ReviewPlan) -> Mapping[str, Settled]:
    """Stage → the reviewed items, for each stage of the plan; see `results/status.py`."""
    return {
        stage: {
            key: outcome
            for key in every.answerable[stage]
            if (outcome := _find_deciding(every, stage, key)) is not None
            and outcome.accepted is not None
            and not _is_moot(every, stage, key)
        }
        for stage in plan.votes
    }


def _read_items(connection: Connection, plan: ReviewPlan) -> _Items:
    unit: dict[str, dict[str, str]] = {stage: {} for stage in plan.votes}
    answerable: dict[str, dict[str, None]] = {stage: {} for stage in plan.votes}
    for row in connection.execute(select(items).order_by(items.c.id)):
        if row.stage in unit:
            unit[row.stage][row.key] = row.unit
            # those that wait or were withdrawn may have been answered before
            if row.gold is None and row.state in ("open", "done"):
                answerable[row.stage][row.key] = None
    outcomes = {stage: settle_stage(connection, stage) for stage in plan.votes}
    rejected: dict[str, list[bool]] = {}
    for key, outcome in outcomes.get("classification", {}).items():
        image = unit["classification"][key]
        rejected.setdefault(image, []).append(outcome is not None and outcome.accepted is False)
    empty = frozenset(image for image, objects in rejected.items() if all(objects))
    return _Items(outcomes, unit, answerable, empty)


def _find_deciding(every: _Items, stage: str, key: str) -> Outcome | None:
    """The outcome that decides an item; for a doubted pair that of its joint verification."""
    pair = every.outcomes.get("pairs", {}).get(key)
    doubted = pair is not None and pair.accepted is None
    if stage == "pairs" and doubted:
        return every.outcomes["joint"].get(key) if key in every.answerable["joint"] else None
    return None if stage == "joint" and not doubted else every.outcomes[stage].get(key)


def _is_moot(every: _Items, stage: str, key: str) -> bool:
    """Whether the decision on an item has no effect any more."""
    if stage in ("pairs", "joint") and "anchors" in every.outcomes:
        anchor = every.outcomes["anchors"].get(every.unit["pairs"][key])
        return not (anchor and anchor.accepted)
    return stage in DRAWN and every.unit[stage][key] in every.empty
