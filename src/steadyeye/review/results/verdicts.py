"""What people made of each frame and each image of a set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.review_set import SCENE_CUT, UNDECIDED, SetFolder
from steadyeye.review.bulk import audit_workflow, skip_pairs
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import Outcome, outcomes

LEFT_OUT = "not asked: those around it are dissimilar"
IN_BULK = "accepted in bulk after an audit"
NO_OBJECT = "none of its objects was accepted"


@dataclass(frozen=True)
class FrameVerdict:
    """What is known of a frame: its labels, and whether it is accepted.

    `reason`: why not, or that nobody was asked.
    """

    labels: Sequence[str]
    accepted: bool
    reason: str


@dataclass(frozen=True)
class BoxVerdict:
    """What is known of an image: the boxes that hold, and whether it is accepted.

    `boxes`: each {box: [x0, y0, x1, y1], label}. `rejected`: suggested box → why it is none.
    `reason`: why the image is not accepted.
    """

    accepted: bool
    reason: str
    boxes: Sequence[Mapping[str, Any]] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)


def verdicts(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> Mapping[str, FrameVerdict]:
    """Frame id → verdict, for every frame of a set.

    A neighbour is accepted where its anchor is and nobody doubted the pair, or the joint
    verification found it similar and correctly labelled by strict majorities. One across a scene
    cut is rejected without asking, unless the plan asks. Of two pairs that show the same, what was
    said of one holds; what is accepted in bulk is so while its audit holds.
    """
    names = folder.classes.names if folder.classes else ()
    anchors = outcomes(connection, "anchors") if "anchors" in plan.votes else None
    pairs = outcomes(connection, "pairs") if "pairs" in plan.votes else None
    joint = outcomes(connection, "joint")
    spared = _find_spared(connection)
    asked = skip_pairs.deciders(connection)
    found = {}
    for row in folder.frames.to_pylist():
        given = [names[label] for label in row["labels"]]
        anchor = anchors.get(row["group"]) if anchors is not None else Outcome(True, {})
        labels = list(anchor.answer.get("labels", given)) if anchor else given
        verdict = _verdict(anchor, labels)
        if row["across_cut"] and not plan.across_cuts:
            verdict = FrameVerdict(labels, False, SCENE_CUT)
        elif row["offset"] != 0 and verdict.accepted and pairs is not None:
            key = asked.get(row["id"], row["id"])
            pair = pairs.get(key)
            if pair is not None and pair.accepted is None:
                pair = joint.get(key)
            verdict = _verdict(spared.get(key, pair), labels)
        found[row["id"]] = verdict
    return found


def _find_spared(connection: Connection) -> Mapping[str, Outcome | None]:
    """Key → what holds of the pairs that nobody was asked about."""
    bulk = Outcome(True, {}, IN_BULK) if audit_workflow.holds(connection) else None
    known = {"beyond": Outcome(False, {}, LEFT_OUT), "bulk": bulk}
    states = skip_pairs.states(connection)
    return {key: known[state] for key, state in states.items() if state in known}


def _verdict(outcome: Outcome | None, labels: Sequence[str]) -> FrameVerdict:
    if outcome is None or outcome.accepted is None:
        return FrameVerdict(labels, False, UNDECIDED)
    return FrameVerdict(labels, outcome.accepted, outcome.reason)


def count_undecided(
    what: str, found: Mapping[str, "FrameVerdict | BoxVerdict"], *, partial: bool = False
) -> int:
    """How many are not decided. Raises `UsageError` where there are any, unless `partial`."""
    left = [key for key, verdict in found.items() if verdict.reason == UNDECIDED]
    if left and not partial:
        raise UsageError(
            f"{len(left):,} of {len(found):,} {what} are not decided, first '{left[0]}'; "
            "review them, or leave them out with --partial"
        )
    return len(left)


def box_verdicts(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> Mapping[str, BoxVerdict]:
    """Image → verdict, for every image of a set of boxes.

    The boxes that hold are those the last of the plan's stages settled: drawn and decided, else
    the suggested ones that were confirmed. An image is accepted once that is known, unless all its
    suggested objects were rejected: it is then not known what else it shows.
    """
    objects = outcomes(connection, "classification") if "classification" in plan.votes else None
    last = "box_check" if "box_check" in plan.votes else "boxes"
    drawn = outcomes(connection, last) if "boxes" in plan.votes else None
    by_image: dict[str, list[Mapping[str, Any]]] = {}
    for row in folder.boxes.to_pylist():
        by_image.setdefault(row["image"], []).append(row)
    return {
        image: _of_image(rows, objects, drawn.get(image) if drawn is not None else None, plan)
        for image, rows in by_image.items()
    }


def _of_image(
    rows: Sequence[Mapping[str, Any]],
    objects: Mapping[str, Outcome | None] | None,
    drawn: Outcome | None,
    plan: ReviewPlan,
) -> BoxVerdict:
    said = {r["id"]: objects.get(r["id"]) if objects is not None else _HOLDS for r in rows}
    gone = {id_: each.reason for id_, each in said.items() if each and each.accepted is False}
    held = [r for r in rows if (each := said[r["id"]]) is not None and each.accepted]
    if len(gone) == len(rows):
        return BoxVerdict(False, NO_OBJECT, (), gone)
    if "boxes" in plan.votes:
        if drawn is None or not drawn.accepted:
            return BoxVerdict(False, UNDECIDED, (), gone)
        return BoxVerdict(True, "", drawn.answer["boxes"], gone)
    if len(held) + len(gone) < len(rows):
        return BoxVerdict(False, UNDECIDED, (), gone)
    boxes = [{"box": [r[c] for c in ("x0", "y0", "x1", "y1")], "label": r["label"]} for r in held]
    return BoxVerdict(True, "", boxes, gone)


_HOLDS = Outcome(True, {})
