"""Frames of a live stream, which may fail and come back."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Condition, Event, Thread
from typing import Any
from urllib.parse import urlsplit

import av
import numpy as np

from steadyeye.core.errors import SampleError, one_line
from steadyeye.core.types import Image
from steadyeye.data.video.decoder import follow_matrix
from steadyeye.data.video.video_index import picture_stream
from steadyeye.watch.frames import FeedMark, FrameCounts, LiveFrame, Thinning, convert

TIMEOUT = {"rtsp": 10.0, "rtsps": 10.0, "http": 30.0, "https": 30.0}
"""Seconds without data after which a stream counts as lost; HLS comes a segment at a time."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a lost stream is opened again; each time twice as many."""
STEADY = 10.0
"""Seconds a stream has to last for the next wait to be the first one again."""
EARLY = 5.0
"""Seconds by which a frame may come early before the clock of the stream is set anew."""

Picture = tuple[float | None, Callable[[], Image]]
"""Seconds by the stream's own clock, None where it says none; and the pixels on call."""


class StreamFeed:
    """The newest frame of a live stream, read by a separate thread, which reconnects.

    A new frame replaces one that was not taken yet, which counts as `left_out`.
    """

    mark = FeedMark()
    has_timestamps = False

    def __init__(self, source: str, counts: FrameCounts, thinned: Thinning) -> None:
        self.counts, self.thinned = counts, thinned
        self.status = "connecting"
        self.is_over = False
        scheme = urlsplit(source).scheme
        # segments come in bursts: their frames are given out when they are due
        self._paced = scheme in ("http", "https")
        self._connect: Callable[[], Iterator[Picture]] = (
            partial(read_address, source, TIMEOUT[scheme])
            if scheme
            else partial(read_camera, source)
        )
        self._clock = StreamClock(self._paced)
        self._scene = 0
        self._lost: float | None = None
        self._newest: LiveFrame | None = None
        self._arrival = Condition()
        self._stop = Event()
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._read, name="stream", daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> LiveFrame | None:
        """The newest frame; None if none comes within `seconds`."""
        with self._arrival:
            if self._newest is None and self._failure is None:
                self._arrival.wait(seconds)
            frame, self._newest = self._newest, None
        if self._failure is not None:
            raise self._failure
        return frame

    def close(self) -> None:
        """Ends the thread; one that waits for data ends with the process at the latest."""
        self._stop.set()
        self._thread.join(2)

    def _read(self) -> None:
        wait = FIRST_WAIT
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                reason = self._read_until_lost()
                if self._stop.is_set():
                    return
                if time.monotonic() > began + STEADY:
                    wait = FIRST_WAIT
                if self._lost is None:
                    self.counts.lost_streams += 1
                else:
                    self.counts.seconds_down += time.monotonic() - self._lost
                self._lost = time.monotonic()
                self.status = f"no stream: {reason}; the next try is in {wait:g} s"
                self._clock.forget()
                self._scene += 1
                if self._stop.wait(wait):
                    return
                wait = min(2 * wait, LONGEST_WAIT)
        except BaseException as error:  # raised in the thread that takes frames
            self._failure = error
            with self._arrival:
                self._arrival.notify()

    def _read_until_lost(self) -> str:
        """Reads the stream until it ends; returns why it ended."""
        try:
            for own, image in self._connect():
                self._end_outage()
                self.counts.received += 1
                if self._offer(own, image):
                    return ""
        except (av.FFmpegError, OSError, SampleError) as error:
            return one_line(error)
        return "it ended"

    def _end_outage(self) -> None:
        if self._lost is not None:
            self.counts.seconds_down += time.monotonic() - self._lost
            self._lost = None
        self.status = "connected"

    def _offer(self, own: float | None, image: Callable[[], Image]) -> bool:
        """Hands a frame to `take` when it is due; returns whether the feed must end."""
        seconds, wait, is_cut = self._clock.read(own, time.time())
        self._scene += is_cut
        if not self.thinned.takes(seconds):
            self.counts.thinned += 1
            # also what is passed over is waited for, or the stream would be read in bursts
            return self._stop.wait(wait) if wait else self._stop.is_set()
        if wait and self._stop.wait(wait):
            return True
        frame = LiveFrame(self.counts.received - 1, seconds, self._scene, image)
        with self._arrival:
            self.counts.left_out += self._newest is not None
            self._newest = frame
            self._arrival.notify()
        return self._stop.is_set()


class StreamClock:
    """The time of a frame, from the stream's timestamps and the clock.

    `paced`: whether frames that arrive before they are due, as with HLS, wait until then.
    """

    def __init__(self, paced: bool) -> None:
        self.paced = paced
        self.origin: float | None = None
        self.last = 0.0

    def forget(self) -> None:
        """Starts again for a stream that was opened again."""
        self.origin = None

    def read(self, own: float | None, now: float) -> tuple[float, float, bool]:
        """Seconds of a frame, how long it must wait, and whether the stream jumped before it.

        `own`: the timestamp of the stream, None for the first frame after it was opened. The
        seconds of consecutive frames always rise.
        """
        if own is None:
            due = now
        elif self.origin is None or not self.paced:
            # the frame that came with the least delay sets the clock
            origin = now - own
            is_near = self.origin is not None and abs(origin - self.origin) < EARLY
            self.origin = min(origin, self.origin) if is_near and self.origin else origin
            due = self.origin + own
        else:
            due = self.origin + own
            if not now <= due < now + EARLY:
                # a segment that came late: all behind it is as late, and no burst
                self.origin, due = now - own, now
        is_cut = bool(self.last) and abs(due - self.last) > EARLY
        due = due if due > self.last or is_cut else self.last + 0.001
        self.last = due
        return due, max(due - now, 0.0) if self.paced else 0.0, is_cut


def read_address(address: str, timeout: float) -> Iterator[Picture]:
    """The pictures of a stream, RTSP over TCP. Raises PyAV's errors if the stream is lost."""
    options = {"rtsp_transport": "tcp"} if address.startswith("rtsp") else {}
    with av.open(address, timeout=(timeout, timeout), options=options) as container:
        stream = picture_stream(container)
        if stream is None:
            raise SampleError("the address has no video stream")
        # the times of a camera's single JPEGs are made up by FFmpeg: 25 a second
        has_clock = container.format.name != "mpjpeg"
        matrix = None
        for native in container.decode(stream):
            matrix = follow_matrix(native, matrix)
            if not native.is_corrupt:
                yield native.time if has_clock else None, partial(convert, native, matrix)


def read_camera(path: str) -> Iterator[Picture]:
    """The pictures of a camera of this machine, by OpenCV: PyAV's wheels have no V4L2."""
    import cv2

    camera = cv2.VideoCapture(path)
    try:
        while True:
            read, picture = camera.read()
            if not read:
                raise SampleError(f"the camera '{path}' sends no frames")
            yield None, partial(_swap_channels, picture)
    finally:
        camera.release()


def _swap_channels(picture: Any) -> Image:
    """OpenCV's BGR as RGB."""
    return np.ascontiguousarray(picture[..., ::-1], dtype=np.uint8)
