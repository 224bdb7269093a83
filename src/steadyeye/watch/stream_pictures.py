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
        packets = losses.follow(_read_in_time(container, stream, timeout))
        for native, is_damaged in decode_with_damage(packets, damage):
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
