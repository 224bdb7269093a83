"""Frame-accurate random access to a video file through PyAV."""

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import av
import numpy as np
from av.video.frame import PictureType
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Image
from steadyeye.storage.place import Place
from steadyeye.storage.remote import Remote

OPEN_VIDEOS = 4  # decoders a thread keeps open: memory stays flat over a folder of videos
UNSEEN = "?"  # the type of a frame that was not decoded
RECENT_BYTES = 32 << 20  # decoded frames a decoder keeps: overlapping sets step back a little


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """What the container says about a video, read without decoding it.

    `pts`: (frames,) presentation time of each frame, rising, in `time_base` seconds.
    `key_pts`, `key_dts`: the same for the frames a decoder can start at. `fps`: frames a second.
    """

    path: Place
    pts: NDArray[np.int64]
    key_pts: NDArray[np.int64]
    key_dts: NDArray[np.int64]
    time_base: Fraction
    fps: float

    def __len__(self) -> int:
        return len(self.pts)

    @cached_property
    def digest(self) -> str:
        """What the file holds, asked for once: of an object, what its store says of it."""
        if isinstance(self.path, Remote):
            return f"{self.path} {self.path.version()}"
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def key(self, number: int) -> str:
        """What names frame `number` by content. Raises `SampleError` for a file that went away."""
        try:
            return f"frame {number} of {self.digest}"
        except OSError as error:
            raise SampleError(f"cannot read the video '{self.path}': {error.strerror}") from error


def readable(path: Place) -> Any:
    """What PyAV opens: the name of a file, or an object of a store read a piece at a time."""
    return path.open("rb") if isinstance(path, Remote) else str(path)


def index(path: Place) -> VideoIndex:
    """The index of a video.

    Raises `UsageError` for a file that is missing, no video, empty, or shorter than it says.
    """
    if not path.is_file():
        raise UsageError(f"no video at '{path}'; check the path")
    try:
        with av.open(readable(path)) as container:
            return _index(path, container)
    except av.EOFError as error:
        raise _empty(path) from error
    except av.FFmpegError as error:
        hint = "it is no video or it is truncated"
        raise UsageError(f"cannot open the video '{path}': {error.strerror}; {hint}") from error


def _index(path: Place, container: Any) -> VideoIndex:
    if not container.streams.video:
        raise UsageError(f"'{path}' has no video stream; give a video or a folder of videos")
    stream = container.streams.video[0]
    packets = [
        (p.pts if p.pts is not None else p.dts, p.dts, p.is_keyframe)
        for p in container.demux(stream)
        if p.size and not p.is_discard and (p.pts is not None or p.dts is not None)
    ]
    if not packets:
        raise _empty(path)
    if len(packets) < stream.frames:
        raise UsageError(
            f"the video '{path}' is truncated: its header promises {stream.frames} frames, "
            f"{len(packets)} are there; copy it again or cut it to what is whole"
        )
    keys = sorted((pts, dts) for pts, dts, is_key in packets if is_key)
    return VideoIndex(
        path=path,
        pts=np.array(sorted(pts for pts, _, _ in packets), dtype=np.int64),
        key_pts=np.array([pts for pts, _ in keys], dtype=np.int64),
        key_dts=np.array([pts if dts is None else dts for pts, dts in keys], dtype=np.int64),
        time_base=stream.time_base,
        fps=float(stream.average_rate or stream.guessed_rate or 0),
    )


def _empty(path: Place) -> UsageError:
    return UsageError(f"the video '{path}' holds no frames; remove it or record it again")


@dataclass(frozen=True)
class Frame:
    """A decoded frame: its picture type (`I`, `P`, `B`; `?` if damaged) and, on call, its pixels.

    `image()`: (h, w, 3) uint8 RGB at the decoded size; raises `SampleError` for a damaged frame.
    """

    kind: str
    image: Callable[[], Image]


class _Cursor:
    """One open decoder, moved forward where that is nearer than seeking."""

    def __init__(self, video: VideoIndex) -> None:
        self.video = video
        self.container = av.open(readable(video.path))
        self.stream = self.container.streams.video[0]
        self.stream.thread_type = "NONE"  # the runner's workers are the parallelism
        self.reformatter = av.video.reformatter.VideoReformatter()
        self.frames: Iterator[Any] = iter(())
        self.current: Any = None
        context = self.stream.codec_context
        held = RECENT_BYTES // max(context.width * context.height * 3 // 2, 1)
        self.recent: deque[Any] = deque(maxlen=min(max(held, 4), 64))

    def frame(self, number: int) -> Frame:
        """Frame `number`, decoded now so that its type is known; its pixels are converted later."""
        try:
            native = self._decode(int(self.video.pts[number]))
        except av.FFmpegError as error:
            self.current = None
            return _damaged(self.video, number, error.strerror or "the data is damaged")
        if native is None:
            return _damaged(self.video, number, "the stream does not yield it")

        def image() -> Image:
            picture = self.reformatter.reformat(native, format="rgb24")
            return np.asarray(picture.to_ndarray(), dtype=np.uint8)

        return Frame(PictureType(native.pict_type).name, image)

    def _decode(self, wanted: int) -> Any:
        for native in self.recent:
            if native.pts == wanted:
                return native
        start = max(int(np.searchsorted(self.video.key_pts, wanted, side="right")) - 1, 0)
        behind = self.current is None or self.current.pts > wanted
        if behind or self.current.pts < self.video.key_pts[start]:
            # by decoding time: by presentation time a seek may land past leading B-frames
            self.container.seek(int(self.video.key_dts[start]), stream=self.stream)
            self.frames = self.container.decode(self.stream)
            self.recent.clear()
            self._next()
        while self.current is not None and self.current.pts < wanted:
            self._next()
        found = self.current is not None and self.current.pts == wanted
        return self.current if found else None

    def _next(self) -> None:
        self.current = next(self.frames, None)
        if self.current is not None:
            self.recent.append(self.current)


def _damaged(video: VideoIndex, number: int, why: str) -> Frame:
    def image() -> Image:
        raise SampleError(f"cannot decode frame {number} of '{video.path}': {why}")

    return Frame(UNSEEN, image)


_open = threading.local()


def frame(video: VideoIndex, number: int) -> Frame:
    """Frame `number` of a video, decoded by the calling thread's own decoder."""
    cursors: OrderedDict[Place, _Cursor] = _open.__dict__.setdefault("cursors", OrderedDict())
    if video.path not in cursors:
        cursors[video.path] = _Cursor(video)
        if len(cursors) > OPEN_VIDEOS:
            cursors.popitem(last=False)[1].container.close()
    cursors.move_to_end(video.path)
    return cursors[video.path].frame(number)
