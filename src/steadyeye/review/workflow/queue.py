"""The items of a review, each a question, and the queue from which each reviewer gets them.

Items come from the set, or follow from answers.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, text, update

from steadyeye.core.errors import unknown
from steadyeye.core.seeds import stream
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.database import added_sets, assignments, decisions, items
from steadyeye.review.protocol import counts
from steadyeye.review.protocol.objects import describe_object, hide_source
from steadyeye.review.protocol.reviewers import Reviewer, count_reviewers, lock_reviewer
from steadyeye.review.protocol.stages import DRAWN, Answer, ReviewPlan, list_gold
from steadyeye.review.protocol.votes import find_standing
from steadyeye.review.workflow.assignments import (
    NEW_AFTER,
    NEW_BEFORE,
    NEW_FREE,
    NEW_GOLD,
    are_late,
    assign_item,
    count_free,
    release_items,
)
from steadyeye.review.workflow.quality import set_gold
from steadyeye.review.workflow.same_set import check_same_set, make_fingerprint, was_added
from steadyeye.review.workflow.sequences import find_videos, prefer_video

Payload = Mapping[str, Any]

_MOVE = update(items).where(
    items.c.stage == bindparam("of"),
    items.c.unit == bindparam("below"),
    items.c.state == bindparam("before"),
)
_CLOSE = (
    update(items)
    .where(items.c.stage == bindparam("of"), items.c.key == bindparam("named"))
    .where(items.c.state.in_(("open", "waiting")))
    .values(state="withdrawn")
)
_UNANSWERED = (
    select(assignments.c.id, assignments.c.nonce, assignments.c.item)
    .where(assignments.c.reviewer == bindparam("reviewer"))
    .where(~assignments.c.answered, ~assignments.c.released)
    .order_by(assignments.c.id)
)
_LAST_PLACE = (
    select(assignments.c.position)
    .where(assignments.c.reviewer == bindparam("reviewer"))
    .where(assignments.c.stage == bindparam("stage"))
    .order_by(assignments.c.id.desc())
    .limit(1)
)

BLOCK = 100  # anchors whose pairs are forecast together: what a forecast costs grows as their cube


@dataclass(frozen=True)
class Item:
    """An item; `key` names it within its stage, `unit` is its anchor or image.

    `parent`: the decision on that. `block`: the items that are predicted together, if pairs are
    spared. `position`: in the order in which items are served; None: at random.
    """

    stage: str
    key: str
    unit: str
    payload: Payload
    parent: str = "accepted"
    state: str = "open"
    not_for: int | None = None
    block: str | None = None
    position: int | None = None


def add_set_items(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> int:
    """Adds the missing items of a set; returns how many.

    Pairs wait for their anchor where anchors are reviewed, and boxes for their objects. A frame
    across a scene cut from its anchor is no pair, unless the plan asks for it. Items with a known
    answer in the plan become gold questions. If the set and the plan were added before, nothing
    else is read. Raises `UsageError` where the database holds the review of another set.
    """
    if was_added(connection, folder, plan):
        return 0
    check_same_set(connection, folder, plan)
    known = {tuple(row) for row in connection.execute(select(items.c.stage, items.c.key))}
    new = [item for item in list_set_items(folder, plan) if (item.stage, item.key) not in known]
    add_items(connection, new, plan)
    for stage, key, answer in list_gold(plan.gold, folder.class_names):
        set_gold(connection, stage, key, answer)
    skip_pairs.advance_all(connection, plan)
    connection.execute(insert(added_sets).values(fingerprint=make_fingerprint(folder, plan)))
    counts.compact_counts(connection)
    if connection.dialect.name == "postgresql":
        # else planned as for a few rows, until autovacuum comes by; SQLite plans by the schema
        connection.execute(text("ANALYZE items"))
    return len(new)


def list_set_items(folder: SetFolder, plan: ReviewPlan) -> Iterator[Item]:
    """The first items of a review."""
    names = folder.class_names
    frames = folder.frames.to_pylist()
    anchors = {row["group"]: row for row in frames if row["offset"] == 0}
    blocks = (
        _number_blocks(list(anchors.values())) if plan.shortcut and "pairs" in plan.votes else {}
    )
    for row in frames:
        labels = [names[label] for label in row["labels"]]
        facts = {"labels": labels, "video": row["video"], "seconds": row["seconds"]}
        group, block = row["group"], blocks.get(row["group"])
        if row["offset"] == 0:
            if "anchors" in plan.votes:
                place = {"frame": row["frame"], "image": row["image"]}
                anchor = {**facts, **place, **_describe_duplicate(row, anchors)}
                yield Item("anchors", group, group, anchor, block=block)
        elif "pairs" in plan.votes and (plan.across_cuts or not row["across_cut"]):
            images = {"anchor": anchors[row["group"]]["image"], "image": row["image"]}
            pair = {**facts, **images, "offset": row["offset"]}
            if block is not None:
                pair |= {key: row[key] for key in ("frame", "across_cut")}
            parent = "undecided" if "anchors" in plan.votes else "accepted"
            state = "waiting" if "anchors" in plan.votes or block is not None else "open"
            yield Item("pairs", row["id"], group, pair, parent, state, block=block)
    yield from _list_box_items(folder.boxes.to_pylist(), plan)


def _describe_duplicate(row: Payload, anchors: Mapping[str, Payload]) -> Payload:
    """The earlier anchor that an anchor nearly equals, for its reviewers."""
    earlier = anchors.get(row["duplicate_of"])
    if earlier is None:
        return {}
    return {"duplicate_of": earlier["group"], "duplicate_image": earlier["image"]}


def _number_blocks(anchors: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Group → block: anchors of one video that follow each other."""
    by_video: dict[str, list[Mapping[str, Any]]] = {}
    for row in anchors:
        by_video.setdefault(row["video"], []).append(row)
    return {
        row["group"]: f"{video}/{number // BLOCK}"
        for video, rows in by_video.items()
        for number, row in enumerate(sorted(rows, key=lambda row: (row["frame"], row["group"])))
    }


def _list_box_items(rows: Sequence[Mapping[str, Any]], plan: ReviewPlan) -> Iterator[Item]:
    by_image: dict[str, list[Mapping[str, Any]]] = {}
    places = find_videos({row["image"]: row["name"] for row in rows}, plan.key_frames)
    for row in rows:
        by_image.setdefault(row["image"], []).append(row)
        if "classification" in plan.votes:
            suggestion = describe_object(row, plan.seed)
            yield Item("classification", row["id"], row["image"], suggestion)
    for image, own in by_image.items():
        if "boxes" in plan.votes:
            suggested = [
                {"box": [row[c] for c in ("x0", "y0", "x1", "y1")], "label": row["label"]}
                for row in own
            ]
            drawing: dict[str, Any] = {
                "image": image,
                "boxes": suggested,
                "rejected": [],
            }
            if image in places:
                drawing["sequence"] = asdict(places[image])
            state = "waiting" if "classification" in plan.votes else "open"
            yield Item("boxes", image, image, drawing, state=state)


def add_items(connection: Connection, new: Sequence[Item], plan: ReviewPlan) -> None:
    """Adds items, each at its position or at a random one in its stage.

    A random position depends only on the plan's seed, the stage and the key, so that reviewers do
    not see the neighbours of an anchor one after the other (change blindness). Frames of a video
    follow each other if the plan asks for it.
    """
    everybody = count_reviewers(connection)
    rows = [
        {
            "stage": item.stage,
            "key": item.key,
            "unit": item.unit,
            "payload": dict(item.payload),
            "gold": None,
            "position": _place_item(item, plan.seed) if item.position is None else item.position,
            "needed": plan.votes[item.stage] or max(everybody, 1),
            "assigned": 0,
            "decided": 0,
            "state": item.state,
            "parent": item.parent,
            "not_for": item.not_for,
            "block": item.block,
            "sequence": item.payload.get("sequence", {}).get("name"),
        }
        for item in new
    ]
    if rows:
        connection.execute(insert(items), rows)


def _place_item(item: Item, seed: int) -> int:
    sequence = item.payload.get("sequence")
    if sequence is None:
        return int(stream(seed, item.stage, item.key).integers(2**31))
    # two videos at one place do not mix: who draws in one goes on in it
    start = int(stream(seed, item.stage, sequence["name"]).integers(2**15))
    return start * 2**16 + min(int(sequence["turn"]), 2**16 - 1)


def move_items(connection: Connection, stage: str, unit: str, states: tuple[str, str]) -> None:
    """Moves the items of a unit from one state to another; other items are unchanged."""
    change = {"of": stage, "below": unit, "before": states[0], "state": states[1]}
    connection.execute(_MOVE, change)


def open_item(connection: Connection, item: Item, plan: ReviewPlan) -> None:
    """Opens an item and adds it if it is missing; an open or done item is unchanged."""
    same = (items.c.stage == item.stage) & (items.c.key == item.key)
    state = connection.execute(select(items.c.state).where(same)).scalar()
    if state is None:
        add_items(connection, [item], plan)
    elif state in ("withdrawn", "waiting"):
        values = {"state": item.state, "payload": dict(item.payload), "not_for": item.not_for}
        connection.execute(update(items).where(same).values(**values))


def close_item(connection: Connection, stage: str, key: str) -> None:
    """Withdraws an item that needs no decision any more; a done item is unchanged."""
    connection.execute(_CLOSE, {"of": stage, "named": key})


@dataclass(frozen=True)
class ServedItem:
    """An item assigned to a reviewer; the answer must contain `nonce`.

    `replaces`: the reviewer's decision that an answer replaces, or None.
    """

    assignment: int
    nonce: str
    stage: str
    payload: Mapping[str, Any]
    replaces: int | None = None


def serve_items(
    connection: Connection,
    plan: ReviewPlan,
    reviewer: Reviewer,
    stage: str,
    most: int = 2,
    *,
    lacks: Callable[[Payload], bool] = lambda payload: False,
) -> list[ServedItem]:
    """Up to `most` items for a reviewer: first the assigned ones without an answer.

    A paused reviewer gets none. An item that they did not answer in time is theirs to answer again
    while others have not. What `lacks` says cannot be shown is kept for later.
    """
    if stage not in plan.votes:
        raise unknown("stage", stage, plan.votes)
    lock_reviewer(connection, reviewer)
    if reviewer.paused:
        return []
    unanswered = _list_unanswered(connection, reviewer, stage)
    served = [item for item in unanswered if not lacks(item.payload)][:most]
    assignment_ids = {item.assignment for item in unanswered}
    while len(served) < most:
        row = _pick(connection, plan, reviewer, stage)
        if row is None:
            break
        assignment, nonce = assign_item(connection, row.id, reviewer)
        if assignment in assignment_ids:
            break  # where the plan gives no time, it is late already
        assignment_ids.add(assignment)
        if not lacks(row.payload):
            served.append(ServedItem(assignment, nonce, row.stage, hide_source(row.payload)))
    return served


def _list_unanswered(connection: Connection, reviewer: Reviewer, stage: str) -> list[ServedItem]:
    # in two steps: few are open, whatever a database's planner believes of a table that has grown
    assigned = connection.execute(_UNANSWERED, {"reviewer": reviewer.id}).all()
    query = select(items.c.id, items.c.stage, items.c.payload).where(
        items.c.id.in_([row.item for row in assigned]),
        items.c.stage == stage,
        items.c.state.in_(("open", "done")),
    )
    known = {row.id: row for row in connection.execute(query)} if assigned else {}
    return [
        ServedItem(row.id, row.nonce, known[row.item].stage, hide_source(known[row.item].payload))
        for row in assigned
        if row.item in known
    ]


def _pick(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> Any:
    """The next item of a reviewer, a row of `items`; None if no item waits."""
    if _is_gold_turn(connection, plan, reviewer, stage):
        gold = connection.execute(NEW_GOLD, {"reviewer": reviewer.id, "stage": stage}).first()
        if gold:
            return gold
    late = (assignments.c.stage == stage, *are_late(plan.minutes))
    if plan.key_frames or stage == "labels":
        # who takes a video over begins where it was left; a study waits for the first set of all
        release_items(connection, *late)
    row = _find_free(connection, plan, reviewer, stage)
    if row is None and release_items(connection, *late):
        row = _find_free(connection, plan, reviewer, stage)
    return row


def _is_gold_turn(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> bool:
    # drawn for each place in the reviewer's own queue: nobody can count to the next one
    own = counts.read_reviewer_counts(connection, reviewer.id)
    place = sum(n for (_, kind), n in own.items() if kind == "given")
    digest = hashlib.sha256(f"{plan.seed}/{reviewer.id}/{stage}/{place}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % plan.gold.every == 0


def _find_free(connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str) -> Any:
    """The first free item after the last one assigned to a reviewer; otherwise one before it.

    Most of their own items are before it, and are not searched again.
    """
    who = {"reviewer": reviewer.id, "stage": stage}
    if plan.key_frames:
        query = prefer_video(connection, plan, reviewer, stage, NEW_FREE)
        return connection.execute(query, who).first()
    place = connection.execute(_LAST_PLACE, who).scalar()
    if place is None or stage == "labels":  # where the order of the study counts
        return connection.execute(NEW_FREE, who).first()
    row = connection.execute(NEW_AFTER, {**who, "place": place}).first()
    if row is None and count_free(connection, reviewer).get(stage):
        row = connection.execute(NEW_BEFORE, {**who, "place": place}).first()
    return row


def serve_again(
    connection: Connection, reviewer: Reviewer, stage: str, decision: int
) -> ServedItem | None:
    """The item of a decision, with the answer that stands; the next answer `replaces` it.

    None if the decision is not the reviewer's, does not stand, or its item is not open to them.
    """
    row = connection.execute(
        select(decisions.c.answer, items.c.stage, items.c.payload, items.c.state, items.c.id)
        .join(items, items.c.id == decisions.c.item)
        .where(decisions.c.id == decision, decisions.c.reviewer == reviewer.id)
    ).one_or_none()
    if row is None or row.stage != stage or row.state not in ("open", "done") or reviewer.paused:
        return None
    standing = find_standing(connection, row.id, reviewer.id)
    if standing is None or standing.id != decision:
        return None
    own = (assignments.c.item == row.id) & (assignments.c.reviewer == reviewer.id)
    assignment = connection.execute(select(assignments).where(own)).one_or_none()
    if assignment is None:
        return None
    payload = _show_answer(stage, hide_source(row.payload), row.answer)
    return ServedItem(assignment.id, assignment.nonce, stage, payload, decision)


def _show_answer(stage: str, payload: Mapping[str, Any], answer: Answer) -> Mapping[str, Any]:
    """The question, with the labels or boxes of the answer."""
    if stage in DRAWN:
        return {**payload, "boxes": answer["boxes"]}
    if stage == "anchors" and answer["labels"]:
        return {**payload, "labels": answer["labels"]}
    if stage == "labels":
        return {**payload, "answer": answer}
    return payload
