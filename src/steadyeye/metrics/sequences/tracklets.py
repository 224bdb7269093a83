"""Detections of one object linked along the frames of a scene, without labels.

Linking follows ByteTrack: boxes above the threshold are assigned to the objects of the frames
before, boxes below it to those that are left; Zhang et al., "ByteTrack: Multi-Object Tracking by
Associating Every Detection Box", 2022, algorithm 1. In place of a Kalman filter an object keeps
its velocity, and it may change its class. Boxes are compared without the motion of the camera.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import (
    Box,
    BoxTable,
    areas,
    divide_areas,
    iou,
    move_boxes,
    paired_iou,
    reach_score,
)
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.detection.assignment import pair_best
from steadyeye.metrics.sequences.camera_motion import find_positions
from steadyeye.metrics.sequences.scenes import (
    APART,
    ROUNDED,
    can_follow,
    list_followed,
    time_apart,
)

SCORE = 0.5
"""Above it a detection is one that a user would be shown."""
WEAK = 0.1
"""Below it a box is noise and no sign of an object."""
SAME = 0.5
"""IoU above which a box in a gap is that of the object."""
LINK = 0.3
"""IoU with the predicted place from which a box is assigned to an object."""
DUPLICATE = 0.7
"""IoU above which two boxes of a frame are one object, whatever their classes."""
COVERED = 0.5
"""Share of a box that other objects cover, from which it may be hidden behind them."""
GAP = 1.0
"""Seconds after which an object that is not seen any more has gone."""
LONGEST = GAP + ROUNDED / 2
"""Seconds between two detections of an object at most: 30 of 29.97 frames a second are more than
`GAP`, and 25 of 25 are not, whatever 1/25 is rounded to."""
SWITCH = 0.2
"""The cost of another class in an assignment, in IoU; the IoU must also reach `SAME`, or
`DUPLICATE` after a frame in which the object was not found."""
SMOOTHING = 0.5
"""Weight of the newest step in an object's velocity."""

DETECTED, DIP, MISS, UNSURE = range(4)
"""The state of an object in a frame: found; found below the threshold; not found; not known."""


@dataclass(frozen=True, eq=False)
class Tracklets:
    """t objects and the m frames in which each was, or should have been, found.

    Frames are those from an object's first detection to its last, object by object, in the order of
    time. `track`: (m,) which object, 0…t−1. `row`: (m,) the row of the predictions. `state`: (m,)
    `DETECTED`, `DIP`, `MISS` or `UNSURE`. `detection`: (m,) the row in the raw detections, of a dip
    that of the weak box; −1 in other frames. `boxes`: (m, 4) the box found, else interpolated.
    `camera`: (m, 2) how far the camera has moved the picture since the scene began, in pixels.
    `starts`, `ends`: (t,) whether the scene begins or ends while the object is in it.
    """

    track: NDArray[np.intp]
    row: NDArray[np.intp]
    state: NDArray[np.int8]
    detection: NDArray[np.intp]
    boxes: NDArray[np.float64]
    camera: NDArray[np.float64]
    starts: NDArray[np.bool_]
    ends: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass
class TrackedObject:
    """An object while its scene is gone through: the places and rows of what was found of it.

    `box`: without the motion of the camera, as those of its scene. `time`: by the clock of its
    scene, when it was at `box`. `velocity`: of x and y, in pixels. Plain numbers: arrays of so few
    take ten times as long.
    """

    places: list[int]
    detections: list[int]
    box: Box
    label: int
    time: float
    velocity: tuple[float, float] = (0.0, 0.0)

    def predict(self, time: float) -> Box:
        """Where its box should be at a time."""
        passed = time - self.time
        x, y = self.velocity[0] * passed, self.velocity[1] * passed
        x0, y0, x1, y1 = self.box
        return x0 + x, y0 + y, x1 + x, y1 + y

    def move(self, box: Box, time: float) -> None:
        """Takes a box as its own at a later time."""
        passed = time - self.time
        weight = SMOOTHING if len(self.places) > 1 else 1.0
        moved = [after - before for after, before in zip(box, self.box, strict=True)]
        x, y = (
            weight * ((moved[axis] + moved[axis + 2]) / 2 / passed)
            + (1 - weight) * self.velocity[axis]
            for axis in (0, 1)
        )
        self.box, self.time, self.velocity = box, time, (x, y)


@dataclass(frozen=True, eq=False)
class _Frames:
    """The columns of `Tracklets` of one object."""

    row: NDArray[np.intp]
    state: NDArray[np.int8]
    detection: NDArray[np.intp]
    boxes: NDArray[np.float64]
    camera: NDArray[np.float64]


_linked: WeakKeyDictionary[Predictions, dict[float, Tracklets]] = WeakKeyDictionary()
"""Of predictions in use: five numbers and a section of the report read the same objects."""


def link(predictions: Predictions, score: float = SCORE) -> Tracklets:
    """The objects that a detector finds in whole videos, rows with group, frame and seconds.

    `score`: from it on a detection counts, above `WEAK` and below 1. Raises `UsageError` for
    another score, for predictions that are no detector's, and where all scenes have frames more
    than `APART` seconds apart: what moves between them, or comes and goes, cannot be told.
    """
    if not WEAK < score < 1:
        raise UsageError(f"score={score:g}: give a score between {WEAK:g} and 1, such as {SCORE:g}")
    if predictions.raw_detections is None:
        raise UsageError(
            f"no detections of {predictions.model} are stored; objects are followed where a "
            "detector was run"
        )
    if not can_follow(predictions):
        apart = time_apart(predictions)
        raise UsageError(
            f"the frames of {predictions.data} are {apart:.2g} s apart, too far to follow objects; "
            f"take a smaller step, of at most {APART:g} s"
        )
    by_score = _linked.setdefault(predictions, {})
    if score not in by_score:
        raw = predictions.raw_detections
        by_score[score] = link_by(assign_frame_by_frame, predictions, raw, score)
    return by_score[score]


def link_by(linker: "Linker", predictions: Predictions, raw: BoxTable, score: float) -> Tracklets:
    """As `link`, of detections that another tracker links, to see how little depends on it."""
    assert (np.diff(raw.image) >= 0).all(), "a table of boxes is in the order of its images"
    objects = [
        (scene, item) for scene in list_scenes(predictions, raw, score) for item in linker(scene)
    ]
    frames = [scene.sort_frames(item) for scene, item in objects]
    return Tracklets(
        track=np.repeat(np.arange(len(objects)), [len(part.row) for part in frames]),
        row=_join([part.row for part in frames], np.intp),
        state=_join([part.state for part in frames], np.int8),
        detection=_join([part.detection for part in frames], np.intp),
        boxes=np.concatenate([np.zeros((0, 4)), *(part.boxes for part in frames)]),
        camera=np.concatenate([np.zeros((0, 2)), *(part.camera for part in frames)]),
        starts=np.array([item.places[0] == 0 for _, item in objects], dtype=np.bool_),
        ends=np.array(
            [item.places[-1] == len(scene.rows) - 1 for scene, item in objects], dtype=np.bool_
        ),
    )


def list_scenes(predictions: Predictions, raw: BoxTable, score: float) -> "Iterator[Scene]":
    """The scenes of `list_followed` with their detections."""
    scenes = list_followed(predictions)
    camera = find_positions(predictions, scenes)
    still = replace(raw, boxes=move_boxes(raw.boxes, -camera[raw.image]))
    return (_read_scene(predictions, rows, still, camera, score) for rows in scenes)


def _join(parts: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts])


@dataclass(eq=False)
class Scene:
    """The n frames of a scene, in the order of time, and what was detected in them.

    `rows`: (n,) of the predictions. `seconds`: (n,). `clock`: (n,) what objects move by, rising:
    seconds, or numbers of frames where seconds are no good measure of motion. `camera`: (n, 2) how
    far the camera has moved the picture since the scene began, in pixels. `raw`: the detections,
    their boxes without that motion. `detections`: for each frame the rows in `raw` of those that
    are no noise, best first. `score`: from it on a detection counts.
    """

    rows: NDArray[np.intp]
    seconds: NDArray[np.float64]
    clock: NDArray[np.float64]
    camera: NDArray[np.float64]
    raw: BoxTable
    detections: list[NDArray[np.intp]]
    score: float

    def box(self, detection: int) -> Box:
        """The box of a row of `raw`."""
        x0, y0, x1, y1 = self.raw.boxes[detection].tolist()
        return x0, y0, x1, y1

    def sort_frames(self, item: TrackedObject) -> _Frames:
        """The states of an object in each frame from its first detection to its last."""
        places = np.arange(item.places[0], item.places[-1] + 1)
        positions = np.asarray(item.places)
        own = positions - places[0]
        state = np.full(len(places), DETECTED, dtype=np.int8)
        detection = np.full(len(places), -1, dtype=np.intp)
        detection[own] = item.detections
        boxes = np.empty((len(places), 4))
        boxes[own] = corners = self.raw.boxes[item.detections]
        empty = np.flatnonzero(detection < 0)
        if len(empty):
            times, known = self.clock[places[empty]], self.clock[positions]
            boxes[empty] = np.stack([np.interp(times, known, side) for side in corners.T], axis=1)
            state[empty], detection[empty] = self._look_up(places[empty], boxes[empty])
        for gap in np.split(empty, np.flatnonzero(np.diff(empty) > 1) + 1):
            if (state[gap] == UNSURE).any():
                # who is hidden is so bit by bit: nothing is known of the frames around either
                state[gap], detection[gap] = UNSURE, -1
        dips = np.flatnonzero(state == DIP)
        boxes[dips] = self.raw.boxes[detection[dips]]
        camera = self.camera[places]
        return _Frames(self.rows[places], state, detection, move_boxes(boxes, camera), camera)

    def _look_up(
        self, places: NDArray[np.intp], boxes: NDArray[np.float64]
    ) -> tuple[NDArray[np.int8], NDArray[np.intp]]:
        """(n,) the states of an object whose boxes should be at n places, and its weak boxes.

        The weak box of a dip is the one that overlaps most; −1 for other states.
        """
        state, weak = np.full(len(places), MISS, dtype=np.int8), np.full(len(places), -1)
        near = [self.detections[place] for place in places]
        rows = _join(near, np.intp)
        at = np.repeat(np.arange(len(places)), [len(part) for part in near])
        is_strong = reach_score(self.raw.score[rows], self.score)
        # hidden behind another object, or detected: then the link was not found
        covered = _cover(boxes[at], self.raw.boxes[rows]) >= COVERED
        overlap = paired_iou(boxes[at], self.raw.boxes[rows])
        same = np.flatnonzero(overlap > SAME)
        same = same[np.lexsort((-same, overlap[same]))]
        state[at[is_strong & covered]] = UNSURE
        state[at[same]], weak[at[same]] = DIP, rows[same]
        state[at[same[is_strong[same]]]] = UNSURE
        weak[state != DIP] = -1
        return state, weak


def _read_scene(
    predictions: Predictions,
    rows: NDArray[np.intp],
    raw: BoxTable,
    camera: NDArray[np.float64],
    score: float,
) -> Scene:
    first, last = (np.searchsorted(raw.image, rows, side) for side in ("left", "right"))
    seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)[rows]
    frame = np.asarray(predictions.tags["frame"], dtype=np.float64)[rows]
    return Scene(
        rows,
        seconds,
        seconds if (np.diff(seconds) > 0).all() else frame,
        camera[rows],
        raw,
        [start + rank(raw.score[start:stop]) for start, stop in zip(first, last, strict=True)],
        score,
    )


def rank(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """The places of the detections of a frame that are no noise, best first."""
    above = np.flatnonzero(scores >= WEAK)
    return above[np.argsort(-scores[above], kind="stable")]


Linker: TypeAlias = Callable[[Scene], Sequence[TrackedObject]]
"""Gives the objects of a scene, in the order in which they appear."""


def assign_frame_by_frame(scene: Scene) -> list[TrackedObject]:
    """The objects of a scene by the best assignment to those of the frames before."""
    objects: list[TrackedObject] = []
    active: list[TrackedObject] = []
    for place in range(len(scene.detections)):
        active, begun, _ = follow(scene, active, place)
        objects += begun
        active += begun
    return objects


Followed: TypeAlias = tuple[list[TrackedObject], list[TrackedObject], list[TrackedObject]]


def follow(scene: Scene, objects: list[TrackedObject], place: int) -> Followed:
    """Assigns the detections of a frame to the objects of the frames before.

    Returns those that may still be seen again, those that begin in the frame, and those of the
    first that are in it.
    """
    since = scene.seconds[place] - LONGEST
    active = [item for item in objects if scene.seconds[item.places[-1]] >= since]
    distinct = remove_duplicates(scene.raw, scene.detections[place])
    strong = reach_score(scene.raw.score[distinct], scene.score)
    matched, new = _assign(scene, active, distinct[strong], place, LINK)
    time = float(scene.clock[place])
    updated = [item for item, _ in matched]
    for item, detection in matched:
        item.move(scene.box(detection), time)
        item.places.append(place)
        item.detections.append(detection)
        item.label = int(scene.raw.label[detection])
    in_frame = {id(item) for item in updated}
    rest = [item for item in active if id(item) not in in_frame]
    for item, detection in _assign(scene, rest, distinct[~strong], place, SAME)[0]:
        item.move(scene.box(detection), time)
    return active, [_begin(scene, place, detection) for detection in new], updated


def _begin(scene: Scene, place: int, detection: int) -> TrackedObject:
    label, time = int(scene.raw.label[detection]), float(scene.clock[place])
    return TrackedObject([place], [detection], scene.box(detection), label, time)


def _assign(
    scene: Scene,
    objects: list[TrackedObject],
    detections: NDArray[np.intp],
    place: int,
    least: float,
) -> tuple[list[tuple[TrackedObject, int]], list[int]]:
    """The objects with the detections of a frame that are theirs, and the detections left."""
    if not objects or not len(detections):
        return [], detections.tolist()
    time = float(scene.clock[place])
    predicted = np.array([item.predict(time) for item in objects])
    overlap = iou(predicted, scene.raw.boxes[detections])
    labels = np.array([item.label for item in objects])
    switch = labels[:, None] != scene.raw.label[detections]
    # across a gap another class is mostly another object
    before = float(scene.clock[max(place - 1, 0)])
    same = np.array([DUPLICATE if item.time < before else SAME for item in objects])
    needed = np.where(switch, same[:, None], least)
    worth = np.where(overlap >= needed, 1 + overlap - SWITCH * switch, 0.0)
    rows, columns = pair_best(worth)
    pairs = [
        (objects[row], int(detections[column])) for row, column in zip(rows, columns, strict=True)
    ]
    is_left = np.ones(len(detections), dtype=np.bool_)
    is_left[columns] = False
    return pairs, detections[is_left].tolist()


def _cover(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the share of each of n boxes that the other in its row covers, 0…1."""
    sides = np.minimum(boxes[:, 2:], others[:, 2:]) - np.maximum(boxes[:, :2], others[:, :2])
    return divide_areas(np.clip(sides, 0, None).prod(axis=1), areas(boxes))


def remove_duplicates(raw: BoxTable, detections: NDArray[np.intp]) -> NDArray[np.intp]:
    """Detections of a frame, best first, without those that lie on a better one."""
    overlap = iou(raw.boxes[detections], raw.boxes[detections]) > DUPLICATE
    np.fill_diagonal(overlap, False)
    is_distinct = np.ones(len(detections), dtype=np.bool_)
    for place in np.flatnonzero(overlap.any(axis=1)):
        if is_distinct[place]:
            # those before it stay: they are better
            is_distinct[place + 1 :] &= ~overlap[place, place + 1 :]
    return detections[is_distinct]
