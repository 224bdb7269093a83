"""The packets of a video at which a decoder can start with the same result as decoding in order.

That a container marks a packet as a key frame proves nothing: pictures after an open group of
pictures, a recovery point or an intra refresh may depend on what came before, and a decoder may
remember parameter sets and messages of earlier packets. So each packet is read as far as the
standard of its codec says what a decoder resets there: an IDR picture of H.264, a random access
point of HEVC, a key frame of VP9 or AV1 that refreshes all references, any picture of codecs
without prediction between pictures. Other videos are decoded in order.
"""

from collections.abc import Callable
from dataclasses import dataclass

from steadyeye.data.video.bitstream import Bits, Examiner, UnprovenError, h264, hevc

INTRA = frozenset({"prores", "dnxhd", "png", "utvideo", "jpeg2000", "magicyuv", "ffvhuff"})
"""Codecs in which each packet is one picture that depends on no other and on nothing remembered."""

SINGLE = INTRA | {"mjpeg"}
"""Codecs whose pictures are shown in the order in which they are coded."""


def examiner(codec: str, extradata: bytes) -> Examiner:
    """The examiner of a stream's packets. Raises `UnprovenError` for other codecs."""
    if codec in INTRA:
        return Examiner(lambda _: True)
    if codec not in EXAMINERS:
        raise UnprovenError(f"{codec} does not say where a decoder can start")
    try:
        checker = EXAMINERS[codec](extradata)
    except (ValueError, IndexError):
        raise UnprovenError(f"its {codec} header is not readable") from None

    def starts(packet: bytes) -> bool:
        try:
            return checker.starts(packet)
        except (ValueError, IndexError):
            raise UnprovenError(f"a packet is no whole {codec} picture") from None

    return Examiner(starts, checker.reorder)


def _vp9(_: bytes) -> Examiner:
    first = True

    def starts(packet: bytes) -> bool:
        nonlocal first
        frames = [_vp9_frame(frame) for frame in _vp9_frames(packet)]
        if sum(is_shown for is_shown, _ in frames) != 1:
            raise UnprovenError("its packets are not one picture each")
        start = frames[0] == (True, True)
        if first and not start:
            raise UnprovenError("it does not begin with a key frame")
        first = False
        return start

    return Examiner(starts)


def _vp9_frames(packet: bytes) -> list[bytes]:
    """The frames in a packet; VP9 bitstream, Annex B."""
    mark = packet[-1]
    if mark & 0xE0 != 0xC0:
        return [packet]
    count, width = (mark & 7) + 1, (mark >> 3 & 3) + 1
    index = packet[-2 - count * width :]
    if index[0] != mark:
        return [packet]
    parts, at = [], 0
    for number in range(count):
        size = int.from_bytes(index[1 + number * width : 1 + (number + 1) * width], "little")
        parts.append(packet[at : at + size])
        at += size
    return [frame for frame in parts if frame]


def _vp9_frame(frame: bytes) -> tuple[bool, bool]:
    """Whether a frame is shown, and whether it is a key frame; VP9 bitstream, 6.2."""
    bits = Bits(frame[:4])
    if bits.number(2) != 2:
        raise ValueError("no VP9 frame")
    if bits.flag() + 2 * bits.flag() == 3:
        bits.flag()
    if bits.flag():
        return True, False
    key = not bits.flag()
    return bits.flag(), key


@dataclass
class _Av1:
    """AV1: a decoder can start at a key frame that is shown at once and follows its sequence."""

    sequence: bytes = b""
    begun: bool = False

    def __call__(self, packet: bytes) -> bool:
        parts = _av1_parts(packet)
        for _, body in (part for part in parts if part[0] == 1):
            if body[0] & 8 or (self.sequence and body != self.sequence):
                raise UnprovenError("its parameters change within the stream")
            self.sequence = body
        headers = [_av1_frame(body) for kind, body in parts if kind in (3, 6)]
        if sum(is_shown for is_shown, _ in headers) != 1:
            raise UnprovenError("its packets are not one picture each")
        start = headers[0] == (True, True) and any(kind == 1 for kind, _ in parts)
        if not self.sequence or not (start or self.begun):
            raise UnprovenError("it does not begin with a key frame")
        self.begun = True
        return start


def _av1_parts(packet: bytes) -> list[tuple[int, bytes]]:
    """Type and content of each open bitstream unit; AV1 bitstream, 5.3."""
    parts, at = [], 0
    while at < len(packet):
        head = packet[at]
        at += 2 if head & 4 else 1
        size = len(packet) - at
        if head & 2:
            size = shift = 0
            while True:
                byte = packet[at]
                size |= (byte & 127) << shift
                at, shift = at + 1, shift + 7
                if byte < 128:
                    break
        if at + size > len(packet):
            raise ValueError("a unit reaches past its packet")
        parts.append((head >> 3 & 15, packet[at : at + size]))
        at += size
    return parts


def _av1_frame(body: bytes) -> tuple[bool, bool]:
    """Whether a frame is shown, and whether it is a key frame; AV1 bitstream, 5.9.2."""
    if body[0] & 128:
        return True, False
    return bool(body[0] & 16), not body[0] & 96


def _mjpeg(_: bytes) -> Examiner:
    first: list[int] = []

    def starts(packet: bytes) -> bool:
        markers = _jpeg_markers(packet)
        # with the same segments in each picture nothing is remembered from the one before
        if 0xDB not in markers or (first and markers != first):
            raise UnprovenError("its pictures leave out tables of earlier ones")
        first[:] = markers
        return True

    return Examiner(starts)


def _jpeg_markers(packet: bytes) -> list[int]:
    """The markers of a JPEG picture up to its first scan."""
    if packet[:2] != b"\xff\xd8":
        raise ValueError("no JPEG picture")
    markers, at = [], 2
    while True:
        if packet[at] != 0xFF:
            raise ValueError("no JPEG marker")
        while packet[at] == 0xFF:
            at += 1
        markers.append(packet[at])
        if packet[at] == 0xDA:
            return markers
        at += 1 + int.from_bytes(packet[at + 1 : at + 3], "big")


EXAMINERS: dict[str, Callable[[bytes], Examiner]] = {
    "h264": h264,
    "hevc": hevc,
    "vp9": _vp9,
    "av1": lambda _: Examiner(_Av1()),
    "mjpeg": _mjpeg,
}
