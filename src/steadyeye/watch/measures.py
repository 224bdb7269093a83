"""What is measured of a stream: rates of blocks of time, from frames and a model's answers."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections, reach_score
from steadyeye.core.types import Image
from steadyeye.data.video.repeated_frames import share_changed
from steadyeye.metrics.covariates.pm_set_measures import Luma, luma
from steadyeye.metrics.covariates.pm_set_measures import frame as measure_frame
from steadyeye.metrics.sequences.scenes import APART
from steadyeye.metrics.sequences.tracklets import DETECTED, SCORE
from steadyeye.watch.live_objects import LiveObjects, ObjectCounts
from steadyeye.watch.reference import Reference

MEASURES: Mapping[str, str] = {
    "flip_rate": "Share of pairs of consecutive frames whose top-1 class changes",
    "blink_rate": "Share of an object's frames, first to last, in which it is not detected",
    "class_change_rate": "Share of an object's consecutive detections whose classes differ",
    "confidence": "Mean confidence of predictions, or mean score of detections",
    "confidence_drift": "Share of frames with a confidence outside the reference range",
    "input_drift": "Share of frames outside the reference brightness, contrast or sharpness",
}
"""What a watch measures, each 0…1."""
OF_DETECTORS = ("blink_rate", "class_change_rate")
PAIR = 10.0
"""Seconds between two frames up to which a change of class from one to the next is a flip."""
JITTER = 0.02
"""Seconds by which frames of a stream may come late: of 5 a second half are a little late."""
SMALL = 320
"""Pixels of the longer side at which brightness, contrast and sharpness are measured."""


FrameChange: TypeAlias = tuple[float, int]
"""The share of pixels, 0…1, that change from an earlier frame, and by how many frames earlier."""


@dataclass(frozen=True)
class Answer:
    """The prediction of a model for a frame.

    `label`: its best class, −1 if a detector detects nothing. `confidence`: 0…1, None if it detects
    nothing. `detections`: all detections of a detector.
    """

    label: int
    confidence: float | None
    detections: Detections | None = None


@dataclass(frozen=True)
class FrameEvent:
    """A frame that counts against a measure: its number, the measure, and the reason."""

    frame: int
    measure: str
    text: str
    box: tuple[float, float, float, float] | None = None


@dataclass
class Block:
    """A block of time: the sum and the number of the values of each measure."""

    frames: int = 0
    sums: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    numbers: Counter[str] = field(default_factory=Counter)
    gaps: list[float] = field(default_factory=list)
    changes: list[FrameChange] = field(default_factory=list)

    def add(self, measure: str, total: float, number: int = 1) -> None:
        """Adds values of a measure by their sum."""
        self.sums[measure] += total
        self.numbers[measure] += number

    @property
    def is_sparse(self) -> bool:
        """Whether frames are too far apart to follow objects."""
        return bool(self.gaps) and float(np.median(self.gaps)) > APART + JITTER

    def covers(self, seconds: float) -> bool:
        """Whether its frames cover at least half of `seconds`, or each frame stands alone."""
        return not self.gaps or sum(self.gaps) >= seconds / 2

    def values(self) -> dict[str, float]:
        """The mean of each measure that has any value, 0…1."""
        values = {
            name: min(max(self.sums[name] / n, 0.0), 1.0) for name, n in self.numbers.items() if n
        }
        if self.is_sparse:
            values = {name: value for name, value in values.items() if name not in OF_DETECTORS}
        return values


class Observer:
    """Goes through a stream frame by frame and fills blocks of `seconds`.

    `names`: of the model's classes. `reference`: what the input and the confidence are compared
    with. `has_timestamps`: of the `Feed`; motion of objects is measured by timestamps as long as
    these rise, otherwise by frame numbers.
    """

    def __init__(
        self,
        names: Sequence[str],
        seconds: float,
        reference: Reference,
        has_timestamps: bool = False,
    ) -> None:
        self.names, self.seconds, self.reference = names, seconds, reference
        self._moves_by_time = has_timestamps
        self.objects = LiveObjects()
        self.block = Block()
        self._number = -1
        self._scene: int | None = None
        self._before: tuple[float, int] | None = None

    def add(
        self,
        number: int,
        scene: int,
        seconds: float,
        quantities: Mapping[str, float],
        answer: Answer,
        projections: NDArray[np.float32] | None = None,
    ) -> list[FrameEvent]:
        """Counts a frame in the block and returns the events that count against a measure.

        `quantities`: what `measure_input` gives for the frame. `projections`: as of `LiveObjects`.
        """
        seconds = self._continue_scene(scene, seconds)
        events = self._compare(number, seconds, answer.label)
        if answer.detections is not None:
            clock = seconds if self._moves_by_time else float(number)
            counts = self.objects.add(number, seconds, clock, answer.detections, projections)
            events += self._count_objects(counts)
        self._measure(seconds, quantities, answer)
        self.block.frames += 1
        self._before = seconds, answer.label
        return events

    def end_block(self) -> Block | None:
        """The block so far, if it has a frame; the next frame begins a new block."""
        block, self.block = self.block, Block()
        return block if block.frames else None

    def begin_block(self, seconds: float) -> Block | None:
        """The block that ends at the time of a frame, if any; called before `add`."""
        number = int(seconds // self.seconds)
        if number == self._number:
            return None
        self._number = number
        return self.end_block()

    def record(self) -> dict[str, Any]:
        """Its memory of earlier frames for the state file, without the current block."""
        return {
            "scene": self._scene,
            "before": self._before,
            "moves_by_time": self._moves_by_time,
            "objects": self.objects.record(),
        }

    def resume(self, record: Mapping[str, Any]) -> None:
        """Goes on from a record."""
        self._scene, self._moves_by_time = record["scene"], record["moves_by_time"]
        self._before = record["before"] and (record["before"][0], record["before"][1])
        self.objects.resume(record["objects"])

    def _continue_scene(self, scene: int, seconds: float) -> float:
        """The time of a frame, later than the one before; a new scene begins after a gap."""
        last = self._before[0] if self._before else None
        if scene != self._scene or (last is not None and abs(seconds - last) > PAIR):
            self._scene, self._before = scene, None
            self.objects.begin_scene()
            return seconds
        if last is None or seconds > last:
            return seconds
        if self._moves_by_time:
            self._moves_by_time = False
            self.objects.begin_scene()
        # files that were copied at once may carry one time, or be in no order
        return last + 1e-3

    def _compare(self, number: int, seconds: float, label: int) -> list[FrameEvent]:
        """Whether the class of the frame is another than before."""
        if self._before is None:
            return []
        last, before = self._before
        self.block.gaps.append(seconds - last)
        self.block.add("flip_rate", label != before)
        if label == before:
            return []
        text = f"{self._name(before)} → {self._name(label)}"
        return [FrameEvent(number, "flip_rate", text)]

    def _count_objects(self, counts: ObjectCounts) -> list[FrameEvent]:
        self.block.add("blink_rate", counts.lost_frames, counts.frames)
        self.block.add("class_change_rate", counts.changes, counts.pairs)
        events = []
        for event in counts.events:
            before, after = self._name(event.before), self._name(event.after)
            if event.state == DETECTED:
                text, measure = f"{before} → {after}", "class_change_rate"
            else:
                text, measure = f"{before} not found", "blink_rate"
            events.append(FrameEvent(event.frame, measure, text, event.box))
        return events

    def _measure(self, seconds: float, quantities: Mapping[str, float], answer: Answer) -> None:
        """Measures confidence and input, and compares them with the reference."""
        values = dict(quantities)
        if answer.confidence is not None:
            self.block.add("confidence", answer.confidence)
            values["confidence"] = answer.confidence
        for measure, is_outside in self.reference.add(seconds, values).items():
            self.block.add(measure, is_outside)

    def _name(self, label: int) -> str:
        if label < 0:
            return "nothing"
        # a function of Python may name no classes
        return self.names[label] if self.names else f"class {label}"


class ShrunkFrames:
    """Measures each frame at most `SMALL` pixels long, and its change from the frame before."""

    def __init__(self) -> None:
        self._before: tuple[int, int, Luma] | None = None

    def measure(
        self, number: int, scene: int, image: Image
    ) -> tuple[dict[str, float], FrameChange | None]:
        """Its `brightness`, `contrast` and `sharpness`, and its change.

        `number`, `scene`: of `LiveFrame`. No change for the first frame of a scene or a size.
        """
        grey = luma(_shrink(image))
        change: FrameChange | None = None
        if self._before is not None:
            last, other, before = self._before
            if other == scene and before.shape == grey.shape:
                change = share_changed(grey, before), number - last
        self._before = number, scene, grey
        return measure_frame(grey), change


def _shrink(image: Image) -> Image:
    """An image whose longer side has `SMALL` pixels at most, as OpenCV's INTER_AREA makes it."""
    height, width = image.shape[:2]
    scale = SMALL / max(height, width)
    if scale >= 1:
        return image
    tall, wide = max(round(height * scale), 1), max(round(width * scale), 1)
    step = width // wide
    if 2 < step < 256 and (tall * step, wide * step) == (height, width):
        # OpenCV takes three times as long; of squares of 2 it rounds otherwise
        out = np.empty((tall, wide, 3), dtype=np.uint8)
        _average_squares(np.ascontiguousarray(image).reshape(height, -1), step, out)
        return out
    return np.asarray(cv2.resize(image, (wide, tall), interpolation=cv2.INTER_AREA), dtype=np.uint8)


@njit(nogil=True, cache=True, boundscheck=False)
def _average_squares(rows: Any, step: int, out: Any) -> None:
    """Writes to `out`, (h, w, 3), the mean of each `step` × `step` pixels, rounded half to even.

    `rows`: (h · step, w · step · 3). Columns are added up first, of contiguous values.
    """
    sums = np.empty(rows.shape[1], dtype=np.uint16)
    pixels = sums.reshape(-1, step, 3)
    totals = np.empty((out.shape[1], 3), dtype=np.float32)
    share = np.float32(1) / np.float32(step * step)
    for y in range(out.shape[0]):
        sums[:] = 0
        for row in range(y * step, (y + 1) * step):
            for place in range(len(sums)):
                sums[place] += rows[row, place]
        for x in range(out.shape[1]):
            red = green = blue = np.uint32(0)
            for place in range(step):
                red += pixels[x, place, 0]
                green += pixels[x, place, 1]
                blue += pixels[x, place, 2]
            totals[x, 0], totals[x, 1], totals[x, 2] = red, green, blue
        # a loop of its own, of several values at once
        means, line = totals.reshape(-1), out[y].reshape(-1)
        for place in range(len(means)):
            line[place] = np.uint8(np.rint(means[place] * share))


def summarize_scores(scores: NDArray[np.floating]) -> Answer:
    """A classifier's answer from its (classes,) scores: probabilities as they are, else softmax."""
    best = int(scores.argmax())
    values = scores.astype(np.float64)
    if values.min() < 0 or values.max() > 1:
        values = np.exp(values - values.max())
        values /= values.sum()
    return Answer(best, float(values[best]))


def summarize_detections(detections: Detections) -> Answer:
    """A detector's answer from its detections with a score of at least `SCORE`.

    It has the class of the best one, and their mean score.
    """
    strong = reach_score(detections.scores, SCORE)
    if not strong.any():
        return Answer(-1, None, detections)
    best = int(detections.labels[detections.scores.argmax()])
    return Answer(best, float(detections.scores[strong].mean()), detections)
