"""The pictures of a live stream or a camera as they come, and which of them are damaged."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import av
import numpy as np

from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image
from steadyeye.data.video.bitstream import PictureNumbers, avc_sets, picture_numbers, units
from steadyeye.data.video.decoder import follow_matrix
from steadyeye.data.video.video_index import picture_stream
from steadyeye.watch.frames import convert


@dataclass(frozen=True)
class StreamPicture:
    """A picture of a stream. `seconds`: by the stream's own clock, None where it says none.

    `image()`: its pixels. `size`: width and height.
    """

    seconds: float | None
    image: Callable[[], Image]
    size: tuple[int, int]


class Damage:
    """Which frames of a stream are damaged: from a loss on all, up to a key frame after it.

    A loss is a packet that is damaged or cannot be decoded, a frame that the decoder patched, and
    of H.264 a picture that others refer to and that did not come: its decoder says nothing of it.
    """

    def __init__(self, context: Any) -> None:
        self._is_h264 = context.name == "h264"
        self._length, sets = avc_sets(context.extradata or b"") if self._is_h264 else (0, [])
        self._numbers: PictureNumbers | None = None
        for unit in sets:
            self._follow(unit)
        self._since: int | None = None
        self._is_lasting = self._was_corrupt = False

    def lose(self, time: int | None) -> None:
        """Notes a loss in the picture of a time."""
        self._since, self._is_lasting = time, True

    def read_packet(self, packet: Any) -> None:
        """Notes what a packet shows to be lost; to be called before it is decoded."""
        lacks = self._is_h264 and self._lacks_reference(bytes(packet))
        if packet.is_corrupt or self._was_corrupt or lacks:
            self.lose(packet.pts)
        # FFmpeg may mark the packet before that in which a piece is missing
        self._was_corrupt = packet.is_corrupt

    def covers(self, native: Any) -> bool:
        """Whether a decoded frame is damaged; to be called for each, in their order."""
        if native.is_corrupt:
            self.lose(native.pts)
        elif native.key_frame and not self._is_up_to_loss(native.pts):
            self._is_lasting = False
        return self._is_lasting

    def _is_up_to_loss(self, time: int | None) -> bool:
        """Whether a frame is that of the loss, or one before that was held back, to be in order."""
        return time is not None and self._since is not None and time <= self._since

    def _lacks_reference(self, packet: bytes) -> bool:
        """Whether a picture is missing before that of a packet of H.264."""
        try:
            return packet != b"" and not all([*map(self._follow, units(packet, self._length))])
        except ValueError:
            return True

    def _follow(self, unit: bytes) -> bool:
        """Whether no picture is missing before that of a unit."""
        kind = unit[0] & 31
        if kind == 7:
            numbers = picture_numbers(unit)
            # parameters are sent again and again
            if numbers is None or self._numbers is None or numbers.bits != self._numbers.bits:
                self._numbers = numbers
        return kind not in (1, 5) or self._numbers is None or self._numbers.follow(unit, kind == 5)


def read_address(address: str, timeout: float) -> Iterator[StreamPicture | None]:
    """The pictures of a stream; None for each that is damaged. Raises what PyAV does of a lost one.

    RTSP goes over TCP, and over UDP where a server has nothing else.
    """
    options = {"rtsp_flags": "prefer_tcp"} if address.startswith("rtsp") else {}
    with av.open(address, timeout=(timeout, timeout), options=options) as container:
        stream = picture_stream(container)
        if stream is None:
            raise SampleError("it holds no pictures")
        # with threads a decoder does not say which pictures are damaged
        stream.thread_type = "NONE"
        # the times of a camera's single JPEGs are made up by FFmpeg: 25 a second
        has_clock = container.format.name != "mpjpeg"
        damage, matrix = Damage(stream.codec_context), None
        waiting_since = time.monotonic()
        for packet in container.demux(stream):
            # after a timeout FFmpeg gives what it has still, and waits once more
            if time.monotonic() > waiting_since + timeout:
                raise SampleError(f"it gave nothing for {timeout:g} s")
            damage.read_packet(packet)
            for native in _decode(packet, damage):
                if native is None or damage.covers(native):
                    yield None
                    continue
                matrix = follow_matrix(native, matrix)
                seconds = native.time if has_clock else None
                size = native.width, native.height
                yield StreamPicture(seconds, partial(convert, native, matrix), size)
            waiting_since = time.monotonic()


def _decode(packet: Any, damage: Damage) -> list[Any]:
    """The frames that a packet completes, or None in their place where it cannot be decoded."""
    try:
        return list(packet.decode())
    except av.EOFError:
        return []
    except av.FFmpegError:
        damage.lose(packet.pts)
        return [None]


def read_camera(path: str) -> Iterator[StreamPicture]:
    """The pictures of a camera of this machine, by OpenCV: PyAV's wheels have no V4L2."""
    import cv2

    camera = cv2.VideoCapture(path)
    try:
        while True:
            read, picture = camera.read()
            if not read:
                raise SampleError(f"'{path}' gives no pictures")
            height, width = picture.shape[:2]
            yield StreamPicture(None, partial(_swap_channels, picture), (width, height))
    finally:
        camera.release()


def _swap_channels(picture: Any) -> Image:
    """RGB of OpenCV's BGR."""
    return np.ascontiguousarray(picture[..., ::-1], dtype=np.uint8)
