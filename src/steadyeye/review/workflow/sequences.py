"""Videos among the images of a set: the order of drawing boxes, and tracks between frames.

People draw boxes on key frames; on the frames between two key frames they confirm or correct the
linear interpolation of the boxes of a track.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import Connection, case, func, or_, select
from sqlalchemy.sql import ColumnElement

from steadyeye.review.database import assignments, decisions, items
from steadyeye.review.protocol.drawn_boxes import drop_rejected
from steadyeye.review.protocol.reviewers import Reviewer
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.protocol.votes import STANDS

Boxes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class VideoFrame:
    """The place of an image in its video: the folder it lies in.

    `frame`: from 0, in the order of the names, numbers in them by value; `frames`: how many there
    are. `key`: whether it is a key frame, whose boxes are drawn first. `turn`: its place in the
    order of drawing, from 0.
    """

    name: str
    frame: int
    frames: int
    key: bool
    turn: int


def order_frames(names: Mapping[str, str], every: int) -> Mapping[str, VideoFrame]:
    """Image → its place in its video. `names`: image → file; `every`: distance of key frames.

    The last frame of a video is a key frame too, so that all others lie between two.
    """
    videos: dict[str, list[str]] = {}
    for image, name in names.items():
        videos.setdefault(str(PurePosixPath(name).parent), []).append(image)
    places = {}
    for video, images in videos.items():
        ordered = sorted(images, key=lambda image: split_numbers(names[image]))
        last = len(ordered) - 1
        keys = [n % every == 0 or n == last for n in range(len(ordered))]
        turns = sorted(range(len(ordered)), key=lambda n: (not keys[n], n))
        for turn, n in enumerate(turns):
            places[ordered[n]] = VideoFrame(video, n, len(ordered), keys[n], turn)
    return places


def split_numbers(name: str) -> tuple[Sequence[str | int], str]:
    """A sort key that orders numbers in names by value, `2.jpg` before `10.jpg`."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if n % 2 else part for n, part in enumerate(parts)], name


def find_videos(names: Mapping[str, str], every: int) -> Mapping[str, VideoFrame]:
    """Image → its place in its video; empty if `every` is 0, because images are then no frames."""
    return order_frames(names, every) if every else {}


def prefer_video(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str, query: Any
) -> Any:
    """A query for items that prefers the reviewer's video and leaves out busy videos."""
    own = (
        select(items.c.sequence)
        .join(assignments, assignments.c.item == items.c.id)
        .where(items.c.stage == stage, assignments.c.reviewer == reviewer.id)
        .order_by(assignments.c.id.desc())
        .limit(1)
    )
    current = connection.execute(own).scalar()
    free = query.where(is_free(find_busy_videos(connection, plan, reviewer, stage)))
    other_video = case((items.c.sequence == current, 0), else_=1)
    return free.order_by(None).order_by(other_video, items.c.position)


def find_busy_videos(
    connection: Connection, plan: ReviewPlan, reviewer: Reviewer, stage: str
) -> Sequence[str]:
    """The videos in which enough others are at work.

    They are free again once no frame was assigned for the plan's `minutes`.
    """
    if not plan.key_frames or not plan.votes[stage]:
        return []
    others = (
        select(items.c.sequence)
        .join(assignments, assignments.c.item == items.c.id)
        .where(items.c.stage == stage, items.c.sequence.is_not(None), ~assignments.c.released)
        .where(assignments.c.reviewer != reviewer.id)
        .where(was_within(plan.minutes))
        .group_by(items.c.sequence)
        .having(func.count(assignments.c.reviewer.distinct()) >= plan.votes[stage])
    )
    return list(connection.execute(others).scalars())


def was_within(minutes: float) -> ColumnElement[bool]:
    """The condition for assignments of the last `minutes`.

    An assignment equally far in the future does not meet it: the clock was wrong then.
    """
    now, span = time.time(), 60 * minutes
    return assignments.c.made_at.between(now - span, now + span)


def is_free(busy: Sequence[str]) -> ColumnElement[bool]:
    """The condition that an item is of no video, or of a video that is not busy."""
    return or_(items.c.sequence.is_(None), items.c.sequence.not_in(busy))


def find_nearby(connection: Connection, reviewer: int, assignment: int) -> Mapping[str, Any] | None:
    """The boxes on the nearest answered frames around an item assigned to a reviewer.

    `before`, `after`: {frame, boxes} of the nearest frame that they answered, or that anybody
    answered if one vote suffices; None if there is none. `between`: the boxes interpolated between
    these. None for an assignment that is not theirs or is of no video.
    """
    query = select(items.c.stage, items.c.sequence, items.c.payload).join(assignments)
    own = (assignments.c.id == assignment) & (assignments.c.reviewer == reviewer)
    # a larger number is none that a database could hold
    known = 0 < assignment < 1 << 31
    item = connection.execute(query.where(own)).one_or_none() if known else None
    if item is None or item.sequence is None:
        return None
    number = items.c.payload["sequence"]["frame"].as_integer()
    place = item.payload["sequence"]["frame"]
    answered = (
        select(number.label("frame"), decisions.c.answer, items.c.payload)
        .join(items, items.c.id == decisions.c.item)
        .where(items.c.stage == item.stage, items.c.sequence == item.sequence)
        .where(STANDS, decisions.c.kind == "answer")
        .where(or_(decisions.c.reviewer == reviewer, items.c.needed == 1))
    )
    nearest = (
        answered.where(number < place).order_by(number.desc(), decisions.c.id.desc()),
        answered.where(number > place).order_by(number, decisions.c.id.desc()),
    )
    rows = [connection.execute(query.limit(1)).one_or_none() for query in nearest]
    before, after = (row and _take_boxes(row) for row in rows)
    between: Boxes = []
    if before and after:
        share = (place - before["frame"]) / (after["frame"] - before["frame"])
        between = interpolate_tracks(before["boxes"], after["boxes"], share)
    return {"before": before, "after": after, "between": between}


def _take_boxes(row: Any) -> Mapping[str, Any]:
    """The boxes that another frame gives to this one: without those that people rejected."""
    boxes = drop_rejected(row.answer["boxes"], row.payload["rejected"])
    return {"frame": row.frame, "boxes": boxes}


def interpolate_tracks(before: Boxes, after: Boxes, share: float) -> Boxes:
    """The interpolated boxes of the tracks on both of two frames, at a share of the time between.

    Corners move on straight lines, as in CVAT and VATIC (Vondrick et al., "Efficiently Scaling up
    Crowdsourced Video Annotation", 2013, Section 3.1); labels are those before.
    """
    ends = {box["track"]: box["box"] for box in after if "track" in box}
    return [
        {
            **box,
            "box": [
                round(a + share * (b - a), 2)
                for a, b in zip(box["box"], ends[box["track"]], strict=True)
            ],
        }
        for box in before
        if box.get("track") in ends
    ]
