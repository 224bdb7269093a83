"""Frames as they come, from whatever source, and what became of them."""

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

ADDRESSES = ("rtsp", "rtsps", "http", "https")
CAMERA = re.compile(r"/dev/video\d+")
_CLOCK_START = time.time() - time.monotonic()


@dataclass
class FrameCounts:
    """What became of the frames of a source.

    `received`: those that came. `left_out`: those that came while the model was at another.
    `thinned`: those above the rate that was asked for. `damaged`: frames or files that cannot be
    decoded. `lost_streams`: how often a stream ended or failed; `seconds_down`: until it was back.
    """

    received: int = 0
    left_out: int = 0
    thinned: int = 0
    damaged: int = 0
    lost_streams: int = 0
    seconds_down: float = 0.0

    def add(self, more: "FrameCounts") -> None:
        """Adds what became of further frames."""
        for name, value in asdict(more).items():
            setattr(self, name, getattr(self, name) + value)

    def record(self) -> dict[str, float]:
        """For the state file, rounded."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class FeedMark:
    """Where a restart of a folder goes on: with the frame that was taken when it was read.

    `done`: of the last file before the frame when it changed, in nanoseconds, and its name.
    `video`: the same of the video that the frame is of, `frames`: how many of that came before it.
    `scene`: the number of the scene before. `due`: of the `Thinning` of pictures.
    """

    done: tuple[int, str] = (0, "")
    video: tuple[int, str] | None = None
    frames: int = 0
    scene: int = 0
    due: float = 0.0

    @classmethod
    def resume(cls, record: Mapping[str, Any]) -> "FeedMark":
        """As a state file holds it."""
        video = record["video"] and (record["video"][0], record["video"][1])
        return cls(**{**record, "done": (record["done"][0], record["done"][1]), "video": video})


@dataclass(frozen=True)
class LiveFrame:
    """A frame. `number`: how many came before it. `seconds`: when it was taken.

    Of a file seconds count from its beginning; of all else they are those of the clock (Unix time).
    `scene`: another number where the stream was interrupted in between. `image()`: (h, w, 3) uint8
    RGB, the same each time; raises `SampleError` where it cannot be decoded.
    """

    number: int
    seconds: float
    scene: int
    image: Callable[[], Image]


class Feed(Protocol):
    """Frames of a source, in the order of time.

    `is_over`: no more will come. `status`: one line on what it is doing. `mark`: where a restart
    goes on that begins with the frame taken last, of a folder. `has_timestamps`: whether the times
    of frames are the video's own, and not those of their arrival.
    """

    counts: FrameCounts
    mark: FeedMark
    has_timestamps: bool

    @property
    def is_over(self) -> bool:
        """Whether no more will come."""
        ...

    @property
    def status(self) -> str:
        """What it is doing."""
        ...

    def take(self, seconds: float) -> LiveFrame | None:
        """The next frame, or None where there is none within so many seconds."""
        ...

    def close(self) -> None:
        """Ends what reads it."""
        ...


def read_clock() -> float:
    """Unix time by a clock that nobody sets: what the machine's said at first, and since then."""
    return _CLOCK_START + time.monotonic()


def is_live(source: str) -> bool:
    """Whether a source is an address or a camera: what of it is not taken is gone."""
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
    """Takes so many frames a second at most, evenly; all where `rate` is None."""

    rate: float | None
    due: float = field(default=-np.inf)

    def takes(self, seconds: float) -> bool:
        """Whether the frame of a time is to be taken."""
        if self.rate is None:
            return True
        # a thousandth: times are rounded, and 25 of 25 frames a second are to be taken
        if self.due - 10 < seconds < self.due - 0.001 / self.rate:
            return False
        period = 1 / self.rate
        self.due = self.due + period if seconds < self.due + period else seconds + period
        return True


def convert(native: Any, matrix: Matrix | None) -> Image:
    """The pixels of a decoded frame, (h, w, 3) uint8 RGB, upright.

    `matrix`: of `follow_matrix`. Nothing of the conversion stays with the frame: it takes more
    memory than the frame.
    """
    return to_rgb(native, VideoReformatter(), matrix)
