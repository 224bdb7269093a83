"""The pictures of a live stream or a camera as they arrive, and which of them are damaged."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import av
import numpy as np

from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image
from steadyeye.data.video.bitstream import PictureNumbers, avc_sets, picture_numbers, units
from steadyeye.data.video.decoder import follow_matrix
from steadyeye.data.video.video_index import Display, picture_stream, read_display
from steadyeye.watch.frames import convert
from steadyeye.watch.packet_losses import LOG_PACKETS, PacketLosses, read_packet_losses

RTSP = {
    "rtsp_flags": "prefer_tcp",
    # a gap in the sound is no loss of pictures
    "allowed_media_types": "video",
    # without a queue, as by TCP, FFmpeg does not report gaps
    "reorder_queue_size": "32",
}
REORDERED = 5.0
"""Seconds by which frames may be reordered; what is earlier by more comes behind a clock that was
set back, as where recordings were joined."""


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

    A loss is a packet that is damaged, came with lost ones or cannot be decoded, a frame that the
    decoder patched, and in H.264 a missing reference picture, which its decoder does not report.
    """

    def __init__(self, context: Any) -> None:
        self._is_h264 = context.name == "h264"
        self._length, sets = avc_sets(context.extradata or b"") if self._is_h264 else (0, [])
        self._numbers: PictureNumbers | None = None
        for unit in sets:
            self._follow(unit)
        self._since, self._is_recent = -inf, False
        self._is_lasting, self._was_lossy = False, False

    def lose(self, picture: Any) -> None:
        """Records a loss in the picture of a packet or frame."""
        self._is_lasting = self._is_recent = True
        time = _read_time(picture)
        if time is not None and not self._is_up_to_loss(time):
            self._since = time

    def read_packet(self, packet: Any, is_lossy: bool) -> None:
        """Records the losses of a packet, `is_lossy` by FFmpeg's log; call it before decoding."""
        is_lossy |= packet.is_corrupt
        lacks = self._is_h264 and self._lacks_reference(bytes(packet))
        if is_lossy or self._was_lossy or lacks:
            self.lose(packet)
        # FFmpeg may report a loss with the packet before the one that lacks a part
        self._was_lossy = is_lossy

    def covers(self, native: Any) -> bool:
        """Whether a decoded frame is damaged; call it for each frame, in order."""
        if native.is_corrupt:
            self.lose(native)
        elif native.key_frame:
            is_recent, self._is_recent = self._is_recent, False
            time = _read_time(native)
            # without a time, as the first of a camera: one that was delayed by reordering, perhaps
            self._is_lasting &= is_recent if time is None else self._is_up_to_loss(time)
        return self._is_lasting

    def _is_up_to_loss(self, time: float) -> bool:
        """Whether a picture of a time is that of the loss, or an earlier one, shown later."""
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


def read_address(address: str, timeout: float) -> Iterator[StreamPicture | None]:
    """The pictures of a stream; None for each damaged one. Raises PyAV's errors for a lost stream.

    RTSP uses TCP, and UDP if the server has nothing else.
    """
    options = LOG_PACKETS | (RTSP if address.startswith("rtsp") else {})
    with (
        read_packet_losses() as losses,
        av.open(address, timeout=(timeout, timeout), options=options) as container,
    ):
        stream = picture_stream(container)
        if stream is None:
            raise SampleError("the address has no video stream")
        losses.end_opening(stream.index)
        # with threads a decoder does not report damaged pictures
        stream.thread_type = "NONE"
        # FFmpeg invents the times of a camera's single JPEGs: 25 per second
        has_clock = container.format.name != "mpjpeg"
        damage, matrix, display = Damage(stream.codec_context), None, read_display(stream)
        packets = _read_in_time(container, stream, timeout)
        for native, is_damaged in decode_packets(packets, damage, losses):
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


def decode_packets(
    packets: Iterator[Any], damage: Damage, losses: PacketLosses
) -> Iterator[tuple[Any, bool]]:
    """Each frame and whether it is damaged; None, damaged, for each packet that fails."""
    for packet in packets:
        damage.read_packet(packet, losses.is_next_lossy())
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
