"""Frames of a video file, and of a folder that fills with pictures and videos."""

import os
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from itertools import repeat
from pathlib import Path
from stat import S_ISREG
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.prepare_ahead import prepare_ahead
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.images.image_file import read as read_image
from steadyeye.data.video.damage import Damage, decode_with_damage, read_to_end
from steadyeye.data.video.decoder import follow_matrix, to_rgb
from steadyeye.data.video.paths import VIDEOS
from steadyeye.data.video.video_index import (
    Display,
    open_video,
    picture_stream,
    read_display,
)
from steadyeye.watch.frames import FeedMark, FrameCounts, LiveFrame, Thinning
from steadyeye.watch.packet_losses import LOG_PACKETS, PacketLosses, read_packet_losses

POLL = 0.5
"""Seconds from one look into a folder to the next; a file that grew meanwhile is still written."""
LOOK_SHARE = 0.1
"""The share of its time that a feed looks into a folder of very many files, at most."""
ENDINGS = frozenset((*SUFFIXES, *VIDEOS))
AHEAD = 2
"""Frames of a video file that are decoded ahead."""


class FileFeed:
    """Every frame of a video file, as fast as they are taken; decoded by a separate thread.

    `skipped`: number of frames at its start to skip, because `counts` has them already.
    """

    mark = FeedMark()
    has_timestamps = True

    def __init__(
        self, path: Path, counts: FrameCounts, thinned: Thinning, skipped: int = 0
    ) -> None:
        self.path, self.counts, self.thinned = path, counts, thinned
        self.displays: set[Display] = set()
        self.is_over = False
        self.status = "reading"
        self._skipped = skipped
        reading = repeat(self._read())
        self._frames = prepare_ahead(reading, next, 1, AHEAD + 1, "decode ahead")

    def take(self, seconds: float) -> LiveFrame | None:
        """The next frame; None at the end. Raises `UsageError` where it is no video."""
        frame, counts = next(self._frames, (None, FrameCounts()))
        self.counts.add(counts)
        if frame is None:
            self.is_over, self.status = True, "ended"
            self.close()
        return frame

    def close(self) -> None:
        """Closes the file."""
        self._frames.close()

    def _read(self) -> Generator[tuple[LiveFrame | None, FrameCounts]]:
        """Each frame with the counts since the frame before it; None at the end.

        A frame is converted before the next is decoded: a decoder repairs damaged pictures with
        frames that are still in memory.
        """
        counts = FrameCounts()
        with _open(self.path) as (container, stream, losses):
            self.displays.add(read_display(stream))
            # a forked process that frees a decoder waits for its threads, which only the parent has
            stream.thread_type = "NONE"
            clock, reformatter, matrix = _Clock(container, stream), VideoReformatter(), None
            packets = losses.follow(read_to_end(container, stream))
            frames = decode_with_damage(packets, Damage(stream.codec_context))
            for number, (native, is_damaged) in enumerate(frames):
                if native is not None:
                    matrix = follow_matrix(native, matrix)
                seconds = 0.0 if native is None else clock.read(native)
                is_taken = not is_damaged and self.thinned.takes(seconds)
                if number < self._skipped:
                    continue
                counts.received += 1
                if is_damaged:
                    counts.damaged += 1
                elif is_taken:
                    image = partial(np.asarray, to_rgb(native, reformatter, matrix))
                    yield LiveFrame(number, seconds, 0, image), counts
                    counts = FrameCounts()
                else:
                    counts.thinned += 1
        yield None, counts


@contextmanager
def _open(path: Path) -> Iterator[tuple[Any, Any, PacketLosses]]:
    """A video file, its stream of pictures and the losses of that."""
    with read_packet_losses() as losses:
        try:
            container = open_video(path, **LOG_PACKETS)
        except av.FFmpegError as error:
            raise UsageError(
                f"cannot read the video '{path}': {error.strerror}; give a video that FFmpeg reads"
            ) from error
        with container:
            stream = picture_stream(container)
            if stream is None:
                raise UsageError(f"'{path}' has no video stream; give a video")
            losses.end_opening(stream.index)
            yield container, stream, losses


class _Clock:
    """When the frames of a file are shown, in seconds since the first.

    AVI has decoding times only: they are assigned to the frames in order, and the last frames come
    after all packets. A frame without a time, as in transport streams, comes one step after the
    frame before it.
    """

    def __init__(self, container: Any, stream: Any) -> None:
        self.is_avi = container.format.name == "avi"
        rate = stream.average_rate or stream.guessed_rate
        self.step = float(1 / rate) if rate else 0.0
        self.last = -self.step
        self.first: float | None = None

    def read(self, native: Any) -> float:
        """The time of the next frame."""
        time = native.dts if self.is_avi else native.pts
        known = time is not None
        self.last = float(time * native.time_base) if known else self.last + self.step
        self.first = self.last if self.first is None else self.first
        return self.last - self.first


class FolderFeed:
    """The pictures and videos that are added to a folder, in the order in which they are added.

    A file is read when it has not changed for `POLL` seconds. Files before `mark` are not read
    again.
    """

    has_timestamps = False

    def __init__(
        self, folder: Path, counts: FrameCounts, thinned: Thinning, mark: FeedMark
    ) -> None:
        self.folder, self.counts, self.thinned, self.mark = folder, counts, thinned, mark
        self.displays: set[Display] = set()
        self.is_over = False
        self.status = "waiting for files"
        self._start = mark
        self._done = self._file = mark.done
        thinned.due = mark.due
        self._stamps: dict[str, tuple[int, int]] = {}
        self._taken: dict[str, tuple[int, int]] = {}
        self._waiting: list[tuple[int, str]] = []
        self._video: FileFeed | None = None
        self._before_video = 0
        self._scene = mark.scene
        self._next_look = -np.inf
        self._has_looked = False

    def take(self, seconds: float) -> LiveFrame | None:
        """The next frame; None where no file came."""
        until = time.monotonic() + seconds
        while True:
            frame = self._next()
            if frame is not None or time.monotonic() >= until:
                return frame
            if not self._waiting and self._video is None:
                time.sleep(min(POLL / 2, max(until - time.monotonic(), 0)))

    def close(self) -> None:
        """Closes what is open."""
        if self._video is not None:
            self._video.close()

    def _next(self) -> LiveFrame | None:
        if self._video is not None:
            return self._next_of_video()
        self.mark = FeedMark(self._done, scene=self._scene, due=max(self.thinned.due, 0.0))
        if not self._waiting:
            self._look()
        if not self._waiting:
            return None
        self._file = self._waiting.pop(0)
        name = self._file[1]
        self._done = max(self._done, self._file)
        self._taken[name] = self._stamps[name]
        self.status = f"reading, {number_of(len(self._waiting), 'file')} waiting"
        path = self.folder / name
        if path.suffix.lower() in VIDEOS:
            self._scene += 1
            skipped = self._start.frames if self._start.video == self._file else 0
            self._before_video = self.counts.received - skipped
            self._video = FileFeed(path, self.counts, Thinning(self.thinned.rate), skipped)
            self._video.displays = self.displays
            return self._next_of_video()
        number = self.counts.received
        self.counts.received += 1
        try:
            seconds = path.stat().st_mtime
        except OSError:
            self.counts.damaged += 1  # it was taken away meanwhile
            return None
        if not self.thinned.takes(seconds):
            self.counts.thinned += 1
            return None
        return LiveFrame(number, seconds, self._scene, cache(partial(read_image, path)))

    def _next_of_video(self) -> LiveFrame | None:
        """The next frame of the open video, at the clock time when the video began plus its own."""
        assert self._video is not None
        path = self._video.path
        try:
            frame = self._video.take(0)
            began = path.stat().st_mtime
        except (UsageError, OSError):
            self.counts.damaged += 1
            self._video.close()
            self._video = None
            return None
        if frame is None:
            self._video = None
            self._scene += 1
            return None
        self.mark = replace(self.mark, video=self._file, frames=frame.number)
        number = self._before_video + frame.number
        return LiveFrame(number, began + frame.seconds, self._scene, frame.image)

    def _look(self) -> None:
        """Lists new complete files, the oldest first."""
        began = time.monotonic()
        if began < self._next_look:
            return
        self._next_look = began + POLL
        try:
            stamps = _read_stamps(self.folder)
        except OSError as error:
            self.status = f"cannot read the folder ({error.strerror}); it is tried again"
            return
        self._next_look = max(self._next_look, began + (time.monotonic() - began) / LOOK_SHARE)
        if not self._has_looked:
            self._has_looked = True
            # files from now on are new, also while the clock is behind
            self._taken = {n: at for n, at in stamps.items() if self._was_done((at[0], n))}
        # removed names are forgotten, so that memory does not exceed that of the folder
        self._taken = {name: at for name, at in self._taken.items() if name in stamps}
        # files may have changed at one time of a coarse clock
        self._waiting = sorted(
            (stamp[0], name)
            for name, stamp in stamps.items()
            if self._stamps.get(name) == stamp and self._taken.get(name) != stamp
        )
        self._stamps = stamps
        self.status = "waiting for files"

    def _was_done(self, file: tuple[int, str]) -> bool:
        """Whether a file was done with when the watch began."""
        return file <= self._start.done and file != self._start.video


def _read_stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """When each picture and video in a folder changed, in nanoseconds, and how long it is."""
    stamps = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if os.path.splitext(entry.name)[1].lower() not in ENDINGS:
                continue
            with suppress(OSError):  # the file was removed meanwhile, or is a link to nothing
                status = entry.stat()
                changed = status.st_ctime_ns
                if entry.is_symlink():
                    changed = max(changed, entry.stat(follow_symlinks=False).st_ctime_ns)
                # nobody sets the time of this change; renaming a file into the folder is one
                if S_ISREG(status.st_mode):
                    stamps[entry.name] = (changed, status.st_size)
    return stamps
