"""The items of a review, each a question: those of the set, and those that follow from answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import stream
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.database import items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import STAGES, ReviewPlan

Payload = Mapping[str, Any]

BLOCK = 100  # anchors whose pairs are forecast together: what a forecast costs grows as their cube


@dataclass(frozen=True)
class Item:
    """An item; `key` names it within its stage, `unit` is its anchor or image.

    `block`: the items that are forecast together, where pairs are spared.
    """

    stage: str
    key: str
    unit: str
    payload: Payload
    state: str = "open"
    not_for: int | None = None
    block: str | None = None


def add_set_items(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> int:
    """How many items of a set were not there yet; they are added.

    Pairs wait for their anchor where anchors are reviewed, and boxes for their objects. A frame
    across a scene cut from its anchor is no pair, unless the plan asks for it. Items of which the
    plan knows the answer become gold questions.
    """
    known = {tuple(row) for row in connection.execute(select(items.c.stage, items.c.key))}
    new = [item for item in list_set_items(folder, plan) if (item.stage, item.key) not in known]
    add_items(connection, new, plan)
    for stage, answers in plan.gold.answers.items():
        if stage not in plan.votes:
            raise unknown("stage of the gold questions", stage, plan.votes)
        for key, answer in answers.items():
            set_gold(connection, stage, key, STAGES[stage].check(answer, folder.class_names))
    return len(new)


def list_set_items(folder: SetFolder, plan: ReviewPlan) -> Iterator[Item]:
    """The items with which a review begins."""
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
                anchor = {**facts, "image": row["image"], **_describe_duplicate(row, anchors)}
                yield Item("anchors", group, group, anchor, block=block)
        elif "pairs" in plan.votes and (plan.across_cuts or not row["across_cut"]):
            images = {"anchor": anchors[row["group"]]["image"], "image": row["image"]}
            pair = {**facts, **images, "offset": row["offset"]}
            if block is not None:
                pair |= {key: row[key] for key in ("frame", "across_cut")}
            state = "waiting" if "anchors" in plan.votes or block is not None else "open"
            yield Item("pairs", row["id"], group, pair, state, block=block)
    yield from _list_box_items(folder.boxes.to_pylist(), plan)


def _describe_duplicate(row: Payload, anchors: Mapping[str, Payload]) -> Payload:
    """The earlier anchor that an anchor nearly equals, for its reviewers to see."""
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
    for row in rows:
        by_image.setdefault(row["image"], []).append(row)
        box = [row[corner] for corner in ("x0", "y0", "x1", "y1")]
        if "classification" in plan.votes:
            suggestion = {"image": row["image"], "box": box, "label": row["label"]}
            yield Item("classification", row["id"], row["image"], suggestion)
    for image, own in by_image.items():
        if "boxes" in plan.votes:
            suggested = [
                {"box": [row[c] for c in ("x0", "y0", "x1", "y1")], "label": row["label"]}
                for row in own
            ]
            drawing = {"image": image, "boxes": suggested, "of": [row["id"] for row in own]}
            state = "waiting" if "classification" in plan.votes else "open"
            yield Item("boxes", image, image, drawing, state)


def add_items(connection: Connection, new: Sequence[Item], plan: ReviewPlan) -> None:
    """Adds items, each at a place of its own in the random order of its stage.

    The place depends on the plan's seed, the stage and the key alone, so that the neighbours of
    an anchor are not seen one after the other (change blindness).
    """
    everybody = reviewers.count_reviewers(connection)
    rows = [
        {
            "stage": item.stage,
            "key": item.key,
            "unit": item.unit,
            "payload": dict(item.payload),
            "gold": None,
            "position": int(stream(plan.seed, item.stage, item.key).integers(2**31)),
            "needed": plan.votes[item.stage] or max(everybody, 1),
            "assigned": 0,
            "decided": 0,
            "state": item.state,
            "not_for": item.not_for,
            "block": item.block,
        }
        for item in new
    ]
    if rows:
        connection.execute(insert(items), rows)


def move_items(connection: Connection, stage: str, unit: str, states: tuple[str, str]) -> None:
    """Moves the items of a unit from one state to another; those in neither are left alone."""
    movable = (items.c.stage == stage) & (items.c.unit == unit) & (items.c.state == states[0])
    connection.execute(update(items).where(movable).values(state=states[1]))


def open_item(connection: Connection, item: Item, plan: ReviewPlan) -> None:
    """Opens an item, adding it where it is not there; one that is open or done stays so."""
    same = (items.c.stage == item.stage) & (items.c.key == item.key)
    state = connection.execute(select(items.c.state).where(same)).scalar()
    if state is None:
        add_items(connection, [item], plan)
    elif state in ("withdrawn", "waiting"):
        values = {"state": "open", "payload": dict(item.payload), "not_for": item.not_for}
        connection.execute(update(items).where(same).values(**values))


def set_gold(connection: Connection, stage: str, key: str, answer: Mapping[str, Any]) -> int:
    """The id of an item, made a gold question: everybody is asked, `answer` is what holds of it.

    Raises `UsageError` for a key that the stage does not have.
    """
    same = (items.c.stage == stage) & (items.c.key == key)
    item = connection.execute(select(items.c.id).where(same)).scalar()
    if item is None:
        raise UsageError(
            f"no item '{key}' in the stage {stage}; give an id of the set that is reviewed (no "
            "neighbour across a scene cut)"
        )
    change = update(items).where(items.c.id == item)
    connection.execute(change.values(gold=dict(answer), state="open"))
    return int(item)
