"""Checks that a database holds the review of this set under its plan.

Decisions are stored under the names of frames and boxes, which two samples of one video share: a
set that was sampled again would take over decisions about other pictures.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, select

from steadyeye import __version__
from steadyeye.core.errors import UsageError, shorten
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.database import added_sets, decisions, items
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.protocol.votes import SET


def make_fingerprint(folder: SetFolder, plan: ReviewPlan) -> str:
    """The SHA-256 of everything that the items of a set depend on."""
    content = [__version__, folder.fingerprint, folder.class_names, asdict(plan)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def was_added(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> bool:
    """Whether all items of a set and a plan were added."""
    same = added_sets.c.fingerprint == make_fingerprint(folder, plan)
    return connection.execute(select(added_sets).where(same)).first() is not None


def check_same_set(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> None:
    """Raises `UsageError` if the review in a database is of another set.

    It is if an item is not in the set or shows another picture, or if a decision was made on a set
    with other tables. Also raised if the review began with other numbers of votes than the plan
    has, or with gold questions that the plan no longer has. If the set and the plan were added
    before, nothing else is read.
    """
    if folder.content.get("kind") == "labels" or was_added(connection, folder, plan):
        return
    _check_votes(connection, plan)
    _check_gold(connection, plan)
    own = dict(_list_pictures(folder))
    rows = connection.execute(select(items.c.stage, items.c.key, items.c.payload))
    foreign = next((row.key for row in rows if _is_foreign(own, row)), None)
    if foreign is None:
        versions = connection.execute(select(decisions.c.version).distinct()).scalars()
        sets = {version.partition(SET)[2] for version in versions} - {"", folder.fingerprint}
        if not sets:
            return
    why = "decisions on other tables" if foreign is None else f"'{shorten(foreign)}' of another set"
    raise UsageError(
        f"the database holds {why}, and not the review of '{folder.root}'; give another "
        "--database, or move review.sqlite away and start again"
    )


def _check_votes(connection: Connection, plan: ReviewPlan) -> None:
    """Raises `UsageError` if items need another number of votes than the plan says."""
    people_asked = ~items.c.known & (items.c.state != "bulk")
    query = select(items.c.stage, items.c.needed).where(people_asked).distinct()
    for stage, needed in connection.execute(query.order_by(items.c.stage, items.c.needed)):
        votes = plan.votes.get(stage, 0)  # 0: all, who come and go
        if votes not in (0, needed):
            raise UsageError(
                f"set.json: review.stages.{stage} is {votes}, and the review began with {needed}; "
                "put it back, or give another --database to start again"
            )


def _check_gold(connection: Connection, plan: ReviewPlan) -> None:
    """Raises `UsageError` if a known answer counts that the plan no longer has."""
    query = select(items.c.stage, items.c.key).where(items.c.known)
    for stage, key in connection.execute(query.order_by(items.c.id)):
        if key not in plan.gold.answers.get(stage, {}):
            raise UsageError(
                f"set.json: review.gold.answers.{stage} no longer has '{shorten(key)}', whose "
                "known answer counts in this review; put it back, with another answer if it was "
                "wrong"
            )


def _list_pictures(folder: SetFolder) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """(stage, key) → pictures, for all possible items of a set under any plan."""
    frames = folder.frames.to_pylist()
    anchors = {row["group"]: row["image"] for row in frames if row["offset"] == 0}
    for group, image in anchors.items():
        yield ("anchors", group), {"image": image}
    for row in frames:
        if row["offset"]:
            yield ("pairs", row["id"]), {"image": row["image"], "anchor": anchors[row["group"]]}
    for row in folder.boxes.to_pylist():
        corners = [row[corner] for corner in ("x0", "y0", "x1", "y1")]
        yield ("classification", row["id"]), {"image": row["image"], "box": corners}
        yield ("boxes", row["image"]), {"image": row["image"]}


def _is_foreign(own: Mapping[tuple[str, str], Mapping[str, Any]], row: Any) -> bool:
    """Whether an item is not of a set; items that follow from answers are like their parents."""
    stage = {"joint": "pairs", "box_check": "boxes"}.get(row.stage, row.stage)
    shown_here = own.get((stage, row.key))
    return shown_here is None or any(row.payload[key] != shown_here[key] for key in shown_here)
