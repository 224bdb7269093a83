"""What people accepted, as a set again: what is evaluated, and what the papers release."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.footage.set_folder import FRAMES, SetFolder, image_path
from steadyeye.predictions.cell import encode, write_file
from steadyeye.review import evidence, shortcut, status
from steadyeye.review.plan import Plan
from steadyeye.review.stages import Outcome
from steadyeye.review.standing import outcomes

UNDECIDED = "not decided"
LEFT_OUT = "not asked: those around it are dissimilar"
IN_BULK = "accepted in bulk after an audit"


@dataclass(frozen=True)
class Verdict:
    """What is known of a frame: its labels, and whether it is accepted.

    `reason`: why not, or that nobody was asked.
    """

    labels: Sequence[str]
    accepted: bool
    reason: str


def verdicts(connection: Connection, folder: SetFolder, plan: Plan) -> Mapping[str, Verdict]:
    """Frame id → verdict, for every frame of a set.

    A neighbour is accepted where its anchor is and nobody doubted the pair, or the joint
    verification found it similar and correctly labelled by strict majorities. Of two pairs that
    show the same, what was said of one holds; what is accepted in bulk is so while its audit holds.
    """
    names = folder.classes.names if folder.classes else ()
    anchors = outcomes(connection, "anchors") if "anchors" in plan.votes else None
    pairs = outcomes(connection, "pairs") if "pairs" in plan.votes else None
    joint = outcomes(connection, "joint")
    spared = _spared(connection)
    asked = shortcut.deciders(connection)
    found = {}
    for row in folder.frames.to_pylist():
        given = [names[label] for label in row["labels"]]
        anchor = anchors.get(row["group"]) if anchors is not None else Outcome(True, {})
        labels = list(anchor.answer.get("labels", given)) if anchor else given
        verdict = _verdict(anchor, labels)
        if row["offset"] != 0 and verdict.accepted and pairs is not None:
            key = asked.get(row["id"], row["id"])
            pair = pairs.get(key)
            if pair is not None and pair.accepted is None:
                pair = joint.get(key)
            verdict = _verdict(spared.get(key, pair), labels)
        found[row["id"]] = verdict
    return found


def _spared(connection: Connection) -> Mapping[str, Outcome | None]:
    """Key → what holds of the pairs that nobody was asked about."""
    bulk = Outcome(True, {}, IN_BULK) if evidence.holds(connection) else None
    known = {"beyond": Outcome(False, {}, LEFT_OUT), "bulk": bulk}
    states = shortcut.states(connection)
    return {key: known[state] for key, state in states.items() if state in known}


def _verdict(outcome: Outcome | None, labels: Sequence[str]) -> Verdict:
    if outcome is None or outcome.accepted is None:
        return Verdict(labels, False, UNDECIDED)
    return Verdict(labels, outcome.accepted, outcome.reason)


def export(
    connection: Connection, folder: SetFolder, plan: Plan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes the reviewed set to a folder: `--data "reviewed(root=…)"` evaluates it.

    Every frame is kept with its verdict, so that the review's impact can be told; the images are
    those of accepted and rejected frames alike. Returns counts. Raises `UsageError` where frames
    are not decided, unless `partial`: they then count as not accepted, and are named so.
    """
    if (out / "set.json").is_file():
        raise UsageError(f"'{out}' holds a set already; choose another --out")
    found = verdicts(connection, folder, plan)
    undecided = [id_ for id_, verdict in found.items() if verdict.reason == UNDECIDED]
    if undecided and not partial:
        raise UsageError(
            f"{len(undecided):,} of {len(found):,} frames are not decided, first "
            f"'{undecided[0]}'; review them, or leave them out with --partial"
        )
    names = folder.classes.names if folder.classes else ()
    rows = [_decided(row, found[row["id"]], names) for row in folder.frames.to_pylist()]
    for image in sorted({row["image"] for row in rows}):
        target = image_path(out, image)
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(image_path(folder.root, image), target)
    counts = {
        "anchors": sum(row["offset"] == 0 for row in rows),
        "anchors_accepted": sum(row["accepted"] and row["offset"] == 0 for row in rows),
        "pairs": sum(row["offset"] != 0 for row in rows),
        "pairs_accepted": sum(row["accepted"] and row["offset"] != 0 for row in rows),
        "labels_updated": _updated(folder, rows),
        "undecided": len(undecided),
    }
    write_file(out / "frames.parquet", _parquet(rows))
    manifest = {
        **folder.content,
        "reviewed": {"counts": counts, "status": status.status(connection, folder, plan)},
        "provenance": provenance(),
    }
    write_file(out / "set.json", encode(manifest))
    return counts


def _decided(row: Mapping[str, Any], verdict: Verdict, names: Sequence[str]) -> dict[str, Any]:
    labels = [names.index(label) for label in verdict.labels]
    told = {"labels": labels, "accepted": verdict.accepted, "reason": verdict.reason}
    return {**row, **told}


def _updated(folder: SetFolder, rows: Sequence[Mapping[str, Any]]) -> int:
    """Accepted anchors whose labels the review changed."""
    before = dict(
        zip(folder.frames["id"].to_pylist(), folder.frames["labels"].to_pylist(), strict=True)
    )
    return sum(
        row["accepted"] and row["offset"] == 0 and row["labels"] != before[row["id"]]
        for row in rows
    )


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=FRAMES), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
