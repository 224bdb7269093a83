"""The pictures of a live stream or a camera as they arrive, and which of them are damaged."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import av
import numpy as np

from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image
from steadyeye.data.video.damage import Damage, decode_with_damage
from steadyeye.data.video.decoder import follow_matrix
from steadyeye.data.video.video_index import Display, picture_stream, read_display
from steadyeye.watch.frames import convert
from steadyeye.watch.packet_losses import LOG_PACKETS, read_packet_losses

PACKETS = 20_000
"""Packets by which a repetition is recognised: minutes of a stream, and some megabytes."""
RTSP = {
    "rtsp_flags": "prefer_tcp",
    # a gap in the sound is no loss of pictures
    "allowed_media_types": "video",
    # without a queue, as by TCP, FFmpeg does not report gaps
    "reorder_queue_size": "32",
}


@dataclass(frozen=True)
class StreamPicture:
    """A picture of a stream. `seconds`: by the stream's own clock, None without a timestamp.

    `image()`: its pixels. `size`: width and height. `display`: how a player would change it.
    """

    seconds: float | None
    image: Callable[[], Image]
    size: tuple[int, int]
    display: Display


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
        packets, repeated = _read_in_time(container, stream, timeout), set[int]()
        if container.format.name == "hls":
            packets = history.find_repeated(packets, repeated)
        for native, is_damaged in decode_with_damage(losses.follow(packets), damage):
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
