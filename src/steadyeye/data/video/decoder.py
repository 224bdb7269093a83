"""The frames of a video through PyAV: by number, in any order, as decoding in order gives them."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import av
import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.video.frame import PictureType

from steadyeye.core.errors import SampleError
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Image
from steadyeye.data.video.damage import decode_in_order
from steadyeye.data.video.video_index import VideoIndex, index, open_video, picture_stream

__all__ = ["UNSEEN", "Frame", "VideoIndex", "every_frame", "frame", "index"]

OPEN_VIDEOS = 4  # decoders a thread keeps open: memory stays flat over a folder of videos
STRICT = {"err_detect": "explode"}
"""Has a decoder raise where it would patch a damaged picture."""
UNSEEN = "?"  # the type of a frame that was not decoded
ONE_THREAD = {"threads": 1} if int(av.__version__.partition(".")[0]) >= 17 else {}
"""From 17 on PyAV converts with a thread a core, which it would begin and end with each frame."""
RECENT_BYTES = 32 << 20  # decoded frames a decoder keeps: overlapping sets step back a little
RECENT_BYTES_IN_ORDER = 256 << 20  # where a step back beyond them means to begin again
MOST_RECENT = 64

Value = TypeVar("Value")

Matrix: TypeAlias = tuple[int, int, int, int]
"""The entries of FFmpeg's display matrix for rotation: 0, 1, 3 and 4."""


@dataclass(frozen=True)
class Frame:
    """A decoded frame: its picture type (`I`, `P`, `B`; `?` if damaged) and, on call, its pixels.

    `image()`: (h, w, 3) uint8 RGB at the size it was coded with, turned as the file says a player
    has to turn it; raises `SampleError` for a damaged frame.
    """

    kind: str
    image: Callable[[], Image]


class _UnreliableError(Exception):
    """Decoding met damage that a decoder conceals, so it must decode from the start."""


class _Cursor:
    """An open decoder, which moves forward if that is shorter than starting at a key frame.

    A video without proven key frames is decoded from its start. So is any video from the first
    error on, and each picture is converted before the next is decoded: a decoder conceals damage
    with earlier pictures and with old contents of freed memory.
    """

    def __init__(self, video: VideoIndex) -> None:
        self.video = video
        self.patched = False
        self.starts = frozenset(video.key_pts.tolist())
        self.reformatter = av.video.reformatter.VideoReformatter()
        self.container: Any = None
        self.frames: Iterator[Any] = iter(())
        self.count = 0
        self.number = -1
        self._open()

    def close(self) -> None:
        """Closes the file."""
        self.container.close()

    def frame(self, number: int) -> Frame:
        """Frame `number`, decoded now so that its type is known; its pixels are converted later."""
        try:
            decoded = self._decode(number)
        except av.FFmpegError as error:
            self._open()
            return _damaged_frame(self.video, number, error.strerror or "the data is damaged")
        if decoded is None:
            return _damaged_frame(
                self.video, number, "decoding the video from its start does not yield it"
            )
        return decoded

    def _decode(self, target: int) -> Frame | None:
        if not self.patched:
            read = self._from_start if self.video.in_order else self._from_key
            with suppress(_UnreliableError, av.FFmpegError):
                if decoded := read(target):
                    return decoded
            self.patched = True
            self._open()
        return self._from_start(target)

    def _from_start(self, target: int) -> Frame | None:
        if target in self.recent:
            return self.recent[target]
        if target <= self.number:
            self._open()
        # a damaged video may show frames in another order than their times
        while target not in self.recent and self.number <= target + MOST_RECENT:
            if not self._next():
                break
        return self.recent.get(target)

    def _from_key(self, target: int) -> Frame:
        if target in self.recent:
            return self.recent[target]
        video = self.video
        at = int(np.searchsorted(video.key_pts, video.pts[target], side="right")) - 1
        start = max(at, 0)
        behind = self.number < 0 or self.number >= target
        if behind or video.pts[self.number] < video.key_pts[start]:
            # by decoding time: by presentation time a seek may land past leading B-frames
            self.container.seek(int(video.key_dts[start]), stream=self.stream)
            self.recent.clear()
            self.number = -1
            latest = int(max(video.pts[target], video.key_pts[0]))
            self.frames = _decode_strictly(self.container, self.stream, self.starts, latest)
        while self.number < target:
            if not self._next():
                break
        if target not in self.recent:
            raise _UnreliableError
        return self.recent[target]

    def _open(self) -> None:
        if self.container is not None:
            self.container.close()
        self.container = open_video(self.video.path)
        self.stream = picture_stream(self.container)
        self.stream.thread_type = "NONE"  # the runner's workers are the parallelism
        context = self.stream.codec_context
        if self.patched:
            self.frames = decode_in_order(self.container, self.stream)
        else:
            context.options |= STRICT
            self.frames = _decode_strictly(self.container, self.stream)
        self.count = 0
        self.number = -1
        self.matrix: Matrix | None = None
        self.recent: OrderedDict[int, Frame] = OrderedDict()
        from_start = self.patched or self.video.in_order
        budget = RECENT_BYTES_IN_ORDER if from_start else RECENT_BYTES
        size = context.width * context.height * (3 if self.patched else 1.5)
        self.most = min(max(int(budget / max(size, 1)), 4), MOST_RECENT)

    def _next(self) -> bool:
        """Whether there was one more frame, which is now among the recent ones."""
        native = next((decoded for decoded in self.frames if decoded is not None), None)
        if native is None:
            return False
        number = self.count if self.video.in_order else _number(self.video, native.pts)
        self.count += 1
        if number is not None:
            self.number = number
            self.recent[number] = self._frame(native)
            if len(self.recent) > self.most:
                self.recent.popitem(last=False)
        return True

    def _frame(self, native: Any) -> Frame:
        kind = PictureType(native.pict_type).name
        self.matrix = follow_matrix(native, self.matrix)
        if self.patched:
            return Frame(kind, to_rgb(native, self.reformatter, self.matrix).copy)
        return Frame(kind, partial(to_rgb, native, self.reformatter, self.matrix))


def _decode_strictly(
    container: Any, stream: Any, starts: frozenset[int] | None = None, latest: int = 0
) -> Iterator[Any]:
    """The frames from here on; after a seek, which has to arrive at one of `starts` up to `latest`.

    Raises `_UnreliableError` or `av.FFmpegError` at the first that a decoder says is damaged.
    """
    for packet in container.demux(stream):
        if starts is not None and not (packet.pts in starts and packet.pts <= latest):
            raise _UnreliableError
        starts = None
        for native in packet.decode():
            if native.is_corrupt:
                raise _UnreliableError
            yield native


def every_frame(video: VideoIndex, convert: Callable[[Any], Value]) -> Iterator[tuple[int, Value]]:
    """Number of each frame of a video, in order, and what `convert` makes of PyAV's; no damaged.

    `convert` may not keep the frame: the pictures that follow can depend on that.
    """
    last = -1
    with suppress(_UnreliableError, av.FFmpegError):
        for number, value in _frames(video, convert, strict=True):
            yield number, value
            last = number
        return
    yield from (pair for pair in _frames(video, convert, strict=False) if pair[0] > last)


def _frames(
    video: VideoIndex, convert: Callable[[Any], Value], strict: bool
) -> Iterator[tuple[int, Value]]:
    """`strict`: up to the first error. With all cores only where a decoder says of each error.

    Pictures that it patches depend on the threads.
    """
    with open_video(video.path) as container:
        stream = picture_stream(container)
        stream.thread_type = "AUTO" if strict and not video.in_order else "NONE"
        if strict:
            stream.codec_context.options |= STRICT
            frames = _decode_strictly(container, stream)
        else:
            frames = filter(None, decode_in_order(container, stream))

        def pair(native: Any) -> tuple[int | None, Value]:
            return native.pts, convert(native)

        # `map` does not hold a frame while the next is decoded, as a loop would
        for count, (pts, value) in enumerate(map(pair, frames)):
            number = count if video.in_order else _number(video, pts)
            if number is not None:
                yield number, value


def _number(video: VideoIndex, pts: int | None) -> int | None:
    """The number of the frame at a presentation time; None where the index has none there."""
    if pts is None:
        return None
    number = int(np.searchsorted(video.pts, pts))
    return number if number < len(video) and video.pts[number] == pts else None


def to_rgb(native: Any, reformatter: Any, matrix: Matrix | None) -> Image:
    """The pixels of a decoded frame, (h, w, 3) uint8 RGB, upright; `reformatter`: PyAV's.

    `matrix`: of `follow_matrix`.
    """
    picture = reformatter.reformat(native, format="rgb24", **ONE_THREAD)
    image = np.asarray(picture.to_ndarray(), dtype=np.uint8)
    return upright(image, matrix)


def follow_matrix(native: Any, earlier: Matrix | None) -> Matrix | None:
    """How a decoded frame is to be turned; `earlier`: how the one before it was.

    A message in H.264 or HEVC holds until the next one, and the decoder tells it of the first
    picture alone.
    """
    return _display_matrix(native) or earlier


def _display_matrix(native: Any) -> Matrix | None:
    # what `native.side_data` keeps refers back to its frame, which then stays in memory until
    # Python looks for cycles: hundreds of megabytes
    read: Any = SideDataContainer  # its stub lacks the argument
    # not `get`: within PyAV it raises a KeyError, which can replace a KeyboardInterrupt
    data = next((data for data in read(native) if data.type.name == "DISPLAYMATRIX"), None)
    if data is None:
        return None
    a, b, _, c, d = np.frombuffer(bytes(data), np.int32)[:5].tolist()
    return a, b, c, d


def upright(image: Image, matrix: Matrix | None) -> Image:
    """A picture turned by quarters and mirrored as a display matrix says."""
    if matrix is None:
        return image
    a, b, c, d = matrix
    if a == d == 0 and b and c:
        image, a, d = image.transpose(1, 0, 2), c, b
    elif b or c or not (a and d):
        return image  # turned by another angle, which would need other pixels
    return np.ascontiguousarray(image[:: 1 if d > 0 else -1, :: 1 if a > 0 else -1])


def _damaged_frame(video: VideoIndex, number: int, why: str) -> Frame:
    def image() -> Image:
        raise SampleError(f"cannot decode frame {number} of '{video.path}': {why}")

    return Frame(UNSEEN, image)


_of_parent: list[object] = []


class _Decoders:
    """The open decoders of a thread, the last used last; closed where the thread ends.

    PyAV's objects refer to one another, so that a file that is not closed waits for the garbage
    collector, maybe that of a forked process. There decoders are never freed: that waits for
    threads which only the parent has. Python drops there what all other threads held, even the main
    one where another one forks.
    """

    def __init__(self) -> None:
        self.cursors: OrderedDict[Place, _Cursor] = OrderedDict()
        self.process = os.getpid()

    def __del__(
        self, getpid: Callable[[], int] = os.getpid, of_parent: list[object] = _of_parent
    ) -> None:
        if getpid() != self.process:
            of_parent.append(self.cursors)
            return
        for cursor in self.cursors.values():
            cursor.close()


_open = threading.local()


def _leave_to_parent() -> None:
    """Has a forked process open decoders of its own."""
    _open.__dict__.pop("decoders", None)


os.register_at_fork(after_in_child=_leave_to_parent)


def frame(video: VideoIndex, number: int) -> Frame:
    """Frame `number` of a video, decoded by the calling thread's own decoder."""
    decoders: _Decoders | None = _open.__dict__.get("decoders")
    if decoders is None:
        decoders = _open.__dict__["decoders"] = _Decoders()
    cursors = decoders.cursors
    cursor = cursors.get(video.path)
    # another index of the same path: the file was replaced since it was opened
    if cursor is None or cursor.video is not video:
        if cursor is not None:
            cursor.close()
        cursors[video.path] = _Cursor(video)
        if len(cursors) > OPEN_VIDEOS:
            cursors.popitem(last=False)[1].close()
    cursors.move_to_end(video.path)
    return cursors[video.path].frame(number)
