"""What stands in compressed video without decoding it: bits, NAL units, starts for a decoder.

At which packets of H.264 and HEVC a decoder can start; see `key_frames`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

START = re.compile(rb"\x00\x00\x01")


@dataclass
class Bits:
    """A reader of bits, from the first byte and the highest bit on.

    Raises `ValueError` at the end of the data.
    """

    data: bytes
    place: int = 0

    def number(self, count: int) -> int:
        """An unsigned number of `count` bits."""
        end = self.place + count
        if end > 8 * len(self.data):
            raise ValueError("the data ends early")
        whole = int.from_bytes(self.data[self.place // 8 : (end + 7) // 8], "big")
        self.place = end
        return (whole >> (-end % 8)) & ((1 << count) - 1)

    def flag(self) -> bool:
        """One bit."""
        return bool(self.number(1))

    def golomb(self) -> int:
        """An unsigned Exp-Golomb number, `ue(v)`; ITU-T H.264, 9.1."""
        zeros = 0
        while not self.flag():
            zeros += 1
            if zeros > 32:
                raise ValueError("no Exp-Golomb number")
        return (1 << zeros) - 1 + self.number(zeros)

    def read_signed(self) -> int:
        """A signed Exp-Golomb number, `se(v)`; ITU-T H.264, 9.1.1."""
        code = self.golomb()
        return (code + 1) // 2 if code % 2 else -(code // 2)


def units(data: bytes, length: int) -> list[bytes]:
    """The NAL units of a packet, without start codes, lengths and zeros behind them.

    `length`: bytes of the length before each unit, or 0 where start codes stand between them
    (ITU-T H.264, Annex B). Raises `ValueError` where lengths do not add up.
    """
    if not length:
        ends = [(parts.start(), parts.end()) for parts in START.finditer(data)]
        if not ends:
            raise ValueError("no start code")
        stops = [start for start, _ in ends[1:]] + [len(data)]
        parts = [data[end:stop] for (_, end), stop in zip(ends, stops, strict=True)]
    else:
        parts, at = [], 0
        while at < len(data):
            stop = at + length + int.from_bytes(data[at : at + length], "big")
            if stop > len(data):
                raise ValueError("a unit reaches past its packet")
            parts.append(data[at + length : stop])
            at = stop
    return [part for part in (unit.rstrip(b"\0") for unit in parts) if part]


def payload(unit: bytes, header: int) -> bytes:
    """The payload of a NAL unit after its header, escapes removed (7.4.1)."""
    return unit[header:].replace(b"\0\0\3", b"\0\0")


def sei_types(unit: bytes, header: int) -> list[int]:
    """The types of the messages in an SEI unit (ITU-T H.264, 7.3.2.3.1)."""
    data, at, types = payload(unit, header), 0, []
    while at < len(data) and data[at:] != b"\x80":
        pair = []
        for _ in range(2):
            value = 0
            while data[at : at + 1] == b"\xff":
                value, at = value + 255, at + 1
            if at >= len(data):
                raise ValueError("an SEI message ends early")
            pair.append(value + data[at])
            at += 1
        types.append(pair[0])
        at += pair[1]
    return types


def avc_sets(extradata: bytes) -> tuple[int, list[bytes]]:
    """Of H.264's extradata: bytes a length (0: start codes), and the parameter sets."""
    if not extradata:
        return 0, []
    if extradata[0] != 1:
        return 0, units(extradata, 0)
    parts: list[bytes] = []
    at = 5
    for mask in (0x1F, 0xFF):
        count, at = extradata[at] & mask, at + 1
        sets, at = _read_sized_units(extradata, at, count)
        parts += sets
    return (extradata[4] & 3) + 1, parts


def hevc_sets(extradata: bytes) -> tuple[int, list[bytes]]:
    """The same of HEVC's extradata."""
    if not extradata:
        return 0, []
    if extradata[0] != 1:
        return 0, units(extradata, 0)
    parts: list[bytes] = []
    at = 23
    for _ in range(extradata[22]):
        count = int.from_bytes(extradata[at + 1 : at + 3], "big")
        sets, at = _read_sized_units(extradata, at + 3, count)
        parts += sets
    return (extradata[21] & 3) + 1, parts


def _read_sized_units(data: bytes, at: int, count: int) -> tuple[Sequence[bytes], int]:
    parts = []
    for _ in range(count):
        size = int.from_bytes(data[at : at + 2], "big")
        parts.append(data[at + 2 : at + 2 + size].rstrip(b"\0"))
        at += 2 + size
    return parts, at


MANY = 2**31


class UnprovenError(Exception):
    """Why a stream has to be decoded in order."""


@dataclass(frozen=True)
class Examiner:
    """Examines the packets of a stream, one after the other.

    `starts`: whether a decoder can start at a packet; raises `UnprovenError` if the whole stream
    must be decoded in order. `reorder`: the number of pictures that a decoder is told to hold back;
    in a stream that needs more it has to guess.
    """

    starts: Callable[[bytes], bool]
    reorder: int = MANY


# film grain, display orientation, transfer characteristics: they hold until the next such message
LASTING = frozenset({19, 47, 147})


@dataclass
class PictureNumbers:
    """The numbers of H.264's pictures, by which references that are missing show (7.4.3).

    `bits`: of a number.
    """

    bits: int
    last: int = -1

    def follow(self, unit: bytes, start: bool) -> bool:
        """Whether all references came that lie between a picture and the one before.

        `unit`: a slice of the picture. `start`: whether it is an IDR picture.
        """
        bits = Bits(payload(unit[:24], 1))
        _skip(bits, "uuu")
        number, before = bits.number(self.bits), self.last
        if unit[0] & 0x60 or start:
            self.last = number
        return start or before < 0 or number in (before, (before + 1) % (1 << self.bits))


def picture_numbers(unit: bytes) -> PictureNumbers | None:
    """Those of the pictures of an H.264 sequence parameter set.

    None where they do not say what is missing: pictures may be left out, or it is not read here.
    """
    try:
        bits, _, has_gaps = _sequence(Bits(payload(unit, 1)))
    except (UnprovenError, ValueError):
        return None
    return None if has_gaps else PictureNumbers(bits)


@dataclass
class _H264:
    """H.264: a decoder can start at a packet whose slices are all of an IDR picture."""

    length: int
    sets: frozenset[bytes]
    numbers: PictureNumbers

    def __call__(self, packet: bytes) -> bool:
        slices = []
        for unit in units(packet, self.length):
            kind = unit[0] & 31
            if kind in (1, 5):
                slices.append(unit)
            elif kind in (7, 8):
                _require_known(unit, self.sets)
            elif kind == 6:
                _require_passing(unit, 1)
            elif kind in (2, 3, 4, 10, 11):
                raise UnprovenError("it holds data partitions or ends within the stream")
        if sum(unit[1] >> 7 for unit in slices) != 1:
            raise UnprovenError("its packets are not one picture each")
        start = all(unit[0] & 31 == 5 for unit in slices)
        if self.numbers.last < 0 and not start:
            raise UnprovenError("it does not begin with a key frame")
        if not self.numbers.follow(slices[0], start):
            raise UnprovenError("frames are missing that later frames refer to")
        return start


def h264(extradata: bytes) -> Examiner:
    """The examiner of H.264.

    Raises `UnprovenError` for streams in which a decoder must guess or remember.
    """
    length, sets = avc_sets(extradata)
    known = {_sequence(Bits(payload(unit, 1))) for unit in sets if unit[0] & 31 == 7}
    if len(known) != 1:
        raise UnprovenError("its header does not say how it was coded")
    number_bits, reorder, _ = known.pop()
    return Examiner(_H264(length, frozenset(sets), PictureNumbers(number_bits)), reorder)


HIGH = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})


def _sequence(bits: Bits) -> tuple[int, int, bool]:
    """The bits of a picture's number, how far pictures are reordered, whether some are left out.

    See 7.3.2.1.1; 0 where it is not said how far. Raises `UnprovenError` for fields and for 4:4:4.
    """
    profile = bits.number(8)
    bits.number(16)
    bits.golomb()
    if profile in HIGH:
        if bits.golomb() == 3:
            # x264 before 151 wrote 4:4:4 otherwise, and says so in its first packet alone
            raise UnprovenError(
                "4:4:4 H.264 is decoded according to the encoder named in its first packet"
            )
        _skip(bits, "uu1")
        if bits.flag():
            for size in (*[16] * 6, *[64] * 2):
                _skip_scaling_list(bits, size)
    number_bits = bits.golomb() + 4
    order = bits.golomb()
    if order == 0:
        bits.golomb()
    elif order == 1:
        _skip(bits, "1uu")
        _skip(bits, "u" * bits.golomb())
    bits.golomb()
    has_gaps = bits.flag()
    _skip(bits, "uu")
    if not bits.flag():
        raise UnprovenError("it is interlaced")
    bits.flag()
    if bits.flag():
        _skip(bits, "uuuu")
    return number_bits, _reorder_of_usability(bits) if bits.flag() else 0, has_gaps


def _reorder_of_usability(bits: Bits) -> int:
    """The same from the usability information behind it (E.1.1)."""
    if bits.flag() and bits.number(8) == 255:
        bits.number(32)
    if bits.flag():
        bits.flag()
    if bits.flag():
        bits.number(4)
        if bits.flag():
            bits.number(24)
    if bits.flag():
        _skip(bits, "uu")
    if bits.flag():
        bits.number(65)
    buffers = [_skip_buffer(bits) for _ in range(2)]
    if any(buffers):
        bits.flag()
    bits.flag()
    if not bits.flag():
        return 0
    _skip(bits, "1uuuu")
    return bits.golomb()


def _skip_buffer(bits: Bits) -> bool:
    if not bits.flag():
        return False
    count = bits.golomb() + 1
    bits.number(8)
    for _ in range(count):
        _skip(bits, "uu1")
    bits.number(20)
    return True


def _skip(bits: Bits, fields: str) -> None:
    """Reads over Exp-Golomb numbers (`u`, signed or not) and single bits (`1`)."""
    for kind in fields:
        if kind == "u":
            bits.golomb()
        else:
            bits.flag()


def _skip_scaling_list(bits: Bits, size: int) -> None:
    if not bits.flag():
        return
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.read_signed()) % 256
        last = following or last


def _require_known(unit: bytes, sets: frozenset[bytes]) -> None:
    if unit not in sets:
        raise UnprovenError("its parameters change within the stream")


def _require_passing(unit: bytes, header: int) -> None:
    if LASTING.intersection(sei_types(unit, header)):
        raise UnprovenError("it holds messages that last beyond their picture")


@dataclass
class _Hevc:
    """HEVC: a decoder can start at a random access point, for pictures shown at or after it."""

    length: int
    sets: frozenset[bytes]
    points: int = 0

    def __call__(self, packet: bytes) -> bool:
        kinds = []
        for unit in units(packet, self.length):
            kind, layer = unit[0] >> 1 & 63, (unit[0] & 1) << 5 | unit[1] >> 3
            if layer:
                continue
            if kind < 32 and unit[2] & 128:
                kinds.append(kind)
                if kind in (19, 20) and unit[2] & 64 and self.points:
                    raise UnprovenError("key frames drop the pictures before them")
            elif kind in (32, 33, 34):
                _require_known(unit, self.sets)
            elif kind == 39:
                _require_passing(unit, 2)
            elif kind in (36, 37):
                raise UnprovenError("it ends within the stream")
        if len(kinds) != 1:
            raise UnprovenError("its packets are not one picture each")
        return self._start(kinds[0])

    def _start(self, kind: int) -> bool:
        start = kind in (19, 20, 21)
        if kind in (16, 17, 18) or not (start or kind < 10):
            raise UnprovenError("it holds links that are broken")
        self.points += start
        # pictures that lead the first point are not shown, so packets are not frames
        if not self.points or (kind in (8, 9) and self.points == 1):
            raise UnprovenError("it does not begin with a key frame and what follows it")
        return start


def hevc(extradata: bytes) -> Examiner:
    """The examiner of HEVC. Raises `UnprovenError` for pictures that are decoded and not shown."""
    length, sets = hevc_sets(extradata)
    for unit in sets:
        if unit[0] >> 1 & 63 == 34:
            bits = Bits(payload(unit, 2))
            _skip(bits, "uu1")
            if bits.flag():
                raise UnprovenError("it hides some of its pictures")
    return Examiner(_Hevc(length, frozenset(sets)))
