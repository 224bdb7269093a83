"""Runs a watch: predicts frames, sums blocks, updates bounds and alarms, and stores them."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core.abilities import detects
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.format import number_of, percent, span
from steadyeye.core.model_stages import stages
from steadyeye.core.storage.files import make_folder
from steadyeye.core.types import Detector, Image, Model
from steadyeye.data.video.video_notes import describe_display
from steadyeye.metrics.sequences.scenes import APART
from steadyeye.runner.infer import describe_box_fault
from steadyeye.watch.frame_ring import FrameRing
from steadyeye.watch.frames import Feed, FeedMark, FrameCounts, is_live, read_clock, redact
from steadyeye.watch.measures import (
    OF_DETECTORS,
    Answer,
    Block,
    Observer,
    summarize_detections,
    summarize_scores,
)
from steadyeye.watch.memory import (
    Memory,
    WatchSettings,
    describe_memory,
    read_memory,
    write_memory,
)
from steadyeye.watch.prepare_ahead import PrepareAhead, PreparedFrame
from steadyeye.watch.promises import Watched
from steadyeye.watch.series import Series
from steadyeye.watch.webhook import Webhooks

SHOWN = 12
"""Stored frames that are shown."""
SPARSE = (
    f"frames are more than {APART:g} s apart, too far to follow objects: blink_rate and "
    "class_change_rate are not measured"
)
DAMAGED = (
    "more than 1 % of the frames are damaged and left out, also those after a lost frame, up to "
    "the next key frame"
)
RECENT = 10.0
"""Seconds whose frames make the rate of frames."""
TICK = 1.0
"""Seconds from one snapshot to the next."""


class Watch:
    """A running watch. `latest`: the values that the page shows, replaced as a whole.

    `start`: the same when it began, or went on. `say`: prints a line.
    """

    def __init__(
        self,
        settings: WatchSettings,
        model: Model | Detector,
        feed: Callable[[Memory], Feed],
        out: Path,
        say: Callable[[str], None],
    ) -> None:
        self.settings, self.model, self.out, self.say = settings, model, out, say
        self.names = model.classes.names if model.classes else ()
        _check_promises(settings, model)
        make_folder(out)
        self.memory = read_memory(settings, model, out)
        self.memory.starts += 1
        self.ring = FrameRing(out / "frames", settings.keep)
        self.webhooks = Webhooks((), say)
        self.feed = feed(self.memory)
        self.observer = Observer(
            self.names, settings.block, self.memory.reference, self.feed.has_timestamps
        )
        # frames of a live stream since the last save are lost
        self._goes_on = not is_live(settings.source)
        if self._goes_on:
            self.ring.delete_from(int(self.memory.counts.received))
        if self.memory.observer is not None:
            self.observer.resume(self.memory.observer)
        self._has_alert = False
        self._stages = stages(model)  # type: ignore[arg-type]
        self._tick = 0.0
        self._is_sparse = False
        self._said: set[str] = set()
        self._fault = ""
        self._status = ""
        self._is_over = False
        self._block_began: float | None = None
        self._began = time.monotonic()
        self._times: deque[float] = deque()
        self.start = self.latest = self.describe()

    @property
    def was_broken(self) -> bool:
        """Whether any promise was ever broken, before a restart too."""
        return any(watched.broken for watched in self.memory.watched)

    @property
    def _ends_at_alert(self) -> bool:
        return self._has_alert and self.settings.stop_at_alert

    def run(self) -> None:
        """Watches until the source ends, or until the first alert with `stop_at_alert`."""
        frames = PrepareAhead(self.feed, self._prepare, detects(self.model))
        try:
            while not frames.is_over:
                frame = frames.take(TICK / 2)
                if frame is not None:
                    self._observe(frame)
                self._look_around()
                if self._ends_at_alert:
                    break
        finally:
            frames.close()
        self._is_over = frames.is_over
        self._add_block(self.observer.end_block())
        self._say_unmeasured()
        if self._is_over:
            self._save(self.memory.counts, self.feed.mark)
        self.latest = self.describe()

    def _observe(self, frame: PreparedFrame) -> None:
        """Predicts a frame and adds it to its block."""
        memory = self.memory
        answer = self._ask(frame.prepared)
        if answer is None:
            memory.failed += 1
            return
        complete = self.observer.begin_block(frame.seconds)
        if complete is not None:
            self._add_block(complete)
            # the frame belongs to the next block: a restart begins with it
            self._save(replace(frame.counts, received=frame.number), frame.mark)
            if self._ends_at_alert:
                return
        self._times.append(time.monotonic())
        now = _read_date()
        stamp = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z"
        self.ring.buffer(frame.number, frame.seconds, stamp, frame.image, frame.size)
        # a restart begins with the first frame of a block, and does not know the one before
        if frame.change is not None and self.observer.block.frames:
            self.observer.block.changes.append(frame.change)
        events = self.observer.add(
            frame.number,
            frame.scene,
            frame.seconds,
            frame.quantities,
            answer,
            frame.projections,
        )
        for event in events:
            if self._is_wanted(event.measure):
                more = {"time": now.isoformat(timespec="milliseconds")}
                self._write(partial(self.ring.store, event, more))
        memory.processed += 1
        self._block_began = frame.seconds // self.settings.block * self.settings.block

    def _prepare(self, image: Image) -> Any:
        """The input of the model for a frame."""
        with self._explain_failure():
            return self._stages.prepare(image)

    def _ask(self, prepared: Any) -> Answer | None:
        """The answer of the model; None if it is invalid, such as NaN."""
        with self._explain_failure():
            (output,) = self._stages.infer([prepared])
        if isinstance(output, Detections):
            fault = describe_box_fault(output, len(self.names))
            return None if fault else summarize_detections(output)
        return summarize_scores(output) if np.isfinite(output).all() else None

    @contextmanager
    def _explain_failure(self) -> Iterator[None]:
        """The error as one of the model, which is the user's code."""
        try:
            yield
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"{self.model.name} failed: {one_line(error)}") from error

    def _is_wanted(self, measure: str) -> bool:
        """Whether frames of a measure are stored: only those of promises, if there are any."""
        promised = [watched.promise.measure for watched in self.memory.watched]
        return measure in promised or not promised

    def _add_block(self, block: Block | None) -> None:
        if block is None or self._block_began is None:
            return
        # a few frames weigh as much as a block and depend on those before; a short file counts
        is_all = self._is_over and not self.memory.series
        if not is_all and not block.covers(self.settings.block):
            return
        values = block.values()
        self.memory.repeats.add(block.changes)
        self._is_sparse = block.is_sparse and detects(self.model)
        self._say_notes()
        for name, value in values.items():
            series = self.memory.series.setdefault(name, Series())
            series.add(self._block_began, value, self.settings.period)
        self.memory.watched = tuple(
            self._judge(watched, values.get(watched.promise.measure))
            for watched in self.memory.watched
        )

    def _judge(self, before: Watched, value: float | None) -> Watched:
        """The promise after one more block, with an alert if its state changed."""
        if value is None:
            return before
        after = before.add(value, self.settings.every)
        if after.is_broken == before.is_broken:
            return after
        promise = after.promise
        kind = "broken" if after.is_broken else "kept again"
        estimate = self.memory.series[promise.measure].describe()["period"]
        alert = {
            "version": 1,
            "event": kind,
            "promise": str(promise),
            "measure": promise.measure,
            "last_block": value,
            "period": estimate,
            "time": _read_date().isoformat(timespec="milliseconds"),
            "source": redact(self.settings.source),
            "model": self.model.name,
            "frames": [n for n in self.ring.names if promise.measure in n][-5:],
        }
        self.memory.alerts.append(alert)
        self._has_alert |= after.is_broken
        self.webhooks.post(alert)
        self.say(
            f"{kind}: {promise} (last block {percent(value)}, this period {say_share(estimate)})"
        )
        return after

    def _look_around(self) -> None:
        """Once a second, updates `latest` and prints a line if the state of the source changed."""
        if time.monotonic() < self._tick + TICK:
            return
        self._tick = time.monotonic()
        self._say_notes()
        # the command's own end shows the end of a file
        silent = self.feed.status.startswith(("reading", "ended"))
        if self.feed.status != self._status and not silent:
            self._status = self.feed.status
            self.say(self._status)
        self.latest = self.describe()

    def _list_notes(self) -> dict[str, str]:
        """What is not measured or written now, and why; each by what it is printed once for."""
        counts = self.memory.counts
        notes = {
            SPARSE: self._is_sparse,
            DAMAGED: counts.damaged > counts.received / 100,
            self._fault: self._fault,
        }
        by_reason = {note: note for note, applies in notes.items() if applies}
        for display in tuple(self.feed.displays):  # its thread may add one
            by_reason |= {text: f"frames {text}" for text in describe_display(display)}
        repeats = self.memory.repeats
        if repeats.repeated:
            by_reason[f"repeats {repeats.begun}"] = repeats.describe()
        return by_reason

    def _say_notes(self) -> None:
        """Prints each note once, that on repeated frames each time they begin."""
        for name, note in self._list_notes().items():
            if name not in self._said:
                self._said.add(name)
                self.say(note)

    def _say_unmeasured(self) -> None:
        """Prints at the end which promises have no block with a value."""
        self._say_notes()
        for watched in self.memory.watched:
            if watched.promise.measure not in self.memory.series:
                self.say(f"not measured: {watched.promise} (no block has a value)")

    def describe(self) -> dict[str, Any]:
        """The state of the source, of each measure and of each promise, as the page shows it."""
        settings, ring = self.settings, self.ring
        return {
            **describe_memory(self.memory),
            "source": redact(settings.source),
            "model": self.model.name,
            "kind": "detector" if detects(self.model) else "classifier",
            "status": self.feed.status,
            "is_over": self._is_over,
            "time": read_clock(),
            "notes": [*self._list_notes().values()],
            "block": settings.block,
            "period": settings.period,
            "days": settings.days,
            "rate": self._measure_rate(),
            "frames": {
                "names": ring.names[-SHOWN:][::-1],
                "number": len(ring.names),
                "bytes": ring.size,
                "most": settings.keep,
                "left_out": ring.left_out,
            },
            "webhooks": {"sent": self.webhooks.deliveries, "failed": self.webhooks.failures},
        }

    def _measure_rate(self) -> float:
        """Frames per second in the last `RECENT` seconds."""
        now = time.monotonic()
        while self._times and self._times[0] < now - RECENT:
            self._times.popleft()
        return len(self._times) / min(max(now - self._began, 1.0), RECENT)

    def _save(self, counts: FrameCounts, mark: FeedMark) -> None:
        """Writes the state after the frames of `counts`."""
        self.memory.mark = mark
        self.memory.observer = self.observer.record() if self._goes_on else None
        self._write(partial(write_memory, self.memory, self.settings, self.model, self.out, counts))

    def _write(self, write: Callable[[], object]) -> None:
        """Writes to the folder. Of what is live the watch goes on where that cannot be."""
        try:
            write()
            self._fault = ""
        except UsageError as error:
            if self._goes_on:
                raise
            self._fault = f"{str(error).partition(';')[0]}; the watch goes on without"


def _read_date() -> datetime:
    return datetime.fromtimestamp(read_clock(), UTC)


def _check_promises(settings: WatchSettings, model: Model | Detector) -> None:
    """Raises `UsageError` for a promise about objects where the model is no detector."""
    for promise in settings.promises:
        if promise.measure in OF_DETECTORS and not detects(model):
            raise UsageError(
                f"'{promise}' needs a detector, and {model.name} is a classifier; give another "
                "--model, or a promise about flip_rate or confidence"
            )


def say_share(estimate: Mapping[str, Any]) -> str:
    """A value with its bounds and n in words."""
    if estimate["value"] is None:
        return "no blocks yet"
    ends = span(estimate["low"], estimate["high"], "share")
    blocks = number_of(estimate["n"], "block")
    return f"{percent(estimate['value'])}, 95 % interval {ends}, {blocks}"
