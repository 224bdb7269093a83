"""Frames of a live stream, which may fail and come back."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Condition, Event, Thread
from urllib.parse import urlsplit

import av

from steadyeye.core.errors import SampleError, one_line
from steadyeye.data.video.video_index import Display
from steadyeye.watch.frames import FeedMark, FrameCounts, LiveFrame, Thinning, read_clock
from steadyeye.watch.stream_pictures import PacketHistory, StreamPicture, read_address, read_camera

TIMEOUT = {"rtsp": 10.0, "rtsps": 10.0, "http": 30.0, "https": 30.0}
"""Seconds without data after which a stream counts as lost; HLS comes a segment at a time."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before a lost stream is opened again; each time twice as many."""
STEADY = 10.0
"""Seconds a stream has to last for the next wait to be the first one again."""
EARLY = 5.0
"""Seconds by which a frame may come early before the clock of the stream is set anew."""


class StreamFeed:
    """The newest frame of a live stream, read by a separate thread, which reconnects.

    A new frame replaces one that was not taken yet, which counts as `left_out`.
    """

    mark = FeedMark()
    has_timestamps = False

    def __init__(self, source: str, counts: FrameCounts, thinned: Thinning) -> None:
        self.counts, self.thinned = counts, thinned
        self.displays: set[Display] = set()
        self.status = "connecting"
        self.is_over = False
        scheme = urlsplit(source).scheme
        # segments come in bursts: their frames are given out when they are due
        self._paced = scheme in ("http", "https")
        self._connect: Callable[[], Iterator[StreamPicture | None]] = (
            partial(read_address, source, TIMEOUT[scheme], PacketHistory())
            if scheme
            else partial(read_camera, source)
        )
        self._clock = StreamClock(self._paced)
        self._scene = 0
        self._size = (0, 0)
        self._is_lost = False
        self._seen = time.monotonic()
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
                if not self._is_lost:
                    self.counts.lost_streams += 1
                self._is_lost = True
                self._count_seconds_down()
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
            for picture in self._connect():
                self._end_outage()
                self.counts.received += 1
                if picture is None:
                    self.counts.damaged += 1
                    self._scene += 1
                else:
                    self._offer(picture)
                if self._stop.is_set():
                    return ""
        except (av.FFmpegError, OSError, SampleError) as error:
            return one_line(error)
        return "it ended"

    def _end_outage(self) -> None:
        if self._is_lost:
            self._count_seconds_down()
            self._is_lost = False
        self._seen = time.monotonic()
        self.status = "connected"

    def _count_seconds_down(self) -> None:
        """Counts the time since the last picture, or since it was counted last."""
        now = time.monotonic()
        self.counts.seconds_down += now - self._seen
        self._seen = now

    def _offer(self, picture: StreamPicture) -> None:
        """Puts a frame where `take` finds it, at its time."""
        seconds, wait, is_cut = self._clock.read(picture.seconds, read_clock())
        # boxes of another size lie elsewhere
        self._scene += is_cut or picture.size != self._size
        self._size = picture.size
        self.displays.add(picture.display)
        if not self.thinned.takes(seconds):
            self.counts.thinned += 1
            # also what is passed over is waited for, or the stream would be read in bursts
            self._stop.wait(wait)
            return
        if self._stop.wait(wait):
            return
        frame = LiveFrame(self.counts.received - 1, seconds, self._scene, picture.image)
        with self._arrival:
            self.counts.left_out += self._newest is not None
            self._newest = frame
            self._arrival.notify()


class StreamClock:
    """The time of a frame, from the stream's timestamps and the clock.

    `paced`: whether frames that arrive before they are due, as with HLS, wait until then.
    """

    def __init__(self, paced: bool) -> None:
        self.paced = paced
        self.origin: float | None = None
        self.last_own = 0.0
        self.last = 0.0

    def forget(self) -> None:
        """Starts again for a stream that was opened again."""
        self.origin = None

    def read(self, own: float | None, now: float) -> tuple[float, float, bool]:
        """Seconds of a frame, how long it must wait, and whether the stream jumped before it.

        `own`: the timestamp of the stream, None for the first frame after it was opened. The
        seconds of consecutive frames always rise.
        """
        due = now if own is None else self._date(own, now)
        is_cut = bool(self.last) and abs(due - self.last) > EARLY
        due = due if due > self.last or is_cut else self.last + 0.001
        self.last = due
        return due, max(due - now, 0.0) if self.paced else 0.0, is_cut

    def _date(self, own: float, now: float) -> float:
        """When a frame was taken of which the stream says a time of its own."""
        if own < self.last_own:
            self.forget()  # the stream set its clock
        due = expected = None if self.origin is None else self.origin + own
        if due is None or abs(due - now) >= EARLY:
            due = max(now, self.last)
        elif self.paced:
            # a segment that came late: all after it is as late, and no burst
            due = max(due, now)
        else:
            # the frame that came with the least delay sets the clock
            due = min(due, now)
        if due != expected:
            self.origin = due - own
        self.last_own = own
        return due
