"""The pictures of a live stream or a camera as they arrive, and which of them are damaged."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np

from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image
from steadyeye.data.video.bitstream import PictureNumbers, avc_sets, picture_numbers, units
from steadyeye.data.video.decoder import follow_matrix
from steadyeye.data.video.video_index import Display, open_video, picture_stream, read_display
from steadyeye.watch.frames import convert

PACKETS = 20_000
"""Packets by which a repetition is recognised: minutes of a stream, and some megabytes."""
REORDERED = 5.0
"""Seconds by which frames may be reordered; what is earlier by more comes behind a clock that was
set back, as where recordings were joined."""


def is_first_damaged(path: Path) -> bool:
    """Whether a part is missing of the first picture of a file.

    FFmpeg marks the packet before that with the missing part where it puts packets together.
    """
    with suppress(av.FFmpegError), open_video(path, fflags="noparse") as container:
        packet = next(container.demux(picture_stream(container)), None)
        return packet is not None and packet.is_corrupt
    return False


@dataclass(frozen=True)
class StreamPicture:
    """A picture of a stream. `seconds`: by the stream's own clock, None without a timestamp.

    `image()`: its pixels. `size`: width and height. `display`: how a player would change it.
    """

    seconds: float | None
    image: Callable[[], Image]
    size: tuple[int, int]
    display: Display


class Damage:
    """Which frames of a stream are damaged: all after a loss, up to the next key frame.

    A loss is a packet that is damaged or cannot be decoded, a frame that the decoder patched, and
    in H.264 a missing reference picture, which its decoder does not report. `is_first_damaged`: of
    the first packet.
    """

    def __init__(self, context: Any, is_first_damaged: bool = False) -> None:
        self._is_h264 = context.name == "h264"
        self._length, sets = avc_sets(context.extradata or b"") if self._is_h264 else (0, [])
        self._numbers: PictureNumbers | None = None
        for unit in sets:
            self._follow(unit)
        self._since: float | None = None
        self._is_lasting, self._was_corrupt = False, is_first_damaged

    def lose(self, picture: Any) -> None:
        """Records a loss in the picture of a packet or frame."""
        self._since, self._is_lasting = _read_time(picture), True

    def read_packet(self, packet: Any) -> None:
        """Records the losses that a packet shows; call it before the packet is decoded."""
        lacks = self._is_h264 and self._lacks_reference(bytes(packet))
        if packet.is_corrupt or self._was_corrupt or lacks:
            self.lose(packet)
        # FFmpeg may mark the packet before the one with the missing part
        self._was_corrupt = packet.is_corrupt

    def covers(self, native: Any) -> bool:
        """Whether a decoded frame is damaged; call it for each frame, in order."""
        if native.is_corrupt:
            self.lose(native)
        elif native.key_frame and not self._is_up_to_loss(_read_time(native)):
            self._is_lasting = False
        return self._is_lasting

    def _is_up_to_loss(self, time: float | None) -> bool:
        """Whether a frame is that of the loss, or an earlier one that was delayed by reordering."""
        if time is None or self._since is None:
            return False
        return self._since - REORDERED <= time <= self._since

    def _lacks_reference(self, packet: bytes) -> bool:
        """Whether a picture is missing before that of an H.264 packet."""
        try:
            return packet != b"" and not all([*map(self._follow, units(packet, self._length))])
        except ValueError:
            return True

    def _follow(self, unit: bytes) -> bool:
        """Whether no picture is missing before that of a unit."""
        kind = unit[0] & 31
        if kind == 7:
            numbers = picture_numbers(unit)
            # parameters are repeated in the stream
            if numbers is None or self._numbers is None or numbers.bits != self._numbers.bits:
                self._numbers = numbers
        return kind not in (1, 5) or self._numbers is None or self._numbers.follow(unit, kind == 5)


def _read_time(picture: Any) -> float | None:
    """When a packet or frame is shown, in seconds; `native.time` rounds it otherwise."""
    return None if picture.pts is None else float(picture.pts * picture.time_base)


class PacketHistory:
    """The newest packets of a stream: a playlist (HLS) that is opened again repeats its last ones.

    A repetition runs from any of them to the last; a program that is shown again does not count.
    """

    def __init__(self) -> None:
        self._packets: dict[tuple[int, int], None] = {}

    def find_repeated(self, packets: Iterator[Any], repeated: set[int]) -> Iterator[Any]:
        """The packets of a stream opened again; adds the times of those that are repeated."""
        last, is_repetition = next(reversed(self._packets), None), True
        for packet in packets:
            key = (packet.pts, hash(bytes(packet)))
            is_repetition = is_repetition and key in self._packets
            if is_repetition:
                repeated.add(packet.pts)
                is_repetition = key != last
            elif packet.pts is not None:
                self._packets[key] = None
                if len(self._packets) > PACKETS:
                    del self._packets[next(iter(self._packets))]
            yield packet


def read_address(
    address: str, timeout: float, history: PacketHistory
) -> Iterator[StreamPicture | None]:
    """The pictures of a stream; None for each damaged one. Raises PyAV's errors for a lost stream.

    RTSP uses TCP, and UDP if the server has nothing else. `history`: of the stream before it was
    lost; the pictures of HLS that it has are passed over.
    """
    options = {"rtsp_flags": "prefer_tcp"} if address.startswith("rtsp") else {}
    with av.open(address, timeout=(timeout, timeout), options=options) as container:
        stream = picture_stream(container)
        if stream is None:
            raise SampleError("the address has no video stream")
        # with threads a decoder does not report damaged pictures
        stream.thread_type = "NONE"
        # FFmpeg invents the times of a camera's single JPEGs: 25 per second
        has_clock = container.format.name != "mpjpeg"
        damage, matrix, display = Damage(stream.codec_context), None, read_display(stream)
        packets, repeated = _read_in_time(container, stream, timeout), set[int]()
        if container.format.name == "hls":
            packets = history.find_repeated(packets, repeated)
        for native, is_damaged in decode_packets(packets, damage):
            if native is not None and native.pts in repeated:
                continue
            if is_damaged:
                yield None
                continue
            matrix = follow_matrix(native, matrix)
            seconds = native.time if has_clock else None
            size = native.width, native.height
            yield StreamPicture(seconds, partial(convert, native, matrix), size, display)


def _read_in_time(container: Any, stream: Any, timeout: float) -> Iterator[Any]:
    """The packets of a stream; raises `SampleError` where none comes for `timeout` seconds."""
    waiting_since = time.monotonic()
    for packet in container.demux(stream):
        # after a timeout FFmpeg returns the rest of its data, and waits once more
        if time.monotonic() > waiting_since + timeout:
            raise SampleError(f"the address sent nothing for {timeout:g} s")
        yield packet
        waiting_since = time.monotonic()


def decode_packets(packets: Iterator[Any], damage: Damage) -> Iterator[tuple[Any, bool]]:
    """Each frame and whether it is damaged; None, damaged, for each packet that fails."""
    for packet in packets:
        damage.read_packet(packet)
        try:
            yield from ((native, damage.covers(native)) for native in packet.decode())
        except av.EOFError:
            continue
        except av.FFmpegError:
            damage.lose(packet)
            yield None, True


def read_camera(path: str) -> Iterator[StreamPicture]:
    """The pictures of a local camera, by OpenCV, because PyAV's wheels have no V4L2."""
    import cv2

    camera = cv2.VideoCapture(path)
    try:
        while True:
            read, picture = camera.read()
            if not read:
                raise SampleError(f"the camera '{path}' sends no frames")
            height, width = picture.shape[:2]
            yield StreamPicture(None, partial(_swap_channels, picture), (width, height), Display())
    finally:
        camera.release()


def _swap_channels(picture: Any) -> Image:
    """OpenCV's BGR as RGB."""
    return np.ascontiguousarray(picture[..., ::-1], dtype=np.uint8)
