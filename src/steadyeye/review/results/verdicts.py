"""The verdict of people on each frame and each image of a set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.annotations.review_set import SCENE_CUT, UNDECIDED, SetFolder
from steadyeye.review.bulk import audit, skip_pairs
from steadyeye.review.protocol.drawn_boxes import drop_rejected
from steadyeye.review.protocol.objects import RIGHT
from steadyeye.review.protocol.stages import Outcome, ReviewPlan, name_label
from steadyeye.review.protocol.votes import settle_pairs, settle_stage

LEFT_OUT = "not asked: those around it are dissimilar"
IN_BULK = "accepted in bulk after an audit"
NO_OBJECT = "none of its objects was accepted"


@dataclass(frozen=True)
class FrameVerdict:
    """The verdict on a frame: its labels, and whether it is accepted.

    `reason`: why it is not accepted, or that nobody was asked.
    """

    labels: Sequence[str]
    accepted: bool
    reason: str


@dataclass(frozen=True)
class BoxVerdict:
    """The verdict on an image: its final boxes, and whether it is accepted.

    `boxes`: each {box: [x0, y0, x1, y1], label}. Suggested boxes by id: `confirmed`, natural
    adversarial objects, with their class; `right`, for which the detector was right, with the
    class; `rejected`, with the reason. `reason`: why the image is not accepted.
    """

    accepted: bool
    reason: str
    boxes: Sequence[Mapping[str, Any]] = ()
    rejected: Mapping[str, str] = field(default_factory=dict)
    right: Mapping[str, str] = field(default_factory=dict)
    confirmed: Mapping[str, str] = field(default_factory=dict)


def judge_frames(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> Mapping[str, FrameVerdict]:
    """Frame id → verdict, for every frame of a set.

    A neighbour is accepted if its anchor is and nobody doubted the pair, or the joint verification
    found it similar and correctly labelled by strict majorities. A neighbour across a scene cut is
    rejected without review, unless the plan asks for it. Two pairs that show the same frames share
    one decision. Bulk acceptance is valid while its audit holds.
    """
    names = folder.class_names
    anchors = settle_stage(connection, "anchors") if "anchors" in plan.votes else None
    pairs = settle_pairs(connection) if "pairs" in plan.votes else None
    spared = _find_spared(connection)
    twins = skip_pairs.find_twins(connection)
    verdicts = {}
    for row in folder.frames.to_pylist():
        original = [names[label] for label in row["labels"]]
        anchor = anchors.get(row["group"]) if anchors is not None else _ACCEPTED
        labels = list(anchor.answer.get("labels", original)) if anchor else original
        verdict = _judge_frame(anchor, labels)
        if row["across_cut"] and not plan.across_cuts:
            verdict = FrameVerdict(labels, False, SCENE_CUT)
        elif row["offset"] != 0 and verdict.accepted and pairs is not None:
            key = twins.get(row["id"], row["id"])
            verdict = _judge_frame(spared.get(key, pairs.get(key)), labels)
        verdicts[row["id"]] = verdict
    return verdicts


def _find_spared(connection: Connection) -> Mapping[str, Outcome | None]:
    """Key → outcome of the pairs that nobody was asked about; None: undecided."""
    bulk = Outcome(True, {}, IN_BULK) if audit.holds(connection) else None
    known = {"beyond": Outcome(False, {}, LEFT_OUT), "bulk": bulk}
    states = skip_pairs.list_states(connection)
    return {key: known[state] for key, state in states.items() if state in known}


def _judge_frame(outcome: Outcome | None, labels: Sequence[str]) -> FrameVerdict:
    if outcome is None or outcome.accepted is None:
        return FrameVerdict(labels, False, UNDECIDED)
    return FrameVerdict(labels, outcome.accepted, outcome.reason)


def count_undecided(
    kind: str, verdicts: Mapping[str, FrameVerdict | BoxVerdict], *, partial: bool = False
) -> int:
    """How many are not decided. Raises `UsageError` where there are any, unless `partial`."""
    left = [key for key, verdict in verdicts.items() if verdict.reason == UNDECIDED]
    if left and not partial:
        raise UsageError(
            f"{len(left):,} of {len(verdicts):,} {kind} not decided, first '{left[0]}'; "
            "review them, or leave them out with --partial"
        )
    return len(left)


def judge_images(
    connection: Connection, folder: SetFolder, plan: ReviewPlan
) -> Mapping[str, BoxVerdict]:
    """Image → verdict, for every image of a set of boxes.

    The final boxes are those of the last stage of the plan: drawn and decided boxes without those
    at the place of a rejected suggestion, or else the confirmed suggestions with the class that
    people gave them. An image is accepted once that is known, unless none of its suggested objects
    was confirmed: it then shows no natural adversarial object.
    """
    objects = settle_stage(connection, "classification") if "classification" in plan.votes else None
    last = "box_check" if "box_check" in plan.votes else "boxes"
    drawings = settle_stage(connection, last) if "boxes" in plan.votes else {}
    by_image: dict[str, list[Mapping[str, Any]]] = {}
    for row in folder.boxes.to_pylist():
        by_image.setdefault(row["image"], []).append(row)
    return {
        image: _judge_image(rows, objects, drawings.get(image), plan)
        for image, rows in by_image.items()
    }


def _judge_image(
    rows: Sequence[Mapping[str, Any]],
    objects: Mapping[str, Outcome | None] | None,
    drawing: Outcome | None,
    plan: ReviewPlan,
) -> BoxVerdict:
    by_id = {row["id"]: row for row in rows}
    outcomes = {
        id_: objects.get(id_) if objects is not None else _name(by_id[id_]) for id_ in by_id
    }
    settled = {id_: outcome for id_, outcome in outcomes.items() if outcome is not None}
    accepted = {id_: o for id_, o in settled.items() if o.accepted}
    right = {id_: o for id_, o in settled.items() if o.reason == RIGHT}
    verdict = BoxVerdict(
        False,
        UNDECIDED,
        rejected={
            id_: o.reason for id_, o in settled.items() if not o.accepted and id_ not in right
        },
        right={id_: o.answer["object"] for id_, o in right.items()},
        confirmed={id_: o.answer["object"] for id_, o in accepted.items()},
    )
    if len(settled) < len(rows):
        return verdict
    if not accepted:
        return replace(verdict, reason=NO_OBJECT)
    if "boxes" not in plan.votes:
        boxes = [
            {**_outline(by_id[id_]), "label": name_label(o.answer)} for id_, o in accepted.items()
        ]
        return replace(verdict, accepted=True, reason="", boxes=boxes)
    if drawing is None or not drawing.accepted:
        return verdict
    holding = [_outline(by_id[id_]) for id_ in (*accepted, *right)]
    refused = drop_rejected([_outline(by_id[id_]) for id_ in verdict.rejected], holding)
    left = drop_rejected(drawing.answer["boxes"], refused)
    return replace(verdict, accepted=True, reason="", boxes=left)


def _outline(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"box": [row[corner] for corner in ("x0", "y0", "x1", "y1")]}


def _name(row: Mapping[str, Any]) -> Outcome:
    """The outcome of a suggestion that nobody reviews: its own label."""
    return Outcome(True, {"object": row["label"], "listed": row["label"] != OUTSIDE})


_ACCEPTED = Outcome(True, {})
