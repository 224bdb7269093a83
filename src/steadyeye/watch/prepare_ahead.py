"""The next frame of a source, measured and prepared while the model processes the one before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Condition, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image
from steadyeye.metrics.covariates.projections import measure_projections
from steadyeye.watch.frames import Feed, FeedMark, FrameCounts
from steadyeye.watch.measures import FrameChange, ShrunkFrames

POLL = 0.5
"""Seconds from one look at whether the watch was closed to the next, while no frame comes."""
JOIN_TIMEOUT = 5.0
"""Seconds that `close` waits for the thread; one that hangs ends with the process."""


@dataclass(frozen=True)
class PreparedFrame:
    """A frame as its model takes it.

    `number`, `scene`, `seconds`, `image`: as of `LiveFrame`; the pixels have `size` bytes.
    `prepared`: the output of `prepare` for them. `quantities`, `change`: of `ShrunkFrames`.
    `projections`: of `measure_projections`, None for a classifier.
    `counts`, `mark`: of its feed when the frame was taken; the feed itself may be a frame ahead.
    """

    number: int
    scene: int
    seconds: float
    image: Callable[[], Image]
    size: int
    prepared: Any
    quantities: Mapping[str, float]
    change: FrameChange | None
    projections: NDArray[np.float32] | None
    counts: FrameCounts
    mark: FeedMark


class PrepareAhead:
    """The frames of a feed, prepared by a separate thread, at most one frame ahead.

    `prepare`: the function for the pixels of each frame, such as that of `Stages`. A frame of a
    live stream waits no longer than the model takes for the frame before it. Frames that cannot be
    decoded are counted as damaged and passed over. `detects`: whether the model is a detector.
    """

    def __init__(self, feed: Feed, prepare: Callable[[Image], Any], detects: bool = False) -> None:
        self.feed, self.prepare, self.detects = feed, prepare, detects
        self.is_over = False
        self._shrunk = ShrunkFrames()
        self._next: PreparedFrame | None = None
        self._failure: BaseException | None = None
        self._has_ended = self._is_closed = False
        self._change = Condition()
        self._thread = Thread(target=self._run, name="prepare ahead", daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> PreparedFrame | None:
        """The next frame; None if none comes within `seconds`.

        Raises the errors of the feed and of `prepare`, after the frames before them.
        """
        with self._change:
            self._change.wait_for(lambda: self._next or self._has_ended, seconds)
            frame, self._next = self._next, None
            self._change.notify_all()
        if frame is None and self._has_ended:
            self.is_over = True
            if self._failure is not None:
                raise self._failure
        return frame

    def close(self) -> None:
        """Ends the thread, which closes the feed."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()
        self._thread.join(JOIN_TIMEOUT)

    def _run(self) -> None:
        try:
            while self._wait_for_room() and not self.feed.is_over:
                frame = self._prepare()
                with self._change:
                    self._next = frame
                    self._change.notify_all()
        except BaseException as error:  # raised in the thread that takes frames
            self._failure = error
        finally:
            self.feed.close()
            with self._change:
                self._has_ended = True
                self._change.notify_all()

    def _wait_for_room(self) -> bool:
        """Waits until the frame before was taken; returns whether the watch continues."""
        with self._change:
            self._change.wait_for(lambda: self._next is None or self._is_closed)
            return not self._is_closed

    def _prepare(self) -> PreparedFrame | None:
        frame = self.feed.take(POLL)
        if frame is None:
            return None
        counts, mark = replace(self.feed.counts), self.feed.mark
        try:
            image = frame.image()
        except SampleError:
            self.feed.counts.damaged += 1
            return None
        # before the model's code, which may change the pixels
        quantities, change = self._shrunk.measure(frame.number, frame.scene, image)
        projections = measure_projections(image) if self.detects else None
        return PreparedFrame(
            frame.number,
            frame.scene,
            frame.seconds,
            frame.image,
            image.nbytes,
            self.prepare(image),
            quantities,
            change,
            projections,
            counts,
            mark,
        )
