"""Reading what stands in compressed video without decoding it: bits and NAL units."""

import re
from collections.abc import Sequence
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
