"""Decoding in order, and which frames of a video or stream are damaged."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import av

from steadyeye.data.video.bitstream import PictureNumbers, avc_sets, picture_numbers, units

REORDERED = 5.0
"""Seconds by which frames may be reordered; what is earlier by more comes behind a clock that was
set back, as where recordings were joined."""

FAILURE = (None,)
"""The frames of a packet that cannot be decoded."""


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
        """Records the losses of a packet, `is_lossy` or marked as such; call it before decoding."""
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


def read_to_end(container: Any, stream: Any) -> Iterator[Any]:
    """The packets of a file, up to what cannot be read, by this or any other way."""
    with suppress(av.FFmpegError):
        yield from container.demux(stream)


def decode_in_order(container: Any, stream: Any) -> Iterator[Any]:
    """Each frame of a file; None for each packet that fails."""
    for packet in read_to_end(container, stream):
        yield from _decode(packet)


def decode_with_damage(
    packets: Iterable[tuple[Any, bool]], damage: Damage
) -> Iterator[tuple[Any, bool]]:
    """Each frame and whether it is damaged; None, damaged, for each packet that fails.

    `packets`: each with whether others were lost beside it that it does not show itself.
    """
    for packet, is_lossy in packets:
        damage.read_packet(packet, is_lossy)
        frames = _decode(packet)
        if frames is FAILURE:
            damage.lose(packet)
        yield from ((native, native is None or damage.covers(native)) for native in frames)


def _decode(packet: Any) -> Sequence[Any]:
    """The frames of a packet, or `FAILURE`."""
    try:
        frames: Sequence[Any] = packet.decode()
    except av.EOFError:
        return ()
    except av.FFmpegError:
        return FAILURE
    return frames
