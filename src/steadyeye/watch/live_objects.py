"""Follows objects frame by frame, with the result that `blink_rate` has for a whole video."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Box, BoxTable, Detections, detection_table, move_boxes, take
from steadyeye.metrics.sequences.camera_motion import find_shifts
from steadyeye.metrics.sequences.object_steadiness import LEAST
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    DIP,
    LONGEST,
    MISS,
    SCORE,
    UNSURE,
    Scene,
    TrackedObject,
    follow,
    rank,
)

LOST = {MISS: "not found", DIP: "below the threshold"}
"""What an object may be in a frame of a blink."""


@dataclass(frozen=True)
class ObjectEvent:
    """A frame in which an object was lost, or was of another class than before.

    `frame`: its number. `box`: x0 y0 x1 y1 in pixels. `before`, `after`: its classes; the same
    where it was lost. `state`: `MISS`, `DIP` or `DETECTED`.
    """

    frame: int
    box: Box
    before: int
    after: int
    state: int


@dataclass
class ObjectCounts:
    """Counts of the objects in frames whose states are final.

    `states`: how many frames of an object by `DETECTED`, `DIP` and `MISS`; unsure states do not
    count. `pairs`: consecutive detections of an object; `changes`: those with different classes.
    """

    states: Counter[int] = field(default_factory=Counter)
    pairs: int = 0
    changes: int = 0
    events: list[ObjectEvent] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """Number of frames of objects."""
        return self.states.total()

    @property
    def lost_frames(self) -> int:
        """Number of frames without their object."""
        return self.states[MISS] + self.states[DIP]

    def add(self, other: "ObjectCounts") -> None:
        """Adds the counts of another."""
        self.states += other.states
        self.pairs += other.pairs
        self.changes += other.changes
        self.events += other.events

    def record(self) -> dict[str, Any]:
        """For the state file."""
        events = [asdict(event) for event in self.events]
        return {**vars(self), "states": list(self.states.items()), "events": events}

    @classmethod
    def resume(cls, record: Mapping[str, Any]) -> "ObjectCounts":
        """As a state file holds it."""
        events = [ObjectEvent(**event) for event in record["events"]]
        return cls(Counter(dict(record["states"])), record["pairs"], record["changes"], events)


@dataclass
class _Life:
    """An object from its first detection on, with the detections that are not yet counted."""

    item: TrackedObject
    label: int
    detections: int = 1
    waiting: ObjectCounts | None = field(default_factory=ObjectCounts)

    def record(self) -> dict[str, Any]:
        """The object for the state file; nothing before its last detection is needed any more."""
        item = self.item
        return {
            "places": item.places[-2:],
            "rows": item.detections[-2:],
            "box": item.box,
            "class": item.label,
            "time": item.time,
            "velocity": item.velocity,
            "label": self.label,
            "detections": self.detections,
            "waiting": self.waiting and self.waiting.record(),
        }

    @classmethod
    def resume(cls, record: Mapping[str, Any]) -> "_Life":
        """As a state file holds it."""
        box, velocity = tuple(record["box"]), tuple(record["velocity"])
        places, rows = list(record["places"]), list(record["rows"])
        item = TrackedObject(places, rows, box, record["class"], record["time"], velocity)
        waiting = record["waiting"] and ObjectCounts.resume(record["waiting"])
        return cls(item, record["label"], record["detections"], waiting)


class LiveObjects:
    """The objects of a stream.

    Their motion is measured by a rising clock, in seconds or frame numbers. The state of a frame is
    final when the object is detected again, up to `LONGEST` later, and counts once the object was
    detected `LEAST` times. Memory holds the frames of twice that time and their objects. `score`:
    the least score of a detection.
    """

    def __init__(self, score: float = SCORE) -> None:
        self.score = score
        self.begin_scene()

    def begin_scene(self) -> None:
        """Forgets all objects, as after a scene cut."""
        self._lives: dict[int, _Life] = {}
        self._projections: NDArray[np.float32] | None = None
        rows, times = np.zeros(0, dtype=np.int64), np.zeros(0)
        camera = np.zeros((0, 2))
        self._scene = Scene(rows, times, times, camera, detection_table(()), [], self.score)

    def add(
        self,
        number: int,
        seconds: float,
        clock: float,
        detections: Detections,
        projections: NDArray[np.float32] | None = None,
    ) -> ObjectCounts:
        """The counts that a frame makes final.

        Numbers, seconds and clock rise from frame to frame. `projections`: those of
        `measure_projections`; None: the camera does not move.
        """
        self._forget(seconds)
        camera = self._move_camera(projections)
        still = replace(detections, boxes=move_boxes(detections.boxes, -camera))
        self._scene = scene = _append(self._scene, (number, seconds, clock), camera, still)
        place = len(scene.rows) - 1
        objects = [life.item for life in self._lives.values()]
        active, begun, updated = follow(scene, objects, place)
        settled = ObjectCounts()
        for item in updated:
            self._settle(scene, self._lives[id(item)], settled)
        lives = [self._lives[id(item)] for item in active] + [self._begin(item) for item in begun]
        self._lives = {id(life.item): life for life in lives}
        return settled

    def record(self) -> dict[str, Any]:
        """The frames and objects in memory, for the state file."""
        raw, scene = self._scene.raw, self._scene
        times = zip(scene.rows.tolist(), scene.seconds.tolist(), scene.clock.tolist(), strict=True)
        tables = [
            [column[rows].tolist() for column in (raw.boxes, raw.label, raw.score)]
            for rows in scene.detections
        ]
        return {
            "frames": [
                [*time, camera, *columns]
                for time, camera, columns in zip(times, scene.camera.tolist(), tables, strict=True)
            ],
            "projections": None if self._projections is None else self._projections.tolist(),
            "objects": [life.record() for life in self._lives.values()],
        }

    def resume(self, record: Mapping[str, Any]) -> None:
        """Continues from a record."""
        self.begin_scene()
        for *times, position, boxes, labels, scores in record["frames"]:
            corners = np.array(boxes, dtype=np.float64).reshape(-1, 4)
            still = Detections(corners, np.array(labels, np.int32), np.array(scores, float))
            self._scene = _append(self._scene, times, np.array(position), still)
        last = record["projections"]
        self._projections = None if last is None else np.array(last, dtype=np.float32)
        lives = map(_Life.resume, record["objects"])
        self._lives = {id(life.item): life for life in lives}

    def _move_camera(self, projections: NDArray[np.float32] | None) -> NDArray[np.float64]:
        """(2,) how far the camera has moved the picture up to a new frame."""
        before, self._projections = self._projections, projections
        position = self._scene.camera[-1] if len(self._scene.camera) else np.zeros(2)
        if before is None or projections is None:
            return position
        return np.asarray(position + find_shifts(np.stack([before, projections]))[1])

    def _forget(self, seconds: float) -> None:
        """Drops frames that no current object needs, when there are many of them."""
        old = int(np.searchsorted(self._scene.seconds, seconds - LONGEST)) - 1
        if old < max(len(self._scene.rows) / 2, 1):
            return
        self._scene, rows = _drop(self._scene, old)
        for key, life in list(self._lives.items()):
            item = life.item
            # nothing before the last detection is needed any more
            item.places[:] = [place - old for place in item.places[-2:]]
            item.detections[:] = [row - rows for row in item.detections[-2:]]
            if item.places[-1] < 0:
                del self._lives[key]

    def _begin(self, item: TrackedObject) -> _Life:
        life = _Life(item, item.label)
        assert life.waiting is not None
        life.waiting.states[DETECTED] += 1
        return life

    def _settle(self, scene: Scene, life: _Life, settled: ObjectCounts) -> None:
        """Counts the frames from an object's last detection to its detection in this frame."""
        item = life.item
        counts = settled if life.waiting is None else life.waiting
        counts.pairs += 1
        counts.changes += int(item.label != life.label)
        for number, state, box in _list_new_frames(scene, item):
            if state == UNSURE:
                continue
            counts.states[state] += 1
            changed = state == DETECTED and item.label != life.label
            if state in LOST or changed:
                after = item.label if changed else life.label
                x0, y0, x1, y1 = (round(float(side), 1) for side in box)
                counts.events.append(
                    ObjectEvent(number, (x0, y0, x1, y1), life.label, after, state)
                )
        life.label = item.label
        life.detections += 1
        if life.waiting is not None and life.detections >= LEAST:
            settled.add(life.waiting)
            life.waiting = None


def _list_new_frames(
    scene: Scene, item: TrackedObject
) -> Iterable[tuple[int, int, NDArray[np.float64]]]:
    """Number, state and box of each frame after an object's last detection but one."""
    if item.places[-1] == item.places[-2] + 1:
        place = item.places[-1]
        box = move_boxes(scene.raw.boxes[item.detections[-1]], scene.camera[place])
        return [(int(scene.rows[place]), DETECTED, box)]
    since = replace(item, places=item.places[-2:], detections=item.detections[-2:])
    frames = scene.sort_frames(since)
    # the first is the detection before, which counts already
    states = frames.state[1:].tolist()
    return zip(frames.row[1:].tolist(), states, frames.boxes[1:], strict=True)


def _append(
    scene: Scene,
    times: Sequence[float],
    camera: NDArray[np.float64],
    detections: Detections,
) -> Scene:
    """A scene with one more frame; its detections above the noise, the best first.

    `times`: its number, which is its row, seconds and clock. `camera`: (2,) as of `Scene`;
    the boxes of `detections` are without that motion.
    """
    number, seconds, clock = times
    new = take(detection_table([detections]), rank(detections.scores))
    first = len(scene.raw)
    return Scene(
        np.append(scene.rows, int(number)),
        np.append(scene.seconds, seconds),
        np.append(scene.clock, clock),
        np.concatenate([scene.camera, camera[None]]),
        BoxTable(
            np.append(scene.raw.image, np.full(len(new), len(scene.rows))),
            np.append(scene.raw.label, new.label),
            np.concatenate([scene.raw.boxes, new.boxes]),
            np.append(scene.raw.score, new.score),
            np.append(scene.raw.crowd, new.crowd),
            np.append(scene.raw.area, new.area),
        ),
        [*scene.detections, np.arange(first, first + len(new))],
        scene.score,
    )


def _drop(scene: Scene, frames: int) -> tuple[Scene, int]:
    """A scene without its first frames, and the number of detections dropped with them."""
    rows = sum(map(len, scene.detections[:frames]))
    rest = take(scene.raw, np.arange(rows, len(scene.raw)))
    return Scene(
        scene.rows[frames:],
        scene.seconds[frames:],
        scene.clock[frames:],
        scene.camera[frames:],
        replace(rest, image=rest.image - frames),
        [places - rows for places in scene.detections[frames:]],
        scene.score,
    ), rows
