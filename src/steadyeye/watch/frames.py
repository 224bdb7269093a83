"""Frames of a source, and counts of what was done with them."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from av.video.reformatter import VideoReformatter

from steadyeye.core.types import Image
from steadyeye.data.video.decoder import Matrix, to_rgb
from steadyeye.data.video.video_index import Display

ADDRESSES = ("rtsp", "rtsps", "http", "https")
CAMERA = re.compile(r"/dev/video\d+")
_CLOCK_START = time.time() - time.monotonic()


@dataclass
class FrameCounts:
    """Counts of the frames of a source.

    `received`: all. `left_out`: those that arrived while the model was busy. `thinned`: those above
    the requested rate. `damaged`: frames or files that cannot be decoded. `lost_streams`: how often
    a stream ended or failed; `seconds_down`: time without a stream.
    """

    received: int = 0
    left_out: int = 0
    thinned: int = 0
    damaged: int = 0
    lost_streams: int = 0
    seconds_down: float = 0.0

    def add(self, more: "FrameCounts") -> None:
        """Adds the counts of further frames."""
        for name, value in asdict(more).items():
            setattr(self, name, getattr(self, name) + value)

    def record(self) -> dict[str, float]:
        """The counts for the state file, rounded."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class FeedMark:
    """Where a restarted watch of a folder continues.

    `done`: time of change in nanoseconds and name of the last file before the frame. `video`: the
    same of the video of the frame; `frames`: how many of its frames came before. `scene`: number of
    the scene before. `due`: that of the `Thinning` of pictures.
    """

    done: tuple[int, str] = (0, "")
    video: tuple[int, str] | None = None
    frames: int = 0
    scene: int = 0
    due: float = 0.0

    @classmethod
    def resume(cls, record: Mapping[str, Any]) -> "FeedMark":
        """The mark that a state file holds."""
        video = record["video"] and (record["video"][0], record["video"][1])
        return cls(**{**record, "done": (record["done"][0], record["done"][1]), "video": video})


@dataclass(frozen=True)
class LiveFrame:
    """A frame. `number`: how many came before it. `seconds`: when it was taken.

    Seconds of a file count from its start; seconds of other sources are Unix time. `scene`: changes
    when the stream was interrupted. `image()`: (h, w, 3) uint8 RGB, the same each time; raises
    `SampleError` where it cannot be decoded.
    """

    number: int
    seconds: float
    scene: int
    image: Callable[[], Image]


class Feed(Protocol):
    """Frames of a source, in the order of time.

    `is_over`: no more frames will come. `status`: one line on its state. `mark`: where a restart of
    a folder continues, beginning with the frame taken last. `has_timestamps`: whether the times of
    frames are the video's own, and not those of their arrival. `displays`: how players would change
    the pictures of its videos so far.
    """

    counts: FrameCounts
    displays: set[Display]
    mark: FeedMark
    has_timestamps: bool

    @property
    def is_over(self) -> bool:
        """Whether no more will come."""
        ...

    @property
    def status(self) -> str:
        """The state of the feed in one line."""
        ...

    def take(self, seconds: float) -> LiveFrame | None:
        """The next frame; None if none comes within `seconds`."""
        ...

    def close(self) -> None:
        """Stops reading."""
        ...


def read_clock() -> float:
    """Unix time by a monotonic clock: the machine's time at the start, plus the time since then."""
    return _CLOCK_START + time.monotonic()


def is_live(source: str) -> bool:
    """Whether a source is an address or a camera, whose frames are lost if nobody takes them."""
    return urlsplit(source).scheme in ADDRESSES or bool(CAMERA.fullmatch(source))


def redact(source: str) -> str:
    """A source without the name, password and query in its address, to be shown and stored."""
    parts = urlsplit(source)
    if parts.scheme not in ADDRESSES:
        return source
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


@dataclass
class Thinning:
    """Takes at most `rate` frames per second, evenly spaced; all if `rate` is None."""

    rate: float | None
    due: float = field(default=-np.inf)

    def takes(self, seconds: float) -> bool:
        """Whether the frame of a time is to be taken."""
        if self.rate is None:
            return True
        # a thousandth of tolerance: times are rounded, and at 25 frames per second all 25 are taken
        if self.due - 10 < seconds < self.due - 0.001 / self.rate:
            return False
        period = 1 / self.rate
        self.due = self.due + period if seconds < self.due + period else seconds + period
        return True


def convert(native: Any, matrix: Matrix | None) -> Image:
    """The pixels of a decoded frame, (h, w, 3) uint8 RGB, upright.

    `matrix`: of `follow_matrix`. The decoded frame keeps no state of the conversion, which takes
    more memory than the frame.
    """
    return to_rgb(native, VideoReformatter(), matrix)
