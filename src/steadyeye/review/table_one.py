"""Table 1 of Shankar et al. from the decisions: reviewed, accepted, labels updated."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from steadyeye.core.intervals import clopper_pearson
from steadyeye.footage.set_folder import SetFolder
from steadyeye.review.plan import Plan
from steadyeye.review.standing import outcomes
from steadyeye.review.verdicts import UNDECIDED, box_verdicts, relabelled, verdicts


@dataclass(frozen=True)
class Line:
    """A line of the table. `reviewed`: None where only what changed is counted.

    `low`, `high`: the 95 % interval of the share accepted, Clopper–Pearson over what was reviewed;
    None where nothing was.
    """

    item: str
    reviewed: int | None
    accepted: int
    low: float | None = None
    high: float | None = None


def table_one(connection: Connection, folder: SetFolder, plan: Plan) -> Sequence[Line]:
    """The table of a set, over what is decided so far.

    "Do Image Classifiers Generalize Across Time?", Table 1. `anchor labels updated`: accepted
    anchors whose labels the review changed. A pair is reviewed once its outcome stands; pairs of
    rejected anchors and those across a scene cut are not asked and not counted.
    """
    if folder.content.get("kind") == "boxes":
        return _of_boxes(connection, folder, plan)
    found = verdicts(connection, folder, plan)
    rows = folder.frames.to_pylist()
    anchors = [row for row in rows if row["offset"] == 0]
    lines = []
    if "anchors" in plan.votes:
        decided = [row for row in anchors if found[row["id"]].reason != UNDECIDED]
        kept = [row for row in decided if found[row["id"]].accepted]
        lines += [
            _line("anchor frames", len(decided), len(kept)),
            Line("anchor labels updated", None, relabelled(folder, found)),
        ]
    if "pairs" in plan.votes:
        asked = outcomes(connection, "pairs")
        pairs = [found[key] for key, each in asked.items() if each is not None]
        decided_pairs = [pair for pair in pairs if pair.reason != UNDECIDED]
        kept_pairs = sum(pair.accepted for pair in decided_pairs)
        lines.append(_line("frame pairs", len(decided_pairs), kept_pairs))
    return lines


def _of_boxes(connection: Connection, folder: SetFolder, plan: Plan) -> Sequence[Line]:
    images = [
        each for each in box_verdicts(connection, folder, plan).values() if each.reason != UNDECIDED
    ]
    lines = []
    if "classification" in plan.votes:
        asked = outcomes(connection, "classification").values()
        decided = [each for each in asked if each is not None]
        kept = sum(bool(each.accepted) for each in decided)
        lines.append(_line("suggested boxes", len(decided), kept))
    lines.append(_line("images", len(images), sum(each.accepted for each in images)))
    return [*lines, Line("boxes", None, sum(len(each.boxes) for each in images))]


def _line(item: str, reviewed: int, accepted: int) -> Line:
    interval = clopper_pearson(accepted, reviewed) if reviewed else (None, None)
    return Line(item, reviewed, accepted, *interval)
